"""Variations of a run: one remedy each, with a parent."""

from typing import Any

import pytest

from registry.errors import ScopeError
from registry.models import Dataset, DatasetVersion
from registry.services.actors import SYSTEM
from registry.services.datasets import register_dataset_version
from tests.fixtures.evaluation import make_dataset
from tests.fixtures.registry import example, jsonl, make_caller, store_files
from tests.fixtures.training_runs import curve_points, finding, finish, make_run, report
from training.errors import TrainingInvalid
from training.models import TrainingRun
from training.selectors import comparison
from training.selectors.comparison import compare_relatives, list_relatives
from training.services.reviews import iterate_lines
from training.services.variations import VariationRequest, create_variation

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("store")]


def vary(run: TrainingRun, remedy: str, **changes: Any) -> TrainingRun:
    return create_variation(run=run, request=VariationRequest(remedy=remedy, **changes), actor=SYSTEM)


def refused(run: TrainingRun, remedy: str, **changes: Any) -> TrainingInvalid:
    with pytest.raises(TrainingInvalid) as caught:
        vary(run, remedy, **changes)
    assert not run.children.exists()
    return caught.value


def general(name: str, *ids: str) -> DatasetVersion:
    messages = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]
    lines = [
        example(i, messages=[*messages[:1], {"role": "assistant", "content": f"Hello {i}"}]) for i in ids
    ]
    artifact = store_files({"data.jsonl": jsonl(*lines)}, kind="dataset")
    return register_dataset_version(name=name, role="general", artifact_digest=artifact.digest, actor=SYSTEM)[
        0
    ]


def test_a_variation_differs_in_one_thing_and_has_a_parent() -> None:
    run = make_run()
    child = vary(run, "lower-rate", note="Chat dropped by 8 points.")
    assert (child.parent, child.remedy, child.name) == (run, "lower-rate", "tickets-lora-lower-rate")
    assert child.note == "The learning rate goes from 0.0002 to 0.0001. Chat dropped by 8 points."
    assert (child.purpose, child.base_model, child.holdout) == (run.purpose, run.base_model, run.holdout)
    assert list(child.datasets.all()) == list(run.datasets.all())
    changed = child.config | {"training": child.config["training"] | {"learning_rate": 2e-4}}
    assert changed == run.config
    grandchild = vary(child, "last-two-thirds", name="third")
    assert (grandchild.parent, grandchild.name) == (child, "third")
    assert grandchild.config["training"]["learning_rate"] == 1e-4


def test_a_long_name_stays_a_name() -> None:
    run = make_run("a" * 81 + "." * 1 + "b" * 14)
    child = vary(run, "last-two-thirds")
    assert child.name == "a" * 80 + "-last-two-thirds"


def test_faults_come_all_at_once() -> None:
    run = make_run()
    error = refused(run, "prayer", name="Bad name")
    assert [fault.where for fault in error.faults] == ["/name", "/remedy"]
    assert "lower-rate" in error.faults[1].message
    error = refused(run, "lower-rate", general_dataset="chat@1")
    assert [fault.code for fault in error.faults] == ["general-dataset-unused"]
    error = refused(make_run("one", config={"training": {"num_epochs": 1}}), "fewer-epochs")
    assert (error.code, error.faults[0].where) == ("remedy-not-applicable", "/remedy")
    with pytest.raises(ScopeError):
        create_variation(
            run=run, request=VariationRequest(remedy="lower-rate"), actor=make_caller("read").actor
        )


def test_the_rules_judge_a_variation_too() -> None:
    run = make_run(config={"lora": {"use_dora": True}}, allow_lint_errors=True)
    assert refused(run, "lower-rate").code == "training-lint-failed"
    assert vary(run, "lower-rate", allow_lint_errors=True).lint["is_overridden"] is True


