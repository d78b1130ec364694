"""The page that estimates memory, and the ways to it."""

import re

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from registry.services.actors import SYSTEM
from tests.fixtures.evaluation import make_dataset
from tests.fixtures.memory import make_llama
from tests.fixtures.registry import make_base_model
from training.services.runs import TrainingRequest, create_training_run

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("store")]

SCRIPT = "<script>alert(1)</script>"


@pytest.fixture
def client() -> Client:
    client = Client()
    client.force_login(User.objects.create_superuser("anna"))
    return client


def page_of(client: Client, status: int = 200, **query: str) -> str:
    answer = client.get(reverse("admin:training_memory_estimate"), query)
    assert answer.status_code == status, answer.content
    return re.sub(r"\s+", " ", answer.content.decode())


def test_without_base_models_it_says_how_to_get_one(client: Client) -> None:
    text = page_of(client)
    assert "assay base add" in text
    assert "<svg" not in text


def test_at_first_it_is_a_form_alone(client: Client) -> None:
    make_llama()
    text = page_of(client)
    assert '<option value="llama" selected>llama (6.74 B)</option>' in text
    assert 'class="ledger"' not in text


def test_ledger_bars_and_cards(client: Client) -> None:
    make_llama()
    text = page_of(client, base_model="llama", cards="24GB, 80GB x 8")
    assert "LoRA and QLoRA fit." in text
    assert "sharded: fits, 55.3 GB left" in text
    assert "39,976,960 trained parameters x 16 bytes" in text
    assert '<td class="number">18.7-19.7</td>' in text
    assert text.count('class="part frozen_weights"') == 2
    assert 'value="24GB, 80GB x 8"' in text
    assert "Take the figures with care" not in text


def test_what_to_change_first(client: Client) -> None:
    make_llama()
    text = page_of(client, base_model="llama", cards="20GB", method="lora", batch_size="16")
    assert "Nothing fits as it is. What to change first, in this order:" in text
    assert "batch 1 with 16 times the accumulation: the same steps" in text
    assert "which fits" in text
    assert "Nothing fits, whatever is changed." in page_of(client, base_model="llama", cards="4GB")


def test_doubts(client: Client) -> None:
    make_llama(num_parameters=7_500_000_000, model_type=SCRIPT)
    text = page_of(client, base_model="llama")
    assert "Take the figures with care" in text
    assert "The weight files hold 7,500,000,000 parameters" in text
    assert SCRIPT not in text


def test_every_fault_in_the_words_of_the_form(client: Client) -> None:
    make_base_model("tiny")
    text = page_of(client, 422, base_model="tiny", cards=f"A100\u202e{SCRIPT}", tokens="many", layers="0")
    for part in (
        "Tokens per row: is &#x27;many&#x27;",
        "Adapted blocks: is 0",
        "Cards: ",
        "config.json hidden_size: is missing",
    ):
        assert part in text
    assert SCRIPT not in text
    assert "\u202e" not in text.partition('class="notice bad"')[2]


def test_a_base_model_that_is_not_there(client: Client) -> None:
    make_llama()
    assert "There is no base model" in page_of(client, 422, base_model="lama")
    assert page_of(client, 422, base_model="\x00" + "x" * 500)


def test_the_way_from_a_base_model(client: Client) -> None:
    model = make_llama()
    text = client.get(reverse("admin:registry_basemodel_change", args=[model.pk])).content.decode()
    address = f"{reverse('admin:training_memory_estimate')}?base_model=llama"
    assert f'href="{address}"' in text
    assert client.get(address).status_code == 200


def test_the_ways_from_training_runs(client: Client) -> None:
    make_llama()
    make_dataset("tickets-train", "train", num=3)
    run = create_training_run(
        request=TrainingRequest(
            name="lora",
            base_model_name="llama",
            datasets=["tickets-train@1"],
            holdout=None,
            config={"lora": {"r": 8}, "training": {"max_length_tokens": 512}},
        ),
        actor=SYSTEM,
    )
    text = client.get(reverse("admin:training_trainingrun_report", args=[run.pk])).content.decode()
    found = re.search(r'href="([^"]+)">Memory estimate<', text)
    assert found
    shown = client.get(found[1].replace("&amp;", "&"))
    assert shown.status_code == 200
    assert shown.context["comparison"].request.rank == 8
    assert shown.context["comparison"].request.tokens == 512
    listing = client.get(reverse("admin:training_trainingrun_changelist"))
    assert "Memory estimate" in listing.content.decode()
    button = client.get(reverse("admin:training_trainingrun_open_memory_estimate"))
    assert button.headers["Location"] == reverse("admin:training_memory_estimate")


def test_rights() -> None:
    stranger = Client()
    stranger.force_login(User.objects.create_user("sam"))
    assert stranger.get(reverse("admin:training_memory_estimate")).status_code == 302
    reader = Client()
    reader.force_login(User.objects.create_user("kim", is_staff=True))
    assert reader.get(reverse("admin:training_memory_estimate")).status_code == 200
