import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from registry.artifacts.errors import BlobNotFoundError, FolderError, ManifestError
from registry.artifacts.stores.base import PutMode
from registry.artifacts.stores.local import LocalStore


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    return LocalStore(tmp_path / "store")


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "source"
    (folder / "sub").mkdir(parents=True)
    (folder / "a.txt").write_bytes(b"a")
    (folder / "sub" / "b.txt").write_bytes(b"b")
    return folder


def test_ingest_and_materialise(store: LocalStore, source: Path, tmp_path: Path) -> None:
    manifest = store.ingest_folder(source)
    assert [file.path for file in manifest.files] == ["a.txt", "sub/b.txt"]
    store.materialise(manifest, tmp_path / "target")
    assert (tmp_path / "target" / "sub" / "b.txt").read_bytes() == b"b"
    assert (tmp_path / "target" / "a.txt").stat().st_ino == store.path(manifest.files[0].sha256).stat().st_ino
    assert store.ingest_folder(tmp_path / "target").digest == manifest.digest


@settings(max_examples=20, deadline=None)
@given(
    files=st.dictionaries(
        st.from_regex(r"[a-z]{4,6}(/[a-z]{4,6}){0,2}\.json", fullmatch=True),
        st.binary(max_size=50),
        min_size=1,
        max_size=6,
    )
)
def test_round_trip(tmp_path_factory: pytest.TempPathFactory, files: dict[str, bytes]) -> None:
    root = tmp_path_factory.mktemp("case")
    for path, content in files.items():
        target = root / "in" / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
    store = LocalStore(root / "store")
    manifest = store.ingest_folder(root / "in")
    store.materialise(manifest, root / "out")
    found = {
        path.relative_to(root / "out").as_posix(): path.read_bytes()
        for path in (root / "out").rglob("*")
        if path.is_file()
    }
    assert found == files


def test_move_takes_the_files_away(store: LocalStore, source: Path) -> None:
    manifest = store.ingest_folder(source, mode=PutMode.MOVE)
    assert not (source / "a.txt").exists()
    assert all(store.is_intact(file.sha256) for file in manifest.files)


def test_links_inside_the_folder_are_followed_and_kept(store: LocalStore, source: Path) -> None:
    (source / "link.txt").symlink_to("a.txt")
    manifest = store.ingest_folder(source, mode=PutMode.COPY)
    link, target = manifest.file("link.txt"), manifest.file("a.txt")
    assert link is not None
    assert target is not None
    assert link.sha256 == target.sha256


@pytest.mark.parametrize("target", ["/etc/passwd", "../outside.txt", "/etc"])
def test_links_that_leave_the_folder_are_refused(store: LocalStore, source: Path, target: str) -> None:
    (source.parent / "outside.txt").write_text("secret")
    (source / "link").symlink_to(target)
    with pytest.raises(FolderError) as caught:
        store.ingest_folder(source)
    assert caught.value.code == "symlink-outside"
    assert list(store.iter()) == []


def test_pipes_are_refused(store: LocalStore, source: Path) -> None:
    os.mkfifo(source / "pipe")
    with pytest.raises(FolderError) as caught:
        store.ingest_folder(source)
    assert caught.value.code == "file-not-regular"


def test_bad_names_are_refused_before_anything_is_stored(store: LocalStore, source: Path) -> None:
    (source / "a\nb").touch()
    (source / "A.TXT").touch()
    with pytest.raises(FolderError) as caught:
        store.ingest_folder(source)
    assert {finding.code for finding in caught.value.details} == {
        "path-control-character",
        "path-case-collision",
    }
    assert list(store.iter()) == []


def test_empty_and_missing_folders(store: LocalStore, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(ManifestError):
        store.ingest_folder(tmp_path / "empty")
    with pytest.raises(FolderError):
        store.ingest_folder(tmp_path / "missing")


def test_a_missing_blob_leaves_no_folder(store: LocalStore, source: Path, tmp_path: Path) -> None:
    manifest = store.ingest_folder(source)
    store.delete(manifest.files[1].sha256)
    with pytest.raises(BlobNotFoundError) as caught:
        store.materialise(manifest, tmp_path / "target")
    assert [finding.where for finding in caught.value.details] == ["sub/b.txt"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["source", "store"]


def test_an_interrupted_materialise_leaves_no_folder(
    store: LocalStore, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    manifest = store.ingest_folder(source)

    def interrupt(sha256: str, target: Path) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(store, "link_into", interrupt)
    with pytest.raises(KeyboardInterrupt):
        store.materialise(manifest, tmp_path / "target")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["source", "store"]


def test_a_folder_in_use_is_not_touched(store: LocalStore, source: Path, tmp_path: Path) -> None:
    manifest = store.ingest_folder(source)
    with pytest.raises(FolderError) as caught:
        store.materialise(manifest, source)
    assert caught.value.code == "folder-not-empty"
    (tmp_path / "target").mkdir()
    store.materialise(manifest, tmp_path / "target")
    assert (tmp_path / "target" / "a.txt").read_bytes() == b"a"
