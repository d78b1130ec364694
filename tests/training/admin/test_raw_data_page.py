"""Raw data in the admin: sent, understood, and prepared by form or by JSON."""

import json
import re
from html import unescape
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse

from registry.services.artifacts import manifest_of
from tests.fixtures.preparations import make_preparation, make_raw
from training.admin.prepare_draft import Draft, default_recipe
from training.admin.recipe_texts import texts_of_recipe
from training.models import DataPreparation, RawData
from training.services import understandings

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("store")]

SCRIPT = "<script>alert(1)</script>"
CSV = f'text,answer,{SCRIPT}\n"Where? {SCRIPT}",Here,1\n"How\u202emuch?",Ten,2\n'.encode()


@pytest.fixture
def client() -> Client:
    client = Client()
    client.force_login(User.objects.create_superuser("anna"))
    return client


@pytest.fixture
def raw(store: Any) -> RawData:
    return make_raw("log", {"tickets.csv": CSV})


def page(raw: RawData) -> str:
    return reverse("admin:training_rawdata_page", args=[raw.pk])


def form_of(**changes: str) -> dict[str, str]:
    """What a browser sends when nothing was touched: switches that are off are not sent."""
    recipe = default_recipe()
    texts = {name: text for name, text in texts_of_recipe(recipe).items() if text}
    base = {"name": "tickets", "base": json.dumps(recipe), "recipe_text": "", "action": "start"}
    columns = {"shape": "columns", "column__input": "text", "column__answer": "answer"}
    return {**texts, **base, **columns, **changes}


def upload(client: Client, name: str, *files: SimpleUploadedFile) -> Any:
    return client.post(reverse("admin:training_rawdata_add"), {"name": name, "raw_files": list(files)})


def test_upload(client: Client) -> None:
    assert client.get(reverse("admin:training_rawdata_add")).status_code == 200
    files = (SimpleUploadedFile("工单.csv", CSV), SimpleUploadedFile("b.jsonl", b"{}\n"))
    answer = upload(client, "log", *files)
    row = RawData.objects.get()
    assert answer["Location"] == page(row)
    assert [file.path for file in manifest_of(row.artifact_id).files] == ["b.jsonl", "工单.csv"]
    assert (row.artifact.kind, row.created_by) == ("raw_data", User.objects.get(username="anna"))
    again = (SimpleUploadedFile("b.jsonl", b"{}\n"), SimpleUploadedFile("工单.csv", CSV))
    assert upload(client, "log", *again)["Location"] == page(row)


def test_upload_faults(client: Client) -> None:
    twice = (SimpleUploadedFile("a.csv", b"1"), SimpleUploadedFile("A.csv", b"2"))
    answer = upload(client, "My log", *twice)
    text = answer.content.decode()
    assert answer.status_code == 422
    assert "differs from" in text and "lower-case letters" in text
    assert upload(client, "log").status_code == 422
    assert not RawData.objects.exists()


def test_how_it_is_understood(client: Client, raw: RawData) -> None:
    text = client.get(page(raw)).content.decode()
    for shown in ("tickets.csv", "csv", "utf-8", "U+202E", "Where?"):
        assert shown in text, shown
    assert SCRIPT not in text and "\u202e" not in text.split('id="prepare"')[0]
    assert "onclick" not in text


def test_start_by_form(client: Client, raw: RawData) -> None:
    answer = client.post(page(raw), form_of(step__drop_duplicates__threshold="0.9"))
    row = DataPreparation.objects.get()
    assert answer["Location"] == reverse("admin:training_datapreparation_report", args=[row.pk])
    assert row.recipe["intake"]["columns"] == {"input": "text", "answer": "answer"}
    threshold = {step["step"]: step.get("threshold") for step in row.recipe["clean"]}["drop_duplicates"]
    assert (threshold, row.recipe["split"]["holdout_fraction"], row.name) == (0.9, 0.1, "tickets")


