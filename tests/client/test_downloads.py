import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from client.api import AssayApi
from client.downloads import RECORD_NAME, Downloader
from client.errors import AssayApiError, DownloadError, ServerUnreachableError, UnexpectedAnswerError
from registry.artifacts.manifest import ArtifactManifest
from tests.client.fake_server import FakeServer

FILES = {"model.safetensors": bytes(range(256)) * 40, "sub dir/tokenizer.json": b"{}", "empty": b""}


@pytest.fixture
def manifest(fake: FakeServer, api: AssayApi) -> ArtifactManifest:
    return api.get_artifact(fake.store(FILES)).manifest


def contents(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()
    }


def test_a_pull_makes_the_folder_with_record(
    api: AssayApi, manifest: ArtifactManifest, tmp_path: Path
) -> None:
    target = tmp_path / "deep" / "model"
    result = Downloader(api).pull(manifest, target, record={"channel": "staging"})
    assert not result.is_unchanged
    found = contents(target)
    assert json.loads(found.pop(RECORD_NAME)) == {"channel": "staging"}
    assert found == FILES
    assert [path.name for path in target.parent.iterdir()] == ["model"]


def test_a_second_pull_fetches_nothing(
    fake: FakeServer, api: AssayApi, manifest: ArtifactManifest, tmp_path: Path
) -> None:
    Downloader(api).pull(manifest, tmp_path / "model", record={"channel": "staging"})
    fake.requests.clear()
    assert Downloader(api).pull(manifest, tmp_path / "model").is_unchanged
    assert fake.requests == []


def test_an_empty_folder_is_filled(api: AssayApi, manifest: ArtifactManifest, tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    Downloader(api).pull(manifest, tmp_path / "model")
    assert contents(tmp_path / "model") == FILES


@pytest.mark.parametrize("other", [{"note.txt": b"mine"}, FILES | {"extra": b""}, FILES | {"empty": b"no"}])
def test_other_files_are_never_touched(
    api: AssayApi, manifest: ArtifactManifest, tmp_path: Path, other: dict[str, bytes]
) -> None:
    for name, content in other.items():
        path = tmp_path / "model" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    with pytest.raises(DownloadError) as caught:
        Downloader(api).pull(manifest, tmp_path / "model")
    assert caught.value.code == "target-in-use"
    assert contents(tmp_path / "model") == other


def test_a_file_in_the_way_is_not_touched(api: AssayApi, manifest: ArtifactManifest, tmp_path: Path) -> None:
    (tmp_path / "model").write_text("mine")
    with pytest.raises(DownloadError, match="not a folder"):
        Downloader(api).pull(manifest, tmp_path / "model")


def test_a_dropped_connection_goes_on_by_range(fake: FakeServer, api: AssayApi, tmp_path: Path) -> None:
    manifest = api.get_artifact(fake.store({"model": FILES["model.safetensors"]})).manifest
    fake.download_limit = [3000, 4000]
    Downloader(api).pull(manifest, tmp_path / "model")
    assert contents(tmp_path / "model") == {"model": FILES["model.safetensors"]}
    ranges = [request.headers.get("Range") for request in fake.sent("GET", "/files/")]
    assert ranges == [None, "bytes=3000-", "bytes=7000-"]


def test_a_server_that_ignores_range_is_read_from_the_beginning(
    fake: FakeServer, api: AssayApi, tmp_path: Path
) -> None:
    manifest = api.get_artifact(fake.store({"model": FILES["model.safetensors"]})).manifest
    fake.download_limit, fake.ignores_range = [3000], True
    Downloader(api).pull(manifest, tmp_path / "model")
    assert contents(tmp_path / "model") == {"model": FILES["model.safetensors"]}


def test_a_pull_that_gave_up_is_resumed_by_the_next(fake: FakeServer, api: AssayApi, tmp_path: Path) -> None:
    manifest = api.get_artifact(fake.store({"model": FILES["model.safetensors"]})).manifest
    # The first piece arrives, then four attempts (the fixture's policy) bring nothing.
    fake.download_limit = [3000, 0, 0, 0, 0]
    with pytest.raises(ServerUnreachableError):
        Downloader(api).pull(manifest, tmp_path / "model")
    assert not (tmp_path / "model").exists()
    fake.requests.clear()
    fake.download_limit = []
    Downloader(api).pull(manifest, tmp_path / "model")
    assert [request.headers.get("Range") for request in fake.requests] == ["bytes=3000-"]


def test_two_pulls_at_once_make_one_folder(
    fake: FakeServer, api: AssayApi, manifest: ArtifactManifest, tmp_path: Path
) -> None:
    fake.requests.clear()
    with ThreadPoolExecutor() as pool:
        pulls = [pool.submit(Downloader(api).pull, manifest, tmp_path / "model") for _ in range(3)]
    assert sorted(pull.result().is_unchanged for pull in pulls) == [False, True, True]
    assert len(fake.requests) == len(FILES) - 1
    assert contents(tmp_path / "model") == FILES
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_damaged_bytes_are_fetched_again_once(fake: FakeServer, api: AssayApi, tmp_path: Path) -> None:
    manifest = api.get_artifact(fake.store({"model": b"good bytes"})).manifest
    fake.corrupts_downloads = 1
    Downloader(api).pull(manifest, tmp_path / "model")
    assert contents(tmp_path / "model") == {"model": b"good bytes"}
    fake.corrupts_downloads = 99
    with pytest.raises(DownloadError) as caught:
        Downloader(api).pull(manifest, tmp_path / "other")
    assert caught.value.code == "hash-mismatch"
    assert not (tmp_path / "other").exists()


def test_a_refusal_in_the_middle_leaves_no_target(
    fake: FakeServer, api: AssayApi, manifest: ArtifactManifest, tmp_path: Path
) -> None:
    from tests.client.fake_server import Refusal, Request

    def refuse(request: Request) -> None:
        if "/files/" in request.path:
            raise Refusal(403, "scope-missing", "The token may not pull.")

    fake.before = refuse
    with pytest.raises(AssayApiError, match="may not pull"):
        Downloader(api).pull(manifest, tmp_path / "model")
    assert not (tmp_path / "model").exists()


def test_a_full_disk_is_told_before_anything_is_fetched(
    fake: FakeServer,
    api: AssayApi,
    manifest: ArtifactManifest,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    usage = type("Usage", (), {"free": 10})
    monkeypatch.setattr("client.downloads.shutil.disk_usage", lambda _: usage)
    fake.requests.clear()
    with pytest.raises(DownloadError) as caught:
        Downloader(api).pull(manifest, tmp_path / "model")
    assert caught.value.code == "disk-full"
    assert fake.requests == []


@pytest.mark.parametrize("path", ["../evil", "/etc/passwd", "a/../../b", "a\\b", "x\n"])
def test_a_manifest_with_paths_that_leave_the_folder_is_refused(
    fake: FakeServer, api: AssayApi, path: str
) -> None:
    digest = fake.store({"ok": b"x"})
    fake.artifacts[digest]["files"][0]["path"] = path
    with pytest.raises(UnexpectedAnswerError):
        api.get_artifact(digest)


def test_a_manifest_that_does_not_have_its_digest_is_refused(fake: FakeServer, api: AssayApi) -> None:
    digest = fake.store({"ok": b"x"})
    fake.artifacts[digest]["files"][0]["path"] = "other"
    with pytest.raises(UnexpectedAnswerError) as caught:
        api.get_artifact(digest)
    assert caught.value.code == "digest-mismatch"
