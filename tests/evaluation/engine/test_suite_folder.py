from pathlib import Path

import pytest

from evaluation.engine.errors import SuiteError
from evaluation.engine.suite_folder import load_suite_folder
from tests.evaluation.engine.samples import suite_document, task_line, write_lines, write_suite


def test_a_sound_folder_is_read(tmp_path: Path) -> None:
    suite = load_suite_folder(write_suite(tmp_path))
    assert [len(suite.examples(role)) for role in ("holdout", "ood", "regression", "canary")] == [3, 3, 2, 3]


def test_faults_of_all_files_come_at_once(tmp_path: Path) -> None:
    write_suite(tmp_path, suite_document(min_score=2))
    (tmp_path / "ood.jsonl").unlink()
    (tmp_path / "canary.jsonl").write_text("{\n")
    with pytest.raises(SuiteError) as error:
        load_suite_folder(tmp_path)
    assert [(fault.code, fault.where) for fault in error.value.faults] == [
        ("suite-schema", "suite.json: min_score"),
        ("file-missing", "ood.jsonl"),
        ("not-json", "canary.jsonl line 1"),
    ]


def test_references_must_be_json_and_valid(tmp_path: Path) -> None:
    write_suite(tmp_path)
    prose = {
        "id": "p",
        "messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "a bug"}],
    }
    wrong = {
        "id": "w",
        "messages": [{"role": "user", "content": "b"}, {"role": "assistant", "content": "{}"}],
    }
    write_lines(tmp_path / "holdout.jsonl", [prose, wrong])
    with pytest.raises(SuiteError) as error:
        load_suite_folder(tmp_path)
    assert [(fault.code, fault.where) for fault in error.value.faults] == [
        ("reference-not-json", "holdout.jsonl: p"),
        ("reference-schema-invalid", "holdout.jsonl: w"),
    ]


def test_a_demonstration_must_not_be_an_example(tmp_path: Path) -> None:
    write_suite(tmp_path)
    write_lines(tmp_path / "ood.jsonl", [task_line(0, "  screen is BLACK")])
    with pytest.raises(SuiteError) as error:
        load_suite_folder(tmp_path)
    assert [fault.code for fault in error.value.faults] == ["few-shot-leak"]


def test_a_missing_definition_is_named(tmp_path: Path) -> None:
    write_suite(tmp_path)
    (tmp_path / "suite.json").unlink()
    with pytest.raises(SuiteError, match=r"suite\.json"):
        load_suite_folder(tmp_path)
