from pathlib import Path

import pytest

from training.engine.atomic_folder import atomic_folder


def test_complete_or_absent(tmp_path: Path) -> None:
    output = tmp_path / "out"
    with pytest.raises(KeyboardInterrupt), atomic_folder(output) as partial:
        (partial / "half.txt").write_text("x")
        raise KeyboardInterrupt
    assert list(tmp_path.iterdir()) == []
    with atomic_folder(output) as partial:
        (partial / "a.txt").write_text("x")
        assert not output.exists()
    assert [path.name for path in output.iterdir()] == ["a.txt"]
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_never_overwrites(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    with atomic_folder(tmp_path / "out") as partial:
        (partial / "a.txt").write_text("x")
    with pytest.raises(FileExistsError), atomic_folder(tmp_path / "out"):
        pass
