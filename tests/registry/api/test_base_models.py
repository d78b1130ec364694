"""Base models are registered from uploaded folders, checked without loading a weight."""

from pathlib import Path
from typing import Any

import pytest

from registry.models import AuditEvent, BaseModel
from tests.fixtures.registry import Caller, assert_problem, make_caller, upload_files
from tests.registry.artifacts.builders import make_base

pytestmark = pytest.mark.django_db
BASE_MODELS = "/api/v1/base-models"


@pytest.fixture
def admin() -> Caller:
    return make_caller("admin")


def files_of(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def register(caller: Caller, digest: str, **changes: Any) -> Any:
    body = {"name": "tiny", "artifact": digest, "source": "hub/tiny"} | changes
    return caller.client.post(BASE_MODELS, body, format="json")


def test_register_and_read(admin: Caller, tmp_path: Path) -> None:
    digest = upload_files(admin.client, "base_model", files_of(make_base(tmp_path / "base")))
    answer = register(admin, digest)
    assert answer.status_code == 201, answer.content
    document = answer.json()
    assert document["name"] == "tiny" and document["artifact"] == digest
    assert document["architecture"] == "LlamaForCausalLM"
    assert document["dtype"] == "bfloat16"
    assert document["num_parameters"] > 0 and document["size_bytes"] > 0
    again = register(admin, digest)
    assert again.status_code == 200 and again.json() == document
    reader = make_caller("read")
    assert reader.client.get(f"{BASE_MODELS}/tiny").json() == document
    assert reader.client.get(BASE_MODELS).json() == {"next": None, "previous": None, "results": [document]}
    assert AuditEvent.objects.filter(action="base_model.create").count() == 1


def test_a_name_keeps_its_bytes(admin: Caller, tmp_path: Path) -> None:
    first = upload_files(admin.client, "base_model", files_of(make_base(tmp_path / "base")))
    files = files_of(make_base(tmp_path / "other")) | {"README.md": b"other"}
    second = upload_files(admin.client, "base_model", files)
    assert register(admin, first).status_code == 201
    assert_problem(register(admin, second), 409, "base-model-name-taken")


def test_pickle_weights_and_missing_tokenizer_are_told_at_once(admin: Caller) -> None:
    files = {"config.json": b'{"architectures": ["A"]}', "pytorch_model.bin": b"\x80\x02x"}
    answer = register(admin, upload_files(admin.client, "base_model", files))
    codes = {error["code"] for error in assert_problem(answer, 422, "base-model-invalid")["errors"]}
    assert {"base-weights-pickle", "base-tokenizer-missing"} <= codes
    assert BaseModel.objects.count() == 0


def test_unknown_names_and_artifacts(admin: Caller, tmp_path: Path) -> None:
    assert_problem(register(admin, "a" * 64), 404, "artifact-not-found")
    answer = register(admin, "b" * 63, name="Tiny!")
    places = {error["where"] for error in assert_problem(answer, 422, "validation-failed")["errors"]}
    assert places == {"/name", "/artifact"}
    digest = upload_files(admin.client, "base_model", files_of(make_base(tmp_path / "base")))
    register(admin, digest)
    document = assert_problem(admin.client.get(f"{BASE_MODELS}/tini"), 404, "base-model-not-found")
    assert "Did you mean 'tiny'?" in document["detail"]
