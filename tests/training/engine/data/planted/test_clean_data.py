"""Clean data: nothing is found, nothing is changed, and only the stated part of the longest is dropped."""

import json
from pathlib import Path

import pytest

from tests.training.engine.data.planted.backgrounds import BACKGROUNDS
from tests.training.engine.data.planted.cases import NOTHING, Case, prepare, read_lines
from training.engine.data.preparation.inputs import PreparationInputs
from training.engine.data.preparation.run import run_preparation
from training.engine.data.recipe import Recipe
from training.engine.progress import SilentReporter

TICKETS = Path(__file__).parents[5] / "examples" / "tickets"


@pytest.mark.parametrize(("seed", "num_rows"), [(21, 30), (22, 60)])
@pytest.mark.parametrize("background", BACKGROUNDS)
def test_nothing_is_found_in_clean_rows(background: str, seed: int, num_rows: int, tmp_path: Path) -> None:
    case = Case(
        name="clean", background=background, planted="nothing", num_rows=num_rows, seed=seed, found={}
    )
    done = prepare(case, tmp_path)
    assert done.observed == NOTHING
    assert done.report is not None
    assert done.report["intake"]["num_examples"] == num_rows
    written = read_lines(done.output / "sets/train.jsonl")
    texts = [[item for item in row["messages"] if item["role"] != "system"] for row in written]
    assert texts == [row["messages"] for row in done.material.background]


@pytest.mark.parametrize("name", ["train", "holdout", "ood"])
def test_the_committed_demo_sets_are_clean(name: str, tmp_path: Path) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    others = {other: TICKETS / f"{other}.jsonl" for other in ("train", "holdout", "ood") if other != name}
    inputs = PreparationInputs(sources=TICKETS / f"{name}.jsonl", evaluation_sets=others)
    result = run_preparation(
        inputs,
        Recipe.from_json({"role": name}),
        output=tmp_path / "prepared",
        scratch=scratch,
        report=SilentReporter(),
    )
    report = result.report
    assert [item for item in report["findings"] if item["severity"] != "info"] == []
    assert (report["intake"]["num_bad"], report["intake"]["notices"]) == (0, [])
    done = {step["name"]: step["reasons"] for step in report["steps"] if step["reasons"]}
    # The default keeps the lengths up to the quantile 0.99.
    num_cut = done.pop("cut_lengths")["too-long"]
    assert done == {}
    assert num_cut <= report["intake"]["num_rows"] / 100
    source = {row["id"]: row["messages"] for row in read_lines(TICKETS / f"{name}.jsonl")}
    written = read_lines(tmp_path / f"prepared/sets/{name}.jsonl")
    assert len(written) == len(source) - num_cut
    assert all(row["messages"] == source[row["id"]] for row in written)
    assert all(not pair["num_exact"] and not pair["num_near"] for pair in report["leakage"]["matrix"])
    json.dumps(report, allow_nan=False)
