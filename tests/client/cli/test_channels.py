import json
from pathlib import Path

import pytest

from tests.client.cli.conftest import Assay
from tests.client.fake_server import FakeServer

FILES = {"config.json": b"{}", "model.safetensors": b"weights"}


@pytest.fixture
def staging(fake: FakeServer) -> str:
    digest = fake.store(FILES)
    fake.promote_to("staging", digest)
    return digest


def test_promote_sends_the_etag_that_was_found(fake: FakeServer, assay: Assay, staging: str) -> None:
    result = assay("promote", "tickets@4", "staging", "--reason", "better")
    assert result.exit_code == 0, result.output
    assert result.stdout == "staging: tickets@3 -> tickets@4 (merged)\n"
    request = fake.sent("POST", "/promote")[0]
    assert request.headers["If-Match"] == '"staging-3"'
    assert request.json == {"adapter": "tickets", "version": 4, "reason": "better"}


def test_promote_by_submission_and_with_override(fake: FakeServer, assay: Assay, staging: str) -> None:
    submission_id = "6f1d4d0e-8a5c-4f5a-9d55-0a4c5f2d1e01"
    result = assay("promote", submission_id, "staging", "--reason", "x", "--override", "--json")
    assert json.loads(result.stdout)["current"]["version"] == 3
    assert fake.sent("POST", "/promote")[0].json["override"] is True


def test_a_changed_channel_and_a_version_without_verdict_are_explained(
    fake: FakeServer, assay: Assay, staging: str
) -> None:
    result = assay("promote", "tickets@4", "staging", "--reason", "x", "--if-match", '"old"')
    assert result.exit_code == 3
    assert "channel-changed" in result.stderr
    assert "assay channel show" in result.stderr
    result = assay("promote", "tickets@666", "staging", "--reason", "x")
    assert result.exit_code == 3
    assert "version-not-passed" in result.stderr


def test_a_reason_is_needed(assay: Assay, staging: str) -> None:
    assert assay("promote", "tickets@4", "staging").exit_code == 3


def test_rollback(fake: FakeServer, assay: Assay, staging: str) -> None:
    result = assay("rollback", "staging", "--reason", "worse", "--to", "5")
    assert result.stdout == "staging: tickets@3 -> tickets@2 (merged)\n"
    assert fake.sent("POST", "/rollback")[0].json == {"reason": "worse", "to_promotion": 5}


def test_pull_makes_the_folder_and_a_second_one_changes_nothing(
    assay: Assay, staging: str, tmp_path: Path
) -> None:
    target = tmp_path / "model"
    result = assay("pull", "staging", str(target))
    assert result.exit_code == 0, result.output
    assert "tickets@3 (merged) from staging pulled into" in result.stdout
    assert {path.name: path.read_bytes() for path in target.iterdir() if path.name in FILES} == FILES
    assert json.loads((target / "assay-manifest.json").read_text())["artifact"] == staging
    answer = json.loads(assay("pull", "staging", str(target), "--json").stdout)
    assert answer["is_unchanged"] is True


def test_pull_of_another_version_into_the_same_folder_is_refused(
    fake: FakeServer, assay: Assay, staging: str, tmp_path: Path
) -> None:
    assay("pull", "staging", str(tmp_path / "model"))
    fake.promote_to("staging", fake.store({"config.json": b"{ }"}), version=4)
    result = assay("pull", "staging", str(tmp_path / "model"))
    assert result.exit_code == 3
    assert "target-in-use" in result.stderr


def test_pull_of_an_adapter_names_its_base(fake: FakeServer, assay: Assay, tmp_path: Path) -> None:
    fake.promote_to("multi", fake.store(FILES), form="adapter")
    result = assay("pull", "multi", str(tmp_path / "adapter"))
    assert f"assay pull --artifact {'b' * 64}" in result.stderr


def test_pull_of_an_artifact(fake: FakeServer, assay: Assay, staging: str, tmp_path: Path) -> None:
    assert assay("pull", "--artifact", staging, str(tmp_path / "m")).exit_code == 0
    assert {path.name for path in (tmp_path / "m").iterdir()} == set(FILES)


def test_pull_of_an_empty_channel(assay: Assay, tmp_path: Path) -> None:
    result = assay("pull", "nothing", str(tmp_path / "m"))
    assert result.exit_code == 3
    assert "channel-empty" in result.stderr
    assert not (tmp_path / "m").exists()


def test_channels_are_created_listed_and_shown(fake: FakeServer, assay: Assay, staging: str) -> None:
    assert "serves adapter: nothing" in assay("channel", "create", "multi", "--form", "adapter").stdout
    listed = assay("channel", "list").stdout
    assert "staging" in listed
    assert "multi" in listed
    assert 'etag "staging-3"' in assay("channel", "show", "staging").stdout
    assert "good" in assay("channel", "history", "staging").stdout
