import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from registry.artifacts.dataset_lines import check_dataset_lines
from training.engine.data.preparation.inputs import PreparationInputs
from training.engine.data.preparation.run import PreparationResult, run_preparation
from training.engine.data.recipe import Recipe
from training.engine.errors import DataInvalid
from training.engine.progress import SilentReporter

ROOT = Path(__file__).resolve().parents[5]
KINDS = ("refund", "login", "crash")
CLEAN = ["drop_empty", "drop_duplicates"]


def row(number: int, **changes: Any) -> dict[str, Any]:
    kind = KINDS[number % 3]
    words = " ".join(f"w{number * 7 + offset}" for offset in range(6))
    return {"prompt": f"{kind} trouble {words}", "completion": json.dumps({"kind": kind}), **changes}


def write_rows(path: Path, rows: list[Any]) -> Path:
    path.write_text("".join(f"{json.dumps(item)}\n" for item in rows), encoding="utf-8")
    return path


def prepare(tmp_path: Path, raw: Mapping[str, Any], sources: Path, **inputs: Any) -> PreparationResult:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    return run_preparation(
        PreparationInputs(sources=sources, **inputs),
        Recipe.from_json(raw),
        output=tmp_path / "prepared",
        scratch=scratch,
        report=SilentReporter(),
    )


def test_every_row_is_accounted_for(tmp_path: Path) -> None:
    rows = [*(row(number) for number in range(60)), row(3), row(7, completion=" "), {"prompt": 5}]
    result = prepare(tmp_path, {"clean": CLEAN}, write_rows(tmp_path / "raw.jsonl", rows))
    report = result.report
    assert (report["intake"]["num_rows"], report["intake"]["num_bad"]) == (63, 1)
    dropped = [json.loads(line) for line in (tmp_path / "prepared/dropped.jsonl").read_text().splitlines()]
    assert {(item["step"], *item["reasons"]) for item in dropped} == {
        ("drop_empty", "empty-answer"),
        ("drop_duplicates", "exact-duplicate"),
    }
    assert result.to_values() | {"findings": None, "recipe_digest": None} == {
        "num_rows": 63,
        "num_bad": 1,
        "num_dropped": 2,
        "sets": {"train": 60},
        "findings": None,
        "recipe_digest": None,
    }
    bad = [json.loads(line) for line in (tmp_path / "prepared/bad_rows.jsonl").read_text().splitlines()]
    assert [item["row"] for item in bad] == [63]


def test_sets_are_what_the_registry_takes_and_the_report_names_their_bytes(tmp_path: Path) -> None:
    general = write_rows(
        tmp_path / "general.jsonl",
        [
            {
                "id": f"g{number}",
                "messages": [
                    {"role": "user", "content": f"Say {number} in words please."},
                    {"role": "assistant", "content": f"number {number}"},
                ],
            }
            for number in range(20)
        ],
    )
    raw = {
        "clean": CLEAN,
        "split": {"holdout_fraction": 0.2, "stratify_by": "answer/kind"},
        "mix": {"general_fraction": 0.1},
    }
    sources = write_rows(tmp_path / "raw.jsonl", [row(number) for number in range(60)])
    result = prepare(tmp_path, raw, sources, general=general)
    assert result.sets["holdout"].num_examples == 12
    # 48 task examples and a tenth of the whole general: 48 / 0.9 = 53.3, so 5.
    assert result.sets["train"].num_examples == 53
    for role, written in result.sets.items():
        with written.path.open("rb") as file:
            assert check_dataset_lines(file, role=role, file_name="x").is_valid
        assert result.report["sets"][role]["sha256"] == written.sha256
    kinds = result.report["sets"]["holdout"]["card"]["fields"]["kind"]
    assert kinds == {"crash": 4, "login": 4, "refund": 4}
    assert result.report["sets"]["train"]["card"]["num_general"] == 5
    overlaps = [
        (pair["left"], pair["right"], pair["num_exact"]) for pair in result.report["leakage"]["matrix"]
    ]
    assert overlaps == [("train", "holdout", 0)]
    card = (tmp_path / "prepared/card.md").read_text()
    assert card.startswith("# Dataset card")
    assert "| holdout | 12 |" in card


def test_a_leak_into_an_evaluation_set_is_an_error_with_ids(tmp_path: Path) -> None:
    leaked = row(5)
    ood = write_rows(
        tmp_path / "ood.jsonl",
        [
            {
                "id": "ood-1",
                "messages": [
                    {"role": "user", "content": leaked["prompt"].upper()},
                    {"role": "assistant", "content": leaked["completion"]},
                ],
            }
        ],
    )
    sources = write_rows(tmp_path / "raw.jsonl", [row(number) for number in range(30)])
    result = prepare(tmp_path, {"clean": CLEAN}, sources, evaluation_sets={"ood": ood})
    [finding] = [item for item in result.report["findings"] if item["severity"] == "error"]
    assert (finding["code"], finding["set"], finding["where"]) == ("sets-overlap", "train", "ood")
    assert finding["example_ids"] == ["raw-0000006"]


