"""Every planted fault is found where the table says, on exactly the rows concerned, and nothing else is."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from registry.artifacts.dataset_lines import check_dataset_lines
from tests.training.engine.data.planted.cases import (
    NOTHING,
    Case,
    Prepared,
    prepare,
    read_lines,
    read_table,
)
from tests.training.engine.data.planted.material import FAULTS

TABLE = read_table()


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Case], Prepared]:
    """Prepares a case once for all tests of it."""
    done: dict[str, Prepared] = {}

    def get(case: Case) -> Prepared:
        if case.name not in done:
            done[case.name] = prepare(case, tmp_path_factory.mktemp(case.name))
        return done[case.name]

    return get


@pytest.mark.parametrize("case", TABLE, ids=lambda case: case.name)
def test_the_fault_is_found_and_nothing_else(case: Case, prepared: Callable[[Case], Prepared]) -> None:
    assert prepared(case).observed == {**NOTHING, **case.found}


ACCEPTED = [case for case in TABLE if "refused" not in case.found]
REFUSED = [case for case in TABLE if "refused" in case.found]


@pytest.mark.parametrize("case", ACCEPTED, ids=lambda case: case.name)
def test_no_row_is_lost_and_none_but_the_planted_is_touched(
    case: Case, prepared: Callable[[Case], Prepared]
) -> None:
    done = prepared(case)
    report = done.report
    assert report is not None
    intake = report["intake"]
    assert intake["num_rows"] == intake["num_examples"] + intake["num_bad"] + intake["num_left_out"]
    num_dropped = sum(step["num_dropped"] for step in report["steps"])
    num_written = sum(described["num_examples"] for described in report["sets"].values())
    assert num_written == intake["num_examples"] - num_dropped
    rows = {row["id"]: row for path in (done.output / "sets").iterdir() for row in read_lines(path)}
    for row in done.material.background:
        assert [item for item in rows[row["id"]]["messages"] if item["role"] != "system"] == row["messages"]


@pytest.mark.parametrize("case", ACCEPTED, ids=lambda case: case.name)
def test_the_registry_takes_the_sets_and_counts_as_the_report_does(
    case: Case, prepared: Callable[[Case], Prepared]
) -> None:
    done = prepared(case)
    assert done.report is not None
    for role, described in done.report["sets"].items():
        with (done.output / f"sets/{role}.jsonl").open("rb") as file:
            summary = check_dataset_lines(file, role=role)
        assert summary.is_valid
        assert (summary.num_examples, summary.num_verified) == (
            described["num_examples"],
            described["num_verified"],
        )


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case.name)
def test_what_is_refused_leaves_no_set_behind(case: Case, prepared: Callable[[Case], Prepared]) -> None:
    output = prepared(case).output
    assert not (output / "report.json").exists()
    assert not (output / "sets").exists()


def test_the_table_is_whole() -> None:
    faults = [case for case in TABLE if not case.is_decoy]
    assert len(faults) >= 40
    assert min(sum(case.language == language for case in faults) for language in ("en", "zh")) >= 40
    assert all(case.found for case in faults)
    names = {case.name for case in TABLE}
    assert {path.name.split(".")[0] for path in FAULTS.iterdir()} <= names
    with_nothing_planted = [case for case in TABLE if not list(FAULTS.glob(f"{case.name}.*"))]
    assert all(case.change is not None for case in with_nothing_planted)


def test_planted_ids_are_those_of_the_files() -> None:
    """The right answers speak of p1, p2 (training), q1, r1 (evaluation sets); every other id is composed."""
    for path in FAULTS.glob("*.jsonl"):
        for line in path.read_text(encoding="utf-8").removesuffix("\n").split("\n"):
            try:
                row: Any = json.loads(line)
            except ValueError:
                continue
            if isinstance(row, dict):
                assert row["id"][0] in "pqr"
