import json

from tests.client.cli.conftest import Assay
from tests.client.fake_server import FakeServer


def conditions(output: str) -> dict[str, str]:
    return {check["name"]: check["condition"] for check in json.loads(output)}


def test_all_is_well(fake: FakeServer, assay: Assay) -> None:
    fake.response_headers = {"Assay-Version": "0.1.7"}
    result = assay("doctor", "--json")
    assert result.exit_code == 0, result.output
    found = conditions(result.stdout)
    assert set(found.values()) == {"ok"}
    names = {"python", "server", "version", "clock", "server database", "token", "local vllm", "local redis"}
    assert set(found) >= names
    assert "scopes read, submit, promote, pull" in assay("doctor").stdout


def test_a_server_that_is_not_ready_is_told_with_remedies(fake: FakeServer, assay: Assay) -> None:
    checks = {"workers": {"ok": False, "detail": "No worker takes jobs from: cpu."}}
    fake.ready = {"status": "not-ready", "checks": checks}
    result = assay("doctor")
    assert result.exit_code == 3
    assert "No worker takes jobs from: cpu." in result.stdout
    assert "server workers: Start the workers" in result.stdout


def test_an_unreachable_server(assay: Assay) -> None:
    result = assay("--url", "http://127.0.0.1:1", "doctor", "--json")
    assert result.exit_code == 3
    assert conditions(result.stdout)["server"] == "wrong"


def test_no_login(assay: Assay, server_url: str) -> None:
    assert "assay login" in assay("doctor", is_logged_in=False).stdout
    result = assay("--url", server_url, "doctor", is_logged_in=False)
    assert result.exit_code == 3
    assert f"assay login --url {server_url}" in result.stdout