def test_faults_are_shown_beside_what_was_typed(client: Client, raw: RawData) -> None:
    changes = {"name": "A b", "seed": "many", "step__drop_duplicates__threshold": "7", "general": "none@1"}
    answer = client.post(page(raw), form_of(**changes))
    text = answer.content.decode()
    assert answer.status_code == 422
    for shown in ("/name", "/recipe/seed", "/threshold", "/general", 'value="many"', 'value="7"'):
        assert shown in text, shown
    assert not DataPreparation.objects.exists()


def test_fields_and_json_are_kept_in_step(client: Client, raw: RawData) -> None:
    shown = client.post(page(raw), form_of(action="show_json", seed="99")).content.decode()
    box = re.search(r'<textarea id="recipe-text".*?>\n(.*?)</textarea>', shown, re.DOTALL)
    assert box is not None
    recipe = json.loads(unescape(box[1]))
    assert (recipe["seed"], recipe["intake"]["columns"]["input"]) == (99, "text")
    recipe["intake"]["limits"]["max_rows"] = 5
    recipe["clean"] = ["drop_empty"]
    sent = form_of(action="read_json", recipe_text=json.dumps(recipe))
    read = client.post(page(raw), sent).content.decode()
    assert 'name="seed" value="99"' in read
    assert 'name="step__drop_empty" value="on" checked' in read
    assert 'name="step__drop_duplicates" value="on">' in read
    # What no field shows is kept for the next request.
    assert "&quot;max_rows&quot;: 5" in read


def test_start_by_json(client: Client, raw: RawData) -> None:
    recipe = {"clean": ["drop_empty", "drop_empty"], "seed": 3}
    client.post(page(raw), form_of(action="start_json", recipe_text=json.dumps(recipe)))
    row = DataPreparation.objects.get()
    assert ([step["step"] for step in row.recipe["clean"]], row.recipe["seed"]) == (["drop_empty"] * 2, 3)
    text = client.get(page(raw), {"recipe_of": str(row.pk)}).content.decode()
    assert "names one step more than once" in text and "Prepare by this JSON" in text
    for broken in ("{", "[]", '{"clean": 1}'):
        answer = client.post(page(raw), form_of(action="start_json", recipe_text=broken))
        assert answer.status_code == 422
        assert "cannot begin like this" in answer.content.decode()


def test_again_with_the_recipe_of_an_earlier_one(client: Client, raw: RawData) -> None:
    earlier = make_preparation(raw=raw, name="earlier", recipe={"seed": 4711})
    text = client.get(page(raw), {"recipe_of": str(earlier.pk)}).content.decode()
    assert 'value="4711"' in text and 'name="name" value="earlier"' in text
    for nonsense in ("x", "00000000-0000-0000-0000-000000000000"):
        assert client.get(page(raw), {"recipe_of": nonsense}).status_code == 200


def test_a_broken_base_is_replaced(client: Client, raw: RawData) -> None:
    assert client.post(page(raw), form_of(base="{")).status_code == 302
    assert Draft.of_recipe(default_recipe(), {}).reason_not_shown == ""


def test_files_that_cannot_be_looked_at(
    client: Client, raw: RawData, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(understandings, "MAX_UNDERSTOOD_BYTES", 10)
    assert "too large to be looked at" in client.get(page(raw)).content.decode()
    monkeypatch.undo()
    nothing = make_raw("picture", {"a.png": b"\x89PNG\r\n\x1a\n\0\0"})
    assert client.get(page(nothing)).status_code == 200
    # Settings that contradict each other are told where the files are shown.
    answer = client.post(page(raw), form_of(action="understand", shape="alpaca"))
    assert "cannot be read like this" in answer.content.decode()


def test_rights(raw: RawData) -> None:
    reader = Client()
    reader.force_login(User.objects.create_user("reader", is_staff=True))
    text = reader.get(page(raw)).content.decode()
    assert "tickets.csv" in text and 'id="prepare"' not in text
    assert reader.post(page(raw), form_of()).status_code == 403
    assert reader.get(reverse("admin:training_rawdata_add")).status_code == 403
    assert upload(reader, "log", SimpleUploadedFile("a.csv", b"1")).status_code == 403
    assert not DataPreparation.objects.exists()
