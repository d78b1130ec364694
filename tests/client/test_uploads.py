from pathlib import Path

import pytest

from client.api import AssayApi
from client.errors import AssayApiError, ServerUnreachableError, UploadError
from client.uploads import FolderJournal, LocalFiles, Uploader, hash_files
from tests.client.fake_server import CHUNK_BYTES, DropConnection, FakeServer, Request


class RecordingProgress:
    def __init__(self) -> None:
        self.stages: list[tuple[str, int]] = []
        self.num_bytes = 0
        self.notes: list[str] = []

    def start(self, description: str, total_bytes: int) -> None:
        self.stages.append((description, total_bytes))
        self.num_bytes = 0

    def advance(self, num_bytes: int) -> None:
        self.num_bytes += num_bytes

    def note(self, message: str) -> None:
        self.notes.append(message)


@pytest.fixture
def files(folder: Path) -> LocalFiles:
    contents = {"big.bin": b"a" * (2 * CHUNK_BYTES + 500), "small.txt": b"hello", "empty": b""}
    for name, content in contents.items():
        (folder / name).write_bytes(content)
    return hash_files({name: folder / name for name in contents})


def test_files_are_hashed_as_streams(folder: Path) -> None:
    (folder / "abc").write_bytes(b"abc")
    progress = RecordingProgress()
    found = hash_files({"abc": folder / "abc"}, progress)
    # FIPS 180-2, appendix B.1.
    expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    assert found.manifest.files[0].sha256 == expected
    assert progress.stages == [("hashing", 3)]
    assert progress.num_bytes == 3


def test_all_bad_names_are_told_at_once(folder: Path) -> None:
    (folder / "x").write_bytes(b"x")
    with pytest.raises(UploadError) as caught:
        hash_files({"../x": folder / "x", "a\\b": folder / "x"})
    assert {detail.code for detail in caught.value.details} >= {"path-traversal", "path-backslash"}


def test_an_unreadable_file_is_an_error(folder: Path) -> None:
    with pytest.raises(UploadError) as caught:
        hash_files({"gone": folder / "gone"})
    assert caught.value.code == "file-unreadable"


def test_an_upload_arrives_in_chunks(fake: FakeServer, api: AssayApi, files: LocalFiles) -> None:
    progress = RecordingProgress()
    digest = Uploader(api, progress=progress).upload("adapter", files)
    assert digest == files.manifest.digest
    assert fake.artifacts[digest]["kind"] == "adapter"
    ranges = [request.headers.get("Content-Range") for request in fake.sent("PUT", "/blobs/")]
    assert ranges == ["bytes 0-999/2500", "bytes 1000-1999/2500", "bytes 2000-2499/2500", None, "bytes 0-4/5"]
    assert progress.stages == [("uploading", 2505)]
    assert progress.num_bytes == 2505


def test_what_the_server_has_is_not_sent_again(fake: FakeServer, api: AssayApi, files: LocalFiles) -> None:
    Uploader(api).upload("adapter", files)
    num_puts = len(fake.sent("PUT", ""))
    progress = RecordingProgress()
    assert Uploader(api, progress=progress).upload("adapter", files) == files.manifest.digest
    assert len(fake.sent("PUT", "")) == num_puts
    assert progress.notes == ["the server has 3 of 3 files already"]


def test_equal_files_are_sent_once(fake: FakeServer, api: AssayApi, folder: Path) -> None:
    (folder / "a").write_bytes(b"same")
    Uploader(api).upload("adapter", hash_files({"a": folder / "a", "b": folder / "a"}))
    assert len(fake.sent("PUT", "")) == 1


def test_a_chunk_whose_answer_was_lost_is_not_sent_twice(
    fake: FakeServer, api: AssayApi, files: LocalFiles
) -> None:
    """The server stored the chunk, then the connection broke: the repeated PUT is told the right offset."""
    num_drops = 0

    def lose_answer(request: Request) -> None:
        nonlocal num_drops
        if request.headers.get("Content-Range") == "bytes 1000-1999/2500" and num_drops == 0:
            num_drops += 1
            _, _, _, _, upload_id, _, sha256 = request.path.split("/")
            fake.put_blob(request, upload_id, sha256)
            raise DropConnection

    fake.before = lose_answer
    progress = RecordingProgress()
    assert Uploader(api, progress=progress).upload("adapter", files) == files.manifest.digest
    assert num_drops == 1
    assert progress.num_bytes == 2505


