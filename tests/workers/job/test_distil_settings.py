from pathlib import Path
from typing import Any

import pytest

from training.engine.errors import ConfigInvalid
from workers.job.distil_settings import DistilSettings, with_teachers

TEACHER = {"name": "a", "instruction_variants": ["one", "two", "three"]}


def faults_of(raw: dict[str, Any], backend: str | None = None) -> list[tuple[str, str]]:
    with pytest.raises(ConfigInvalid) as refused:
        DistilSettings.from_json(raw, backend=backend)
    assert refused.value.code == "distil-settings-invalid"
    return [(fault.code, fault.where) for fault in refused.value.faults]


def test_what_is_left_out_takes_its_default(tmp_path: Path) -> None:
    settings = DistilSettings.from_json({"teachers": [{**TEACHER, "model": str(tmp_path)}]})
    assert settings.distillation.num_candidates == 3
    assert settings.judge is None
    assert settings.backend.name in ("vllm", "transformers")
    assert settings.to_json()["teachers"][0]["model"] == tmp_path.name  # no path of this machine


def test_the_command_line_chooses_the_engine(tmp_path: Path) -> None:
    raw = {"teachers": [{**TEACHER, "model": str(tmp_path)}], "backend": {"name": "vllm", "dtype": "float32"}}
    backend = DistilSettings.from_json(raw, backend="transformers").backend
    assert (backend.name, backend.dtype) == ("transformers", "float32")
    assert DistilSettings.from_json(raw).backend.name == "vllm"


def test_every_fault_of_every_section_at_once(tmp_path: Path) -> None:
    raw = {
        "distillation": {"num_candidates": 0, "tempreature": 1},
        "teachers": [{"name": "a", "model": str(tmp_path / "none"), "instruction_variants": ["x"]}],
        "judge": str(tmp_path / "no-judge"),
        "backend": {"max_model_len": 0},
        "intake": {"format": "docx"},
        "techers": [],
    }
    assert faults_of(raw) == [
        ("unknown-key", "techers"),
        ("invalid-value", "distillation.num_candidates"),
        ("unknown-key", "distillation.tempreature"),
        ("backend-invalid", "backend"),
        ("invalid-value", "intake.format"),
        ("model-missing", "teachers.0.model"),
        ("model-missing", "judge"),
    ]


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"teachers": []}, ("wrong-type", "teachers")),
        ({"teachers": [{"name": "a"}]}, ("missing-key", "teachers.0.model")),
        ({"distillation": {"num_candidates": 4}}, ("too-few-sources", "teachers")),
        ({"distillation": {"max_tokens": 2048}}, ("backend-invalid", "backend")),
        ({"distillation": []}, ("wrong-type", "distillation")),
        ({"backend": "vllm"}, ("backend-invalid", "backend")),
        ({"backend": {"max_model_len": "long"}}, ("backend-invalid", "backend")),
        ({"intake": []}, ("wrong-type", "intake")),
        ({"judge": 3}, ("model-missing", "judge")),
    ],
)
def test_single_faults(changes: dict[str, Any], fault: tuple[str, str], tmp_path: Path) -> None:
    assert fault in faults_of({"teachers": [{**TEACHER, "model": str(tmp_path)}], **changes})


def test_models_come_from_the_file_or_the_command_line(tmp_path: Path) -> None:
    raw: dict[str, Any] = {
        "teachers": [{**TEACHER, "model": "models/a"}, {**TEACHER, "name": "b"}],
        "judge": "models/j",
    }
    merged = with_teachers(raw, ["b=elsewhere/b", "c=c"], relative_to=tmp_path)
    assert [(item["name"], item["model"]) for item in merged["teachers"]] == [
        ("a", str(tmp_path / "models/a")),
        ("b", "elsewhere/b"),
        ("c", "c"),
    ]
    assert merged["teachers"][2]["instruction_variants"] == ["{system}"]
    assert merged["judge"] == str(tmp_path / "models/j")
    assert raw["teachers"][0]["model"] == "models/a"


@pytest.mark.parametrize("pairs", [["a"], ["=x"], ["a="], ["a=x", "a=y"]])
def test_pairs_that_name_no_teacher(pairs: list[str]) -> None:
    with pytest.raises(ConfigInvalid) as refused:
        with_teachers({}, pairs, relative_to=None)
    assert refused.value.code == "teacher-option-invalid"


def test_teachers_that_are_no_list_are_left_to_the_reader() -> None:
    merged = with_teachers({"teachers": "a"}, ["a=x"], relative_to=None)
    assert ("wrong-type", "teachers") in faults_of(merged)
