"""Reviews: an unbiased choice, verdicts that do not overwrite each other, and the version that results."""

import json
from collections import Counter
from typing import Any

import pytest

from registry.errors import ScopeError, ValidationFailed
from registry.models import AuditEvent, DatasetVersion
from registry.services.actors import SYSTEM
from registry.services.datasets import register_dataset_version
from tests.fixtures.evaluation import answer, dataset_line, make_dataset
from tests.fixtures.registry import Caller, example, jsonl, make_caller, store_files
from training.errors import (
    ReviewerNeeded,
    TrainingConflict,
    TrainingInvalid,
    TrainingNotFound,
    VerdictChanged,
)
from training.models import ReviewItem, ReviewTask
from training.selectors.reviews import (
    find_next_open_position,
    get_review,
    get_review_item,
    list_review_items,
    list_reviews,
    review_summary,
)
from training.services import review_results
from training.services.review_results import close_task
from training.services.reviews import (
    MAX_EXAMPLES,
    answer_of_line,
    choose_examples,
    create_task,
    iterate_lines,
    record_verdict,
)

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("store")]


@pytest.fixture
def anna() -> Caller:
    return make_caller("review")


def make_version(*lines: Any, role: str = "holdout", name: str = "tickets") -> DatasetVersion:
    artifact = store_files({"data.jsonl": jsonl(*lines)}, kind="dataset")
    card = {"preparation": "p", "recipe_digest": "d", "lengths": {}}
    version, _ = register_dataset_version(
        name=name, role=role, artifact_digest=artifact.digest, actor=SYSTEM, card=card
    )
    return version


def judge(task: ReviewTask, caller: Caller, position: int, verdict: str, fixed: str = "") -> ReviewItem:
    item = get_review_item(task, position)
    return record_verdict(
        task=task,
        position=position,
        verdict=verdict,
        fixed_answer=fixed,
        expected_revision=item.revision,
        actor=caller.actor,
    )


def judge_by_id(task: ReviewTask, caller: Caller, verdicts: dict[str, tuple[str, str]]) -> None:
    for item in list_review_items(task):
        if item.example_id in verdicts:
            judge(task, caller, item.position, *verdicts[item.example_id])


def lines_of(version: DatasetVersion | None) -> dict[str, dict[str, Any]]:
    assert version is not None
    return {example_id: json.loads(line) for example_id, line in iterate_lines(version)}


def test_the_choice_is_decided_by_seed_and_bytes_alone(anna: Caller) -> None:
    version = make_dataset("tickets", "train", num=150)
    task = create_task(version=version, actor=anna.actor, seed=7)
    ids = [item.example_id for item in list_review_items(task)]
    assert (task.num_examples, len(set(ids))) == (100, 100)
    assert [item.position for item in list_review_items(task)] == list(range(1, 101))
    again = create_task(version=version, actor=anna.actor, seed=7)
    assert [item.example_id for item in list_review_items(again)] == ids
    assert [example_id for example_id, _ in choose_examples(version, seed=8, num_examples=100)] != ids


def test_every_example_is_chosen_equally_often() -> None:
    version = make_dataset("tickets", "train", num=20)
    counts: Counter[str] = Counter()
    for seed in range(400):
        counts.update(example_id for example_id, _ in choose_examples(version, seed=seed, num_examples=5))
    # 400 seeds x 5 of 20: 100 each; the standard deviation of a binomial (400, 1/4) is 8.7, five of them 43.
    assert len(counts) == 20
    assert all(abs(count - 100) < 43 for count in counts.values()), counts


def test_fewer_examples_than_asked_for(anna: Caller) -> None:
    version = make_dataset("tickets", "holdout", num=7)
    assert create_task(version=version, actor=anna.actor).num_examples == 7
    assert create_task(version=version, actor=anna.actor, num_examples=None).num_examples == 7
    for number in (0, -1):
        with pytest.raises(TrainingInvalid):
            create_task(version=version, actor=anna.actor, num_examples=number)
    version.num_examples = MAX_EXAMPLES + 1
    with pytest.raises(TrainingInvalid, match="a review has 1 to 2000"):
        create_task(version=version, actor=anna.actor, num_examples=None)