def test_general_data_is_missing() -> None:
    make_dataset("task", "train", num=34)
    run = make_run(datasets=["task@1"])
    # 34 / 0.85 * 0.15 = 6
    error = refused(run, "more-general-data")
    assert error.code == "general-data-missing"
    assert "34 examples of the task and 0 general ones; 6 more" in error.detail
    assert "there is no general dataset outside this run" in error.detail
    general("chat", *"abcde")
    assert "chat@1, has 5" in refused(run, "more-general-data").detail
    error = refused(run, "more-general-data", general_dataset="chat@2")
    assert error.faults[0].where == "/general_dataset"
    error = refused(run, "more-general-data", general_dataset="task@1")
    assert error.faults[0].code == "dataset-role-differs"
    error = refused(run, "more-general-data", general_dataset="chat@1")
    assert "chat@1 has 5 that the run does not have" in error.detail


def test_a_part_of_the_smallest_sufficient_dataset_is_taken() -> None:
    make_dataset("task", "train", num=34)
    general("large", *(f"l{n}" for n in range(50)))
    small = general("small", *(f"s{n}" for n in range(8)))
    run = make_run(datasets=["task@1"])
    child = vary(run, "more-general-data")
    part = child.datasets.get(dataset__role="general")
    assert (str(part), part.num_examples) == ("small-part@1", 6)
    assert part.card["part_of"] == {"version": "small@1", "artifact": small.artifact_id}
    lines = dict(iterate_lines(small))
    taken = dict(iterate_lines(part))
    assert all(lines[key] == line for key, line in taken.items())
    assert [key for key in lines if key in taken] == list(taken)
    assert child.note == "6 general examples of small@1 are added to 0, so that 15% of all are general."
    assert child.job is not None
    assert "general/small-part@1.jsonl" in child.job.inputs["training_data"]["files"]
    # The same again is the same part, and so the same job.
    again = vary(run, "more-general-data", name="again")
    assert again.job == child.job
    assert Dataset.objects.get(name="small-part").versions.count() == 1
    # 6 of 40 is 15 %.
    assert refused(child, "more-general-data").code == "remedy-not-applicable"


def test_what_the_run_has_already_is_passed_over() -> None:
    make_dataset("task", "train", num=34)
    general("chat", "a", "b")
    bigger = general("chat", *"abcdef")
    run = make_run(datasets=["task@1", "chat@1"])
    child = vary(run, "more-general-data")
    added = child.datasets.get(dataset__name="chat-part")
    assert {key for key, _ in iterate_lines(added)} == set("cdef")
    assert str(bigger) == "chat@2"


def test_a_whole_version_that_fits_is_taken_as_it_is() -> None:
    make_dataset("task", "train", num=34)
    whole = general("chat", *"abcdef")
    child = vary(make_run(datasets=["task@1"]), "more-general-data", general_dataset="chat@1")
    assert whole in child.datasets.all()
    assert not Dataset.objects.filter(name="chat-part").exists()


def test_relatives_side_by_side(monkeypatch: pytest.MonkeyPatch) -> None:
    run = finish(report(make_run(), *curve_points(60), finding(step=11), finding(step=21)))
    child = vary(run, "lower-rate")
    grandchild = vary(child, "last-two-thirds")
    make_run("stranger")
    scores = {str(run.artifact_id): 0.5}
    monkeypatch.setattr(comparison, "VERDICT_SOURCES", [lambda digests: {"holdout": scores}])
    table = compare_relatives(child)
    assert [item.name for item in table.runs] == [run.name, child.name, grandchild.name]
    assert {row.name: row.values for row in table.differences} == {
        "training.learning_rate": (2e-4, 1e-4, 1e-4),
        "lora.layers": (None, None, "last_two_thirds"),
    }
    measures = {row.name: row.values for row in table.measures}
    assert measures["last step"] == (59, None, None)
    assert measures["held-out loss"][0] is not None
    assert table.verdicts[0].values == (0.5, None, None)
    assert table.findings == (("gradient-clipped-often",), (), ())
    assert compare_relatives(run).runs == table.runs


def test_a_large_family_is_cut_and_keeps_the_line() -> None:
    run = make_run()
    child = vary(run, "lower-rate")
    for number in range(30):
        vary(run, "last-two-thirds", name=f"v{number}")
    family = list_relatives(child)
    assert len(family) == 24
    assert {run, child} <= set(family)
