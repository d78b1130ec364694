"""The whole way on real public data, where that folder is at hand."""

import os
from pathlib import Path
from typing import Any

import pytest

from training.engine.data.preparation.inputs import PreparationInputs
from training.engine.data.preparation.run import run_preparation
from training.engine.data.recipe import Recipe
from training.engine.progress import SilentReporter

SHARED = Path(os.environ.get("ASSAY_SHARED", Path(__file__).parents[5] / "shared")) / "data"
pytestmark = pytest.mark.skipif(
    not SHARED.is_dir(), reason=f"the shared data is not at {SHARED} (set ASSAY_SHARED)"
)

SETS: tuple[tuple[str, dict[str, Any], int], ...] = (
    ("snips/train.jsonl", {"split": {"stratify_by": "answer/intent"}}, 2000),
    ("banking/train.jsonl", {"split": {"stratify_by": "answer/intent"}}, 1928),
    (
        "zh/tickets_raw.jsonl",
        {"intake": {"columns": {"input": "text", "answer": "label"}}, "split": {}},
        974,
    ),
    ("instructions/general.jsonl", {"role": "general"}, 494),
)


@pytest.mark.parametrize(("name", "raw", "num_rows"), SETS, ids=[item[0].split("/")[0] for item in SETS])
def test_real_data_is_prepared_without_loss_of_count_or_false_errors(
    tmp_path: Path, name: str, raw: dict[str, Any], num_rows: int
) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    result = run_preparation(
        PreparationInputs(sources=SHARED / name),
        Recipe.from_json(raw),
        output=tmp_path / "prepared",
        scratch=scratch,
        report=SilentReporter(),
    )
    report = result.report
    assert (report["intake"]["num_rows"], report["intake"]["num_bad"]) == (num_rows, 0)
    num_dropped = sum(step["num_dropped"] for step in report["steps"])
    assert sum(item["num_examples"] for item in report["sets"].values()) == num_rows - num_dropped
    # The longest hundredth, and repeats of which the Chinese requests have some (44 exact ones).
    assert num_dropped <= 0.07 * num_rows
    assert not [item for item in report["findings"] if item["severity"] == "error"]
