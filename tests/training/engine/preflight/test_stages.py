import hashlib
from pathlib import Path
from typing import Any

import pytest

from tests.training.engine.planted.material import copy_base, make_lines, pretrained_llama, write_lines
from tests.training.engine.preflight.trained import load_base, read_rows
from tests.training.engine.reporters import RecordingReporter
from training.engine.config import TrainingConfig
from training.engine.errors import DataInvalid, TrainingFailed
from training.engine.preflight.stages import Preflight
from training.engine.preflight.standalone import run_preflight
from training.engine.process_group import SingleProcess
from training.engine.trainer import run_training

SETTINGS: dict[str, Any] = {
    "training": {
        "dtype": "float32", "max_steps": 2, "per_device_batch_size": 2, "gradient_accumulation_steps": 2,
    },
    "lora": {"r": 8},
    "preflight": {"overfit_examples": 4},
}  # fmt: skip


def make_config(**sections: Any) -> TrainingConfig:
    return TrainingConfig.from_json({**SETTINGS, **sections})


def preflight(data: Path, **arguments: Any) -> dict[str, Any]:
    report = RecordingReporter()
    arguments = {"base_model": pretrained_llama(), "holdout": None, "config": make_config(), **arguments}
    try:
        result = run_preflight(training_data=data, report=report, **arguments)
    except TrainingFailed as error:
        assert error.code == "preflight-failed"
        ((name, document),) = report.records
        assert not document["passed"]
        return {**document, "error": error}
    ((name, document),) = report.records
    assert name == "preflight" and document == result.to_json()
    return document


def test_a_sound_training_passes_every_check(tmp_path: Path) -> None:
    document = preflight(write_lines(tmp_path / "train.jsonl", make_lines(30)))
    assert document["passed"]
    statuses = {check["code"]: check["status"] for check in document["checks"]}
    assert {code for code, status in statuses.items() if status not in ("passed",)} == {"no-leak"}
    assert document["overfit"]["status"] == "passed"
    assert document["first_step"]["num_without_gradient"] == 0
    assert [len(batch["rows"]) for batch in document["batches"]] == [2, 2, 2]

    # The same once more: the attempt is known now.
    known = [document["overfit"]["fingerprint"]]
    again = preflight(tmp_path / "train.jsonl", known_overfits=known)
    assert again["overfit"]["status"] == "known" and again["passed"]
    always = {"preflight": {"overfit_examples": 4, "overfit": "always"}}
    forced = preflight(tmp_path / "train.jsonl", known_overfits=known, config=make_config(**always))
    assert forced["overfit"]["status"] == "passed"


def test_wrong_data_stop_it_before_the_base_is_loaded(tmp_path: Path) -> None:
    base = copy_base(tmp_path / "base")
    (base / "model.safetensors").write_bytes(b"not read")
    lines = [{**line, "messages": [*line["messages"][:1], line["messages"][1]]} for line in make_lines(30)]
    for line in lines:
        line["messages"][1]["content"] = line["messages"][1]["content"][:-8]
    document = preflight(write_lines(tmp_path / "train.jsonl", lines), base_model=base)
    failed = {check["code"]: check for check in document["checks"] if check["status"] == "failed"}
    assert failed.keys() == {"answers-finished"}
    assert failed["answers-finished"]["row"] == "never-stops"
    assert document["overfit"] is None and document["batches"]
    error = document["error"]
    assert "handbook: never-stops" in error.message
    assert [fault.code for fault in error.faults] == ["answers-finished"]


def test_a_refusal_of_the_template_is_a_failed_check(tmp_path: Path) -> None:
    base = copy_base(tmp_path / "base")
    template = "{% for m in messages %}{{ m['content'] + '\n' }}{% endfor %}"
    for file in base.glob("chat_template*"):
        file.write_text(template)
    document = preflight(write_lines(tmp_path / "train.jsonl", make_lines(8)), base_model=base)
    assert [(check["code"], check["row"]) for check in document["checks"]] == [
        ("end-token-missing", "never-stops")
    ]


def test_a_file_that_cannot_be_read_is_no_fault_of_the_training(tmp_path: Path) -> None:
    (tmp_path / "train.jsonl").write_text("no json\n")
    report = RecordingReporter()
    with pytest.raises(DataInvalid):
        run_preflight(
            base_model=pretrained_llama(),
            training_data=tmp_path / "train.jsonl",
            holdout=None,
            config=make_config(),
            report=report,
        )
    assert report.records == []


def test_only_the_data_are_looked_at_when_asked(tmp_path: Path) -> None:
    document = preflight(write_lines(tmp_path / "train.jsonl", make_lines(8)), is_data_only=True)
    assert document["passed"] and document["overfit"] is None and document["first_step"] is None


def test_packing_is_tried_out_where_it_is_on(tmp_path: Path) -> None:
    data = write_lines(tmp_path / "train.jsonl", make_lines(12))
    packed = {"training": {**SETTINGS["training"], "packing": True, "max_length_tokens": 256}}
    document = preflight(data, config=make_config(**packed))
    statuses = {check["code"]: check["status"] for check in document["checks"]}
    assert statuses["packing-isolated"] == "passed"
    assert statuses["accumulation-exact"] == "passed"


class OtherFails(SingleProcess):
    """Two processes of which the other one has failed."""

    size = 2

    def sum_numbers(self, *numbers: float) -> tuple[float, ...]:
        return tuple(number + 1 for number in numbers)


def test_no_process_goes_on_alone(tmp_path: Path) -> None:
    config = make_config()
    rows = read_rows(tmp_path, config)
    base, precision = load_base(rows, config)
    trial = Preflight(
        base_model=pretrained_llama(), config=config, report=RecordingReporter(), group=OtherFails()
    )
    trial.try_model(base, rows, precision)
    with pytest.raises(TrainingFailed, match="other-processes"):
        trial.conclude()


def digest(folder: Path) -> str:
    return hashlib.sha256((folder / "adapter_model.safetensors").read_bytes()).hexdigest()


def test_the_trained_adapter_is_the_same_with_and_without(tmp_path: Path) -> None:
    data = write_lines(tmp_path / "train.jsonl", make_lines(12))
    for name, known in (("without", None), ("with", ())):
        run_training(
            base_model=pretrained_llama(),
            training_data=data,
            holdout=None,
            config=make_config(),
            output=tmp_path / name,
            report=RecordingReporter(),
            known_overfits=known,
        )
    assert digest(tmp_path / "with") == digest(tmp_path / "without")
