import json
from pathlib import Path

import pytest

from tests.client.cli.conftest import Assay
from tests.client.fake_server import FakeServer


@pytest.fixture
def model_folder(folder: Path) -> Path:
    for name in ("config.json", "tokenizer.json", "model.safetensors", "pytorch_model.bin", "modeling_x.py"):
        (folder / name).write_bytes(name.encode())
    (folder / ".cache").mkdir()
    return folder


def test_base_add_uploads_what_belongs_to_the_model(
    fake: FakeServer, assay: Assay, model_folder: Path
) -> None:
    result = assay("base", "add", "small", str(model_folder), "--source", "hub id")
    assert result.exit_code == 0, result.output
    assert "1,234 parameters" in result.stdout
    paths = [file["path"] for file in fake.sent("POST", "/uploads")[0].json["files"]]
    assert paths == ["config.json", "model.safetensors", "tokenizer.json"]
    assert "left out: pytorch_model.bin" in result.stderr
    assert "left out: modeling_x.py" in result.stderr
    assert fake.sent("POST", "/base-models")[0].json["source"] == "hub id"
    assert "small" in assay("base", "list").stdout


def test_base_add_refuses_pickled_weights_alone(fake: FakeServer, assay: Assay, model_folder: Path) -> None:
    (model_folder / "model.safetensors").unlink()
    result = assay("base", "add", "small", str(model_folder))
    assert result.exit_code == 3
    assert "save_pretrained" in result.stderr
    assert fake.requests == []


def test_dataset_push(fake: FakeServer, assay: Assay, tmp_path: Path) -> None:
    file = tmp_path / "train.jsonl"
    file.write_text('{"id":"1"}\n{"id":"2"}\n')
    result = assay("dataset", "push", "tickets-train", str(file), "--role", "train")
    assert result.exit_code == 0, result.output
    assert result.stdout == "tickets-train@1 (train, 2 examples, verified)\n"
    assert fake.sent("POST", "/uploads")[0].json["files"][0]["path"] == "data.jsonl"
    assert assay("dataset", "push", "x", str(file), "--role", "nonsense").exit_code == 3


def test_suite_push_registers_the_sets_then_the_suite(fake: FakeServer, assay: Assay, folder: Path) -> None:
    (folder / "suite.json").write_text(json.dumps({"name": "demo", "min_score": 0.8}))
    for role in ("holdout", "ood", "regression", "canary"):
        (folder / f"{role}.jsonl").write_text(f'{{"id":"{role}"}}\n')
    result = assay("suite", "push", str(folder))
    assert result.exit_code == 0, result.output
    assert result.stdout == "suite demo@1\n"
    assert fake.sent("POST", "/suites")[0].json == {
        "definition": {"name": "demo", "min_score": 0.8},
        "datasets": {role: f"demo-{role}@1" for role in ("holdout", "ood", "regression", "canary")},
    }


def test_suite_push_lists_every_missing_file(fake: FakeServer, assay: Assay, folder: Path) -> None:
    (folder / "ood.jsonl").write_text("")
    result = assay("suite", "push", str(folder))
    assert result.exit_code == 3
    for name in ("suite.json", "holdout.jsonl", "regression.jsonl", "canary.jsonl"):
        assert f"({name})" in result.stderr
    assert fake.requests == []


def test_suite_push_names_the_line_of_broken_json(assay: Assay, folder: Path) -> None:
    for role in ("holdout", "ood", "regression", "canary"):
        (folder / f"{role}.jsonl").write_text("")
    (folder / "suite.json").write_text('{\n"name": }')
    result = assay("suite", "push", str(folder))
    assert result.exit_code == 3
    assert "line 2" in result.stderr


def test_baseline_run_waits_for_the_end(fake: FakeServer, assay: Assay) -> None:
    job = {"id": "j", "kind": "evaluate", "state": "running", "fraction": 0.2, "message": "holdout"}
    fake.run_states = [
        {"id": "b1", "state": "running", "current_job": job},
        {"id": "b1", "state": "running", "current_job": job},
        {"id": "b1", "state": "succeeded"},
    ]
    result = assay("baseline", "run", "tickets")
    assert result.exit_code == 0, result.output
    assert result.stdout == "baseline b1: succeeded\n"
    assert fake.sent("POST", "/baselines")[0].json == {"suite": "tickets", "base_model": "tiny"}


def test_a_failed_baseline_is_an_error_with_its_reason(fake: FakeServer, assay: Assay) -> None:
    failure = {"failure_class": "infrastructure", "code": "oom", "message": "killed", "details": []}
    fake.run_states = [{"id": "b1", "state": "failed", "failure": failure}]
    result = assay("baseline", "run", "tickets")
    assert result.exit_code == 3
    assert "error oom: killed" in result.stderr


def test_train_run_follows_and_pulls_the_adapter(fake: FakeServer, assay: Assay, tmp_path: Path) -> None:
    digest = fake.store({"adapter_config.json": b"{}"})
    fake.run_states = [
        {"id": "t1", "state": "queued"},
        {"id": "t1", "state": "succeeded", "artifact": digest, "values": {"final_loss": 0.1}},
    ]
    config = tmp_path / "quick.json"
    config.write_text('{"lora": {"r": 8}}')
    result = assay(
        "train", "run", str(config), "--dataset", "a@1", "--dataset", "g@1", "--holdout", "h@1",
        "--output", str(tmp_path / "adapter"),
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    assert (tmp_path / "adapter" / "adapter_config.json").read_bytes() == b"{}"
    assert fake.sent("POST", "/training-runs")[0].json == {
        "name": "quick",
        "base_model": "tiny",
        "datasets": ["a@1", "g@1"],
        "holdout": "h@1",
        "config": {"lora": {"r": 8}},
    }


def test_train_run_takes_a_configuration_in_toml(fake: FakeServer, assay: Assay, tmp_path: Path) -> None:
    fake.run_states = [{"id": "t1", "state": "queued"}]
    config = tmp_path / "quick.toml"
    config.write_text('method = "lora"\n[lora]\nlayers = {first = 10, last = 31}\n')
    result = assay("train", "run", str(config), "--dataset", "a@1", "--no-wait")
    assert result.exit_code == 0, result.output
    assert fake.sent("POST", "/training-runs")[0].json == {
        "name": "quick",
        "base_model": "tiny",
        "datasets": ["a@1"],
        "config": {"method": "lora", "lora": {"layers": {"first": 10, "last": 31}}},
    }