@pytest.mark.parametrize(
    ("rows", "raw", "code"),
    [
        ([{"prompt": 1, "completion": 2}] * 3, {}, "intake-refused"),
        ([row(1, completion=" ")] * 3, {"clean": ["drop_empty"]}, "nothing-left"),
        ([row(1)], {"clean": [], "split": {}}, "split-impossible"),
        ([row(n) for n in range(9)], {"clean": [], "mix": {"general_fraction": 0.1}}, "general-data-missing"),
    ],
)
def test_what_cannot_be_prepared_is_refused(tmp_path: Path, rows: list[Any], raw: Any, code: str) -> None:
    with pytest.raises(DataInvalid) as caught:
        prepare(tmp_path, raw, write_rows(tmp_path / "raw.jsonl", rows))
    assert caught.value.code == code
    assert not (tmp_path / "prepared/report.json").exists()


PROGRAM = """
import sys
from pathlib import Path
from training.engine.data.preparation.inputs import PreparationInputs
from training.engine.data.preparation.run import run_preparation
from training.engine.data.recipe import Recipe
from training.engine.progress import SilentReporter
output = Path(sys.argv[2])
scratch = output.with_suffix(".scratch")
scratch.mkdir()
recipe = Recipe.from_json({"split": {"stratify_by": "answer/kind"}})
run_preparation(PreparationInputs(sources=Path(sys.argv[1])), recipe, output=output, scratch=scratch,
                report=SilentReporter())
"""


def test_two_processes_write_the_same_bytes(tmp_path: Path) -> None:
    sources = write_rows(tmp_path / "raw.jsonl", [row(number) for number in range(80)] + [row(9)])
    written = []
    for seed in ("0", "4242"):
        output = tmp_path / f"prepared-{seed}"
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        subprocess.run(
            [sys.executable, "-c", PROGRAM, str(sources), str(output)], cwd=ROOT, env=environment, check=True
        )
        files = sorted(path for path in output.rglob("*") if path.is_file())
        written.append({path.relative_to(output): path.read_bytes() for path in files})
    assert written[0] == written[1]
    assert len(written[0]) == 7


def test_what_is_screened_for_never_stands_in_a_report(tmp_path: Path) -> None:
    secret = "anna.schmidt@firma-mail.de"
    rows: list[Any] = [row(number) for number in range(30)]
    rows[0]["prompt"] += f" write to {secret}"
    rows[1] = {**rows[0], "completion": "N/A"}
    rows[2] = {"prompt": f"{secret} broken", "completion": 5}
    result = prepare(tmp_path, {}, write_rows(tmp_path / "raw.jsonl", rows))
    for path in (tmp_path / "prepared").rglob("*"):
        assert not path.is_file() or secret not in path.read_text(encoding="utf-8"), path
    [screen] = [step for step in result.report["steps"] if step["name"] == "screen_sensitive"]
    assert screen["reasons"] == {"email-redacted": 1}


def test_answers_that_are_shifted_are_found_although_the_sets_are_shuffled(tmp_path: Path) -> None:
    rows = [row(number) for number in range(120)]
    answers = [item["completion"] for item in rows]
    kinds = [item["prompt"].split()[0] for item in rows]
    # Shift by one row, in an order of kinds that does not repeat every three rows.
    order = sorted(range(120), key=lambda number: (number * 37) % 120)
    shuffled = [rows[number] for number in order]
    for place, number in enumerate(order):
        shuffled[place] = {**rows[number], "completion": answers[order[(place + 1) % 120]]}
    assert len(set(kinds)) == 3
    raw = {"clean": [], "split": {"holdout_fraction": 0.2}, "mix": {"unchanged_fraction": 0.0}}
    result = prepare(tmp_path, raw, write_rows(tmp_path / "raw.jsonl", shuffled))
    [finding] = [item for item in result.report["findings"] if item["severity"] == "error"]
    assert finding["set"] == "raw"
    assert finding["code"].startswith("answers-")


def test_an_address_in_a_tag_is_masked_in_the_card_and_its_counts_stay(tmp_path: Path) -> None:
    secret = "t.okafor@parcelhub.io"
    rows: list[Any] = [row(number, tags={"agent": "desk 4"}) for number in range(30)]
    rows[3]["tags"] = {"agent": secret}
    result = prepare(tmp_path, {}, write_rows(tmp_path / "raw.jsonl", rows))
    tags = result.report["sets"]["train"]["card"]["tags"]["agent"]
    assert tags == {"desk 4": result.sets["train"].num_examples - 1, "[EMAIL]": 1}
    for name in ("report.json", "card.md", "understanding.json"):
        assert secret not in (tmp_path / "prepared" / name).read_text(encoding="utf-8")
