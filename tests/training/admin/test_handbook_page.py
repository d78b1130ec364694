"""The handbook's pages work with plain forms; an edit says that no later version overwrites it."""

from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.test import Client
from django.urls import reverse

from training.selectors.handbook import choose_text, get_symptom
from training.services.handbook import load_shipped_handbook

pytestmark = pytest.mark.django_db

SCRIPT = "<script>alert(1)</script>"


@pytest.fixture
def anna() -> Client:
    load_shipped_handbook()
    user = User.objects.create_user("anna", is_staff=True)
    user.groups.add(Group.objects.get(name="reviewers"))
    client = Client()
    client.force_login(user)
    return client


def page(code: str) -> str:
    return reverse("admin:training_symptom_page", args=[code])


def body(**changes: Any) -> dict[str, Any]:
    values: dict[str, Any] = {
        "revision": 0,
        "symptom_class": "not-converging",
        "detectors": "lint/a\r\n\r\nlint/b\r\n",
        "symptom_en": f"It hums. {SCRIPT}",
        "causes_en": "The fan.\r\n The pump. ",
        "treatment_en": "Listen.\r\nOil it.",
        "source_en": "",
    }
    return values | changes


def test_the_list_leads_to_the_pages(anna: Client) -> None:
    text = anna.get(reverse("admin:training_symptom_changelist")).content.decode()
    assert page("loss-flat") in text and "The training loss does not move" in text


def test_a_row_in_both_languages(anna: Client) -> None:
    text = anna.get(page("loss-flat")).content.decode()
    for language in ("en", "zh"):
        shown = choose_text(get_symptom("loss-flat"), language)
        assert shown is not None and shown.symptom in text
    assert "As it is shipped" in text and "Back to the shipped text" not in text
    assert anna.get(page("no-such-row")).status_code == 404


def test_an_edit_and_the_way_back(anna: Client) -> None:
    answer = anna.post(page("loss-flat"), body(), follow=True)
    row = get_symptom("loss-flat")
    text = choose_text(row)
    assert text is not None
    assert (text.causes, text.treatment, row.detectors) == (
        ["The fan.", "The pump."],
        ["Listen.", "Oil it."],
        ["lint/a", "lint/b"],
    )
    # Nothing was written in Chinese, so that text is gone.
    assert [item.language for item in row.texts.all()] == ["en"]
    html = answer.content.decode()
    assert SCRIPT not in html and "Written by anna" in html and "does not overwrite it" in html

    restore = reverse("admin:training_symptom_restore", args=["loss-flat"])
    assert anna.get(restore).status_code == 405
    stale = anna.post(restore, {"revision": 0}, follow=True).content.decode()
    assert "Somebody edited row" in stale
    anna.post(restore, {"revision": 1})
    back = get_symptom("loss-flat")
    assert (back.edited_at, back.texts.count()) == (None, 2)


def test_what_is_shown_is_kept_when_it_is_sent_back(anna: Client) -> None:
    context = anna.get(page("loss-flat")).context
    sent = {
        name: context["form"][name].value() or "" for name in ("symptom_class", "detectors", "revision")
    } | {
        f"{name}_{language['code']}": language[name].value() or ""
        for language in context["languages"]
        for name in ("symptom", "causes", "treatment", "source")
    }
    sent["revision"] = 0
    answer = anna.post(
        page("loss-flat"), {key: str(value).replace("\n", "\r\n") for key, value in sent.items()}, follow=True
    )
    assert "Nothing was changed." in answer.content.decode()
    assert get_symptom("loss-flat").edited_at is None


def test_faults_and_conflicts_keep_what_was_written(anna: Client) -> None:
    answer = anna.post(page("loss-flat"), body(causes_en="", symptom_en="Mine"))
    text = answer.content.decode()
    assert answer.status_code == 422 and "/texts/en/causes" in text and 'value="Mine"' in text
    anna.post(page("loss-flat"), body())
    answer = anna.post(page("loss-flat"), body(symptom_en="Mine"))
    text = answer.content.decode()
    assert answer.status_code == 412 and "Somebody edited row" in text and 'value="Mine"' in text
    # Sent again, it goes over what the other one wrote no sooner than the person has looked again.
    assert 'name="revision" value="0"' in text


def test_a_row_of_ones_own(anna: Client) -> None:
    add = reverse("admin:training_symptom_add")
    assert anna.get(add).status_code == 200
    assert anna.post(add, body(code="Fan hums")).status_code == 422
    assert anna.post(add, body(code="fan-hums"))["Location"] == page("fan-hums")
    assert get_symptom("fan-hums").origin == "own"
    text = anna.get(page("fan-hums")).content.decode()
    assert "added here" in text and "Back to the shipped text" not in text
    assert anna.post(add, body(code="fan-hums")).status_code == 409


def test_rights(anna: Client) -> None:
    reader = Client()
    reader.force_login(User.objects.create_user("reader", is_staff=True))
    assert "Edit the row" not in reader.get(page("loss-flat")).content.decode()
    assert reader.post(page("loss-flat"), body()).status_code == 403
    assert reader.get(reverse("admin:training_symptom_add")).status_code == 403
    assert Client().get(page("loss-flat")).status_code == 302