def test_verdicts_are_counted_and_taken_back(anna: Caller) -> None:
    version = make_dataset("tickets", "train", num=4)
    task = create_task(version=version, actor=anna.actor)
    judge(task, anna, 1, "good")
    judge(task, anna, 2, "bad")
    item = judge(task, anna, 3, "fix", answer("low"))
    assert (item.reviewer, item.revision, item.reviewed_at is None) == (anna.user, 1, False)
    version.refresh_from_db()
    assert (version.num_reviewed, version.num_bad, version.num_to_fix) == (3, 1, 1)
    assert find_next_open_position(task, after=1) == 4
    assert find_next_open_position(task, after=4) == 4
    taken_back = judge(task, anna, 2, "")
    assert (taken_back.verdict, taken_back.reviewer, taken_back.revision) == ("", None, 2)
    judge(task, anna, 4, "good")
    assert find_next_open_position(task, after=4) == 2
    version.refresh_from_db()
    assert (version.num_reviewed, version.num_bad, version.num_to_fix) == (3, 0, 1)
    counted = get_review(task.pk)
    assert (counted.num_open, counted.num_good, counted.num_bad, counted.num_to_fix) == (1, 2, 0, 1)
    assert AuditEvent.objects.filter(action="review.verdict").count() == 5


def test_an_example_of_two_reviews_counts_once(anna: Caller) -> None:
    version = make_dataset("tickets", "train", num=3)
    first = create_task(version=version, actor=anna.actor)
    second = create_task(version=version, actor=anna.actor)
    judge(first, anna, 1, "good")
    judge(second, anna, 1, "bad")
    summary = review_summary(version)
    assert (summary.num_reviewed, summary.num_good, summary.num_bad) == (1, 0, 1)
    assert list(list_reviews(version=version)) == [second, first]


def test_two_reviewers_do_not_overwrite_each_other(anna: Caller) -> None:
    ben = make_caller("review")
    task = create_task(version=make_dataset("tickets", "train", num=2), actor=anna.actor)
    judge(task, anna, 1, "good")
    with pytest.raises(VerdictChanged) as caught:
        record_verdict(task=task, position=1, verdict="bad", expected_revision=0, actor=ben.actor)
    assert caught.value.status == 412
    assert caught.value.fields == {
        "position": 1,
        "reviewer": anna.user.username,
        "verdict": "good",
        "etag": "r1",
        "revision": 1,
    }
    assert get_review_item(task, 1).verdict == "good"


def test_faults_of_a_verdict(anna: Caller) -> None:
    task = create_task(version=make_dataset("tickets", "holdout", num=2), actor=anna.actor)
    cases: list[tuple[str, str, list[str]]] = [
        ("fine", "", ["verdict-unknown"]),
        ("fix", " ", ["fixed-answer-missing"]),
        ("good", "x", ["fixed-answer-unused"]),
        ("fix", '{"urgency": "low"', ["fixed-answer-not-json"]),
        ("fix", "\0" * 200_001, ["text-too-long", "unstorable-text"]),
    ]
    for verdict, fixed, codes in cases:
        with pytest.raises(TrainingInvalid) as caught:
            judge(task, anna, 1, verdict, fixed)
        assert [fault.code for fault in caught.value.faults] == codes
    with pytest.raises(TrainingNotFound):
        judge(task, anna, 3, "good")
    assert get_review(task.pk).num_open == 2


def test_rights(anna: Caller) -> None:
    version = make_dataset("tickets", "train", num=2)
    task = create_task(version=version, actor=anna.actor)
    stranger = make_caller("read", "submit").actor
    with pytest.raises(ScopeError):
        create_task(version=version, actor=stranger)
    with pytest.raises(ScopeError):
        record_verdict(task=task, position=1, verdict="good", expected_revision=0, actor=stranger)
    with pytest.raises(ScopeError):
        close_task(task=task, actor=stranger)
    with pytest.raises(ReviewerNeeded):
        record_verdict(task=task, position=1, verdict="good", expected_revision=0, actor=SYSTEM)


def test_fixes_of_a_training_set(anna: Caller) -> None:
    plain = example("kept", tags={"z": "1", "a": "2"})
    version = make_version(plain, example("bad"), example("fix", reference_source="rule"), role="train")
    task = create_task(version=version, actor=anna.actor)
    judge_by_id(task, anna, {"kept": ("good", ""), "bad": ("bad", ""), "fix": ("fix", "No.")})
    closed = close_task(task=task, actor=anna.actor)
    assert (closed.state, str(closed.result)) == ("closed", "tickets@2")
    lines = lines_of(closed.result)
    # A training example needs no confirmation: it stays as it was, to the byte.
    assert lines["kept"] == plain
    assert list(lines) == ["kept", "fix"]
    assert lines["fix"]["messages"][-1]["content"] == "No."
    assert lines["fix"]["reference_source"] == "person"
    assert "confirmed_by" not in lines["fix"]


