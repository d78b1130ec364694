import errno
from pathlib import Path

import pytest

from registry.artifacts.errors import StoreFullError
from registry.artifacts.stores.atomic import full_disk_as_store_full, publish, sync_file, temporary_file


def test_a_temporary_file_goes_unless_published(tmp_path: Path) -> None:
    with temporary_file(tmp_path / "tmp") as (path, file):
        file.write(b"x")
        sync_file(file)
        publish(path, tmp_path / "deep" / "final")
    with temporary_file(tmp_path / "tmp") as (path, _):
        assert path.exists()
    assert (tmp_path / "deep" / "final").read_bytes() == b"x"
    assert list((tmp_path / "tmp").iterdir()) == []


def test_only_full_disks_are_translated(tmp_path: Path) -> None:
    with pytest.raises(StoreFullError), full_disk_as_store_full(tmp_path):
        raise OSError(errno.ENOSPC, "No space left on device")
    with pytest.raises(PermissionError), full_disk_as_store_full(tmp_path):
        raise PermissionError(errno.EACCES, "Permission denied")
