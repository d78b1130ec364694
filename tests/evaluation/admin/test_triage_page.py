"""The pages of a triage: hostile texts, words by form, conflicts, rights."""

from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.test import Client

from evaluation.models import Triage
from evaluation.selectors.triages import get_triage, get_triage_item
from registry.services.actors import actor_of_user
from tests.fixtures.registry import make_base_model
from tests.fixtures.triage import make_sorted_triage

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("store")]

SCRIPT = "<script>alert(1)</script>"
HOSTILE = f"{SCRIPT}\u202egnp.exe\x07 {{{{ triage.pk }}}}"


@pytest.fixture
def boss() -> User:
    make_base_model()
    return User.objects.create_superuser("boss")


@pytest.fixture
def page(boss: User) -> Client:
    client = Client()
    client.force_login(boss)
    return client


@pytest.fixture
def triage(boss: User) -> Triage:
    kinds = ["format"] * 4 + ["ambiguous"] + [None] * 7
    return make_sorted_triage(actor_of_user(boss), kinds, outputs={1: HOSTILE, 6: HOSTILE})


def base(triage: Triage) -> str:
    return f"/admin/evaluation/triage/{triage.pk}/report/"


def say(page: Client, triage: Triage, position: int, kind: str, **fields: Any) -> Any:
    revision = get_triage_item(triage, position).revision
    values = {"kind": kind, "revision": revision, **fields}
    return page.post(f"{base(triage)}samples/{position}/", values)


def test_the_report_shows_the_verdict_and_every_sample(page: Client, triage: Triage) -> None:
    text = page.get(base(triage)).content.decode()
    assert "Fine-tune" in text and "preliminary" in text and "0/5 confirmed" in text
    assert all(f"sample-{number}" in text for number in range(1, 13))
    assert "format 4" in text and "taken" in text


def test_hostile_output_stays_text(page: Client, triage: Triage) -> None:
    text = page.get(f"{base(triage)}samples/1/").content.decode()
    assert SCRIPT not in text and "&lt;script&gt;" in text
    assert "\u202e" not in text and "\x07" not in text and "RIGHT-TO-LEFT OVERRIDE" in text
    assert "{{ triage.pk }}" in text
    assert "planted evidence" in text and 'data-key="f"' in text


def test_a_word_leads_to_the_next_failure_and_the_end(page: Client, triage: Triage) -> None:
    for position in (1, 2, 3, 4):
        answer = say(page, triage, position, "format", note="yes")
        assert answer.headers["Location"] == f"{base(triage)}samples/{position + 1}/"
    answer = say(page, triage, 5, "style")
    assert answer.headers["Location"] == base(triage)
    assert get_triage_item(triage, 1).note == "yes"
    text = page.get(base(triage)).content.decode()
    assert "preliminary" not in text and "Store the verdict" in text
    page.post(f"{base(triage)}close/")
    closed = get_triage(triage.pk)
    assert closed.verdict is not None and closed.verdict["shares"][0]["kinds"] == {"format": 4, "style": 1}
    text = page.get(base(triage)).content.decode()
    assert "Closed by boss" in text and "Store the verdict" not in text


def test_a_conflict_keeps_what_was_written(page: Client, triage: Triage) -> None:
    say(page, triage, 1, "style")
    answer = say(page, triage, 1, "format", revision=0, note="my note")
    text = answer.content.decode()
    assert answer.status_code == 412
    assert "boss confirmed this sample meanwhile" in text and 'value="my note"' in text
    assert get_triage_item(triage, 1).confirmed_kind == "style"


def test_undo_takes_back_the_latest_word(page: Client, triage: Triage) -> None:
    say(page, triage, 1, "style")
    say(page, triage, 2, "format")
    answer = page.post(f"{base(triage)}undo/")
    assert answer.headers["Location"] == f"{base(triage)}samples/2/"
    assert [get_triage_item(triage, n).confirmed_kind for n in (1, 2)] == ["style", ""]


def test_bad_forms_and_methods(page: Client, triage: Triage) -> None:
    assert say(page, triage, 1, "magic").status_code == 422
    assert page.post(f"{base(triage)}samples/1/", {"kind": "format", "revision": "x"}).status_code == 422
    assert page.get(f"{base(triage)}samples/99/").status_code == 404
    assert page.get(f"{base(triage)}close/").status_code == 405
    assert (
        page.get(base(triage).replace(str(triage.pk), "0" * 8 + "-0000-0000-0000-" + "0" * 12)).status_code
        == 404
    )


def test_who_may_read_but_not_review_sees_no_buttons(triage: Triage) -> None:
    reader = User.objects.create_user("reader", is_staff=True)
    client = Client()
    client.force_login(reader)
    text = client.get(f"{base(triage)}samples/1/").content.decode()
    assert 'name="kind"' not in text and "planted evidence" in text
    assert say(client, triage, 1, "format").status_code == 403
    reader.groups.add(Group.objects.get(name="reviewers"))
    assert 'name="kind"' in client.get(f"{base(triage)}samples/1/").content.decode()


def test_status_and_list(page: Client, triage: Triage) -> None:
    assert page.get(f"{base(triage)}status/").json() == {"state": "sorted", "is_final": True, "job": None}
    text = page.get("/admin/evaluation/triage/").content.decode()
    assert base(triage) in text
    assert "sample-1" in page.get("/admin/evaluation/triageitem/").content.decode()
    assert page.get(f"{base(triage)}next/").headers["Location"] == f"{base(triage)}samples/1/"