def test_bytes_that_the_server_lost_are_sent_again(
    fake: FakeServer, api: AssayApi, files: LocalFiles
) -> None:
    lost: list[bool] = []

    def lose_bytes(request: Request) -> None:
        if request.headers.get("Content-Range") == "bytes 2000-2499/2500" and not lost:
            lost.append(True)
            for part in fake.partial.values():
                del part[300:]

    fake.before = lose_bytes
    progress = RecordingProgress()
    assert Uploader(api, progress=progress).upload("adapter", files) == files.manifest.digest
    assert "bytes 300-1299/2500" in [request.headers.get("Content-Range") for request in fake.requests]
    assert progress.num_bytes == 2505


def test_a_stopped_upload_is_resumed_by_the_next_run(
    fake: FakeServer, api: AssayApi, files: LocalFiles, tmp_path: Path
) -> None:
    def be_away(request: Request) -> None:
        if request.headers.get("Content-Range") == "bytes 2000-2499/2500":
            raise DropConnection

    fake.before = be_away
    journal = FolderJournal(tmp_path / "journal")
    with pytest.raises(ServerUnreachableError):
        Uploader(api, journal=journal).upload("adapter", files)
    fake.before = lambda _: None
    fake.requests.clear()
    assert Uploader(api, journal=journal).upload("adapter", files) == files.manifest.digest
    assert not fake.sent("POST", "/uploads") or fake.sent("POST", "/uploads")[0].path.endswith("/commit")
    assert fake.sent("PUT", "")[0].headers["Content-Range"] == "bytes 2000-2499/2500"
    assert list((tmp_path / "journal").iterdir()) == []


def test_a_journal_entry_that_the_server_forgot_begins_anew(
    fake: FakeServer, api: AssayApi, files: LocalFiles, tmp_path: Path
) -> None:
    journal = FolderJournal(tmp_path)
    uploader = Uploader(api, journal=journal)
    journal.remember(uploader._journal_key("adapter", files.manifest), "upload-gone")
    assert uploader.upload("adapter", files) == files.manifest.digest


def test_a_file_that_changes_while_it_is_sent_is_told(fake: FakeServer, api: AssayApi, folder: Path) -> None:
    # Longer than the read buffer, so that the change is seen.
    (folder / "big").write_bytes(b"a" * 20_000)
    files = hash_files({"big": folder / "big"})

    def change(request: Request) -> None:
        if request.headers.get("Content-Range") == "bytes 0-999/20000":
            (folder / "big").write_bytes(b"b" * 20_000)

    fake.before = change
    with pytest.raises(UploadError) as caught:
        Uploader(api).upload("adapter", files)
    assert caught.value.code == "file-changed"


def test_a_file_that_shrinks_is_told(fake: FakeServer, api: AssayApi, files: LocalFiles) -> None:
    files.sources["big.bin"].write_bytes(b"")
    with pytest.raises(UploadError) as caught:
        Uploader(api).upload("adapter", files)
    assert caught.value.code == "file-changed"


def test_a_damaged_arrival_is_repeated_once_only(fake: FakeServer, api: AssayApi, folder: Path) -> None:
    (folder / "a").write_bytes(b"content")
    files = hash_files({"a": folder / "a"})
    num_damaged = 1

    def damage(request: Request) -> None:
        nonlocal num_damaged
        if request.method == "PUT" and num_damaged:
            num_damaged -= 1
            request.raw = b"CONTENT"

    fake.before = damage
    assert Uploader(api).upload("adapter", files) == files.manifest.digest
    num_damaged = 99
    fake.blobs.clear()
    with pytest.raises(AssayApiError) as caught:
        Uploader(api).upload("adapter", files)
    assert caught.value.code == "blob-hash-mismatch"


def test_a_refused_upload_keeps_the_servers_reason(
    fake: FakeServer, api: AssayApi, files: LocalFiles
) -> None:
    from tests.client.fake_server import Refusal

    def refuse(request: Request) -> None:
        if request.method == "PUT":
            raise Refusal(507, "store-full", "The disk is full.")

    fake.before = refuse
    with pytest.raises(AssayApiError, match="The disk is full") as caught:
        Uploader(api).upload("adapter", files)
    assert caught.value.code == "store-full"
