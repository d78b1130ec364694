"""The review screen works with plain forms; a second reviewer does not overwrite the first."""

from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.test import Client
from django.urls import reverse

from registry.models import DatasetVersion
from registry.services.actors import actor_of_user
from registry.services.datasets import register_dataset_version
from tests.fixtures.registry import example, jsonl, store_files
from training.models import ReviewTask
from training.selectors.reviews import get_review_item
from training.services.reviews import create_task

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("store")]

SCRIPT = "<script>alert(1)</script>"


def reviewer(name: str) -> Client:
    user = User.objects.create_user(name, is_staff=True)
    user.groups.add(Group.objects.get(name="reviewers"))
    client = Client()
    client.force_login(user)
    return client


@pytest.fixture
def anna() -> Client:
    return reviewer("anna")


@pytest.fixture
def task(anna: Client) -> ReviewTask:
    lines = [
        example(f"{number}\u200b", tags={"lang": SCRIPT}, note=f"\u202e{SCRIPT}", source="x")
        | {"messages": [{"role": "user", "content": SCRIPT}, {"role": "assistant", "content": '{"a": 1}'}]}
        for number in range(3)
    ]
    artifact = store_files({"data.jsonl": jsonl(*lines)}, kind="dataset")
    user = User.objects.get(username="anna")
    root = actor_of_user(User.objects.create_superuser("root"))
    version, _ = register_dataset_version(
        name="tickets", role="holdout", artifact_digest=artifact.digest, actor=root
    )
    return create_task(version=version, actor=actor_of_user(user))


def item_url(task: ReviewTask, position: int) -> str:
    return reverse("admin:training_reviewtask_item", args=[task.pk, position])


def judge(client: Client, task: ReviewTask, position: int, verdict: str, revision: int, **more: str) -> Any:
    body = {"verdict": verdict, "revision": revision, **more}
    return client.post(item_url(task, position), body)


def test_what_is_shown(anna: Client, task: ReviewTask) -> None:
    first = anna.get(reverse("admin:training_reviewtask_review", args=[task.pk]))
    assert first["Location"] == item_url(task, 1)
    text = anna.get(first["Location"]).content.decode()
    assert "0/3" in text and "training/review_keys.js" in text
    assert SCRIPT not in text and "\u202e" not in text
    # A JSON answer is laid out to be read; the fix begins with the answer as it stands.
    assert "&quot;a&quot;: 1" in text and "{&quot;a&quot;: 1}</textarea>" in text
    assert anna.get(item_url(task, 4)).status_code == 404


def test_verdicts_lead_to_the_next_example(anna: Client, task: ReviewTask) -> None:
    assert judge(anna, task, 1, "good", 0)["Location"] == item_url(task, 2)
    assert judge(anna, task, 3, "bad", 0, note="Nonsense")["Location"] == item_url(task, 2)
    fixed = judge(anna, task, 2, "fix", 0, fixed_answer='{"a":\r\n 2}')
    assert fixed["Location"] == item_url(task, 2)
    item = get_review_item(task, 2)
    # A form's line ends become those of the data.
    assert (item.verdict, item.fixed_answer, item.reviewer) == (
        "fix",
        '{"a":\n 2}',
        User.objects.get(username="anna"),
    )
    assert get_review_item(task, 3).note == "Nonsense"
    text = anna.get(item_url(task, 2)).content.decode()
    assert "3/3" in text and "1 good · 1 bad · 1 to fix" in text


def test_faults_keep_what_was_written(anna: Client, task: ReviewTask) -> None:
    answer = judge(anna, task, 1, "fix", 0, fixed_answer='{"a": oops')
    text = answer.content.decode()
    assert answer.status_code == 422
    assert "oops</textarea>" in text and "the fixed one is not" in text
    assert judge(anna, task, 1, "good", -1).status_code == 422
    assert get_review_item(task, 1).verdict == ""


def test_two_reviewers(anna: Client, task: ReviewTask) -> None:
    ben = reviewer("ben")
    judge(anna, task, 1, "good", 0)
    answer = judge(ben, task, 1, "fix", 0, fixed_answer='{"a": 7}', note="mine")
    text = answer.content.decode()
    assert answer.status_code == 412
    assert "anna gave a verdict on this example meanwhile" in text
    # What the second has written is still there, and may be sent on the new revision.
    assert "{&quot;a&quot;: 7}</textarea>" in text and 'value="mine"' in text
    assert 'name="revision" value="1"' in text
    assert get_review_item(task, 1).verdict == "good"
    assert judge(ben, task, 1, "fix", 1, fixed_answer='{"a": 7}').status_code == 302


def test_undo(anna: Client, task: ReviewTask) -> None:
    ben = reviewer("ben")
    undo = reverse("admin:training_reviewtask_undo", args=[task.pk])
    judge(anna, task, 1, "good", 0)
    judge(anna, task, 2, "bad", 0)
    judge(ben, task, 3, "good", 0)
    assert anna.get(undo).status_code == 405
    assert anna.post(undo)["Location"] == item_url(task, 2)
    assert (get_review_item(task, 2).verdict, get_review_item(task, 3).verdict) == ("", "good")
    assert anna.post(undo)["Location"] == item_url(task, 1)
    assert anna.post(undo)["Location"] == reverse("admin:training_reviewtask_review", args=[task.pk])
    judge(anna, task, 1, "good", 2)
    assert judge(anna, task, 1, "", 3)["Location"] == item_url(task, 1)
    assert get_review_item(task, 1).verdict == ""


def test_close(anna: Client, task: ReviewTask) -> None:
    close = reverse("admin:training_reviewtask_close", args=[task.pk])
    for position in (1, 2):
        judge(anna, task, position, "good", 0)
    early = anna.post(close, {"apply_fixes": "on"}, follow=True)
    assert "1 of 3 examples have no verdict yet" in early.content.decode()
    judge(anna, task, 3, "bad", 0)
    done = anna.post(close, {"apply_fixes": "on"}, follow=True)
    result = DatasetVersion.objects.get(number=2)
    assert (result.num_examples, result.is_verified) == (2, True)
    text = done.content.decode()
    assert "tickets@2 was made of it" in text and "2 good, 1 left out, 0 fixed by anna" in text
    closed = anna.get(item_url(task, 1)).content.decode()
    assert "The review was closed" in closed and "verdict-form" not in closed
    assert judge(anna, task, 1, "bad", 1).status_code == 409


def test_rights(task: ReviewTask) -> None:
    reader = Client()
    reader.force_login(User.objects.create_user("reader", is_staff=True))
    text = reader.get(item_url(task, 1)).content.decode()
    assert "verdict-form" not in text and "Close the review" not in text
    assert judge(reader, task, 1, "good", 0).status_code == 403
    assert get_review_item(task, 1).verdict == ""
    stranger = Client()
    stranger.force_login(User.objects.create_user("stranger"))
    assert stranger.get(item_url(task, 1)).status_code == 302