def test_a_full_review_confirms_an_evaluation_set(anna: Caller) -> None:
    lines = [example(str(number), reference_source="model") for number in range(5)]
    version = make_version(*lines)
    assert not version.is_verified
    task = create_task(version=version, actor=anna.actor, num_examples=None)
    verdicts = {str(number): ("good", "") for number in range(4)} | {"4": ("fix", "可以使用")}
    judge_by_id(task, anna, verdicts)
    closed = close_task(task=task, actor=anna.actor)
    assert closed.result is not None and closed.result.is_verified
    result = lines_of(closed.result)
    # MISSION F4: a person confirmed every reference; where it came from stays said.
    assert result["0"] == lines[0] | {"confirmed_by": anna.user.username}
    assert result["4"]["reference_source"] == "person"
    assert result["4"]["messages"][-1]["content"] == "可以使用"
    card = closed.result.card
    assert (card["preparation"], card["recipe_digest"]) == ("p", "d")
    # The numbers are counted anew: what stood in the card of the old version is not true any more.
    assert (card["num_examples"], card["num_confirmed"]) == (5, 5)
    assert card["lengths"]["answer_characters"]["num_values"] == 5
    assert card["review"] == {
        "id": str(task.pk),
        "from": "tickets@1",
        "from_artifact": version.artifact_id,
        "num_examples": 5,
        "num_good": 4,
        "num_bad": 0,
        "num_fixed": 1,
        "num_open": 0,
        "reviewers": [anna.user.username],
    }
    assert AuditEvent.objects.get(action="review.close").after == {"state": "closed", "result": "tickets@2"}


def test_fixes_where_the_answer_stands_elsewhere(anna: Caller) -> None:
    regression = make_version(dataset_line("regression", 0), role="regression", name="chat")
    canary = make_version(
        {"id": "c", "messages": [{"role": "user", "content": "?"}]}, role="canary", name="tricky"
    )
    results = []
    for version in (regression, canary):
        task = create_task(version=version, actor=anna.actor)
        judge(task, anna, 1, "fix", "yes, of course")
        results.append(lines_of(close_task(task=task, actor=anna.actor).result))
    changed = results[0]["regression-0"]
    assert changed == dataset_line("regression", 0) | {
        "reference": "yes, of course",
        "reference_source": "person",
        "confirmed_by": anna.user.username,
    }
    assert results[1]["c"]["messages"][-1] == {"role": "assistant", "content": "yes, of course"}


def test_answers_that_a_reviewer_sees() -> None:
    assert answer_of_line(json.dumps(example())) == "Yes."
    assert answer_of_line(json.dumps(dataset_line("regression", 0))) == "yes"
    assert answer_of_line(json.dumps({"id": "a", "messages": [{"role": "user", "content": "?"}]})) == ""


def test_a_review_that_changes_nothing_results_in_the_same_version(anna: Caller) -> None:
    version = make_version(example("a"), role="train")
    task = create_task(version=version, actor=anna.actor)
    judge(task, anna, 1, "good")
    assert close_task(task=task, actor=anna.actor).result == version
    other = create_task(version=version, actor=anna.actor)
    judge(other, anna, 1, "bad")
    assert close_task(task=other, actor=anna.actor, apply_fixes=False).result is None


def test_closing_too_early_or_twice(anna: Caller) -> None:
    version = make_version(example("a"), example("b"))
    task = create_task(version=version, actor=anna.actor)
    judge(task, anna, 1, "good")
    with pytest.raises(TrainingConflict, match="1 of 2 examples"):
        close_task(task=task, actor=anna.actor)
    closed = close_task(task=task, actor=anna.actor, allow_open=True)
    assert closed.result is not None
    assert closed.result.card["review"]["num_open"] == 1
    assert closed.result.num_verified == 1
    for attempt in (
        lambda: close_task(task=closed, actor=anna.actor),
        lambda: close_task(task=task, actor=anna.actor, allow_open=True),
        lambda: judge(task, anna, 2, "good"),
    ):
        with pytest.raises(TrainingConflict, match="closed"):
            attempt()


def test_nothing_left(anna: Caller) -> None:
    task = create_task(version=make_version(example("a")), actor=anna.actor)
    judge(task, anna, 1, "bad")
    with pytest.raises(ValidationFailed, match="no example"):
        close_task(task=task, actor=anna.actor)
    assert get_review(task.pk).state == "open"


def test_a_verdict_given_while_the_review_is_closed(anna: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    task = create_task(version=make_version(example("a"), example("b")), actor=anna.actor)
    judge_by_id(task, anna, {"a": ("good", ""), "b": ("good", "")})
    check = review_results.check_dataset_version

    def check_slowly(**options: Any) -> Any:
        judge(task, anna, 1, "bad")
        return check(**options)

    monkeypatch.setattr(review_results, "check_dataset_version", check_slowly)
    with pytest.raises(TrainingConflict, match="while the review was being closed"):
        close_task(task=task, actor=anna.actor)
    assert (get_review(task.pk).state, DatasetVersion.objects.count()) == ("open", 1)
