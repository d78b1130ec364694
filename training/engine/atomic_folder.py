"""Writing a folder so that it is either complete or absent."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def atomic_folder(output: Path) -> Iterator[Path]:
    """Yield a temporary sibling of ``output``; on success sync its files and rename it to ``output``.

    On any error, interruption included, the temporary folder is removed and ``output`` is not created. Only a
    killed process can leave the temporary folder behind; its name starts with ``.partial-``.

    Args:
        output: The folder to create. It may exist only as an empty folder.

    Raises:
        FileExistsError: If ``output`` exists and is not an empty folder.
    """
    if output.exists() and (not output.is_dir() or any(output.iterdir())):
        raise FileExistsError(f"{output} exists already and is not an empty folder.")
    output.parent.mkdir(parents=True, exist_ok=True)
    partial = Path(tempfile.mkdtemp(prefix=f".partial-{output.name}-", dir=output.parent))
    try:
        partial.chmod(0o755)
        yield partial
        for path in sorted(partial.rglob("*")):
            # Some libraries write through private temporary files; the result is to be readable like any
            # other file.
            path.chmod(0o755 if path.is_dir() else 0o644)
            _sync(path)
        _sync(partial)
        partial.rename(output)
        _sync(output.parent)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _sync(path: Path) -> None:
    """Flush a file's or a folder's content to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
