"""What stands in the address of the memory page, and what is made of it."""

from typing import Any

import pytest
from django.http import QueryDict

from tests.fixtures.memory import make_llama
from training.admin.memory_form import build_fields, request_of_texts, texts_of_address, texts_of_run
from training.engine.config import TrainingConfig
from training.engine.memory.request import EstimateRequest
from training.models import TrainingRun


def request_of(query: str) -> dict[str, Any]:
    return request_of_texts(texts_of_address(QueryDict(query)))


def test_an_address_without_anything_is_the_default_training() -> None:
    assert EstimateRequest.from_json(request_of("base_model=llama")) == EstimateRequest()
    assert (
        EstimateRequest.from_json(request_of("tokens=&rank=+&target_modules=&layers=")) == EstimateRequest()
    )


def test_everything_that_an_address_may_say() -> None:
    query = (
        "cards=24GB,+80GB+x+8;16GB&tokens=4096&batch_size=2&rank=32&layers=21&method=lora&checkpointing=off"
        "&short_moments=on&target_modules=q_proj,v_proj"
    )
    request = EstimateRequest.from_json(request_of(query))
    assert [card.label for card in request.cards] == ["24 GB", "80 GB x 8", "16 GB"]
    assert (request.tokens, request.batch_size, request.rank, request.layers) == (4096, 2, 32, 21)
    assert (request.method, request.checkpointing, request.short_moments) == ("lora", False, True)
    assert request.target_modules == ("q_proj", "v_proj")


def test_a_parameter_given_several_times_is_one_list() -> None:
    assert request_of("cards=24GB&cards=80GB")["cards"] == ["24GB", "80GB"]


@pytest.mark.parametrize("text", ["x", "-1", "1.5", "\u0662", "9" * 5000])
def test_what_is_no_number_stays_a_text(text: str) -> None:
    assert request_of_texts({**texts_of_address(QueryDict()), "tokens": text})["tokens"] == text


def test_the_fields_show_what_was_sent() -> None:
    texts = texts_of_address(QueryDict("base_model=gone&method=qlora&tokens=77"))
    fields = {field.name: field for field in build_fields(texts, [])}
    assert fields["base_model"].options == (("gone", "gone", True),)
    assert [value for value, _, is_chosen in fields["method"].options if is_chosen] == ["qlora"]
    assert fields["tokens"].value == "77"
    assert fields["cards"].value == ""


@pytest.mark.django_db
@pytest.mark.usefixtures("store")
class TestOfARun:
    def texts_of(self, config: dict[str, Any]) -> dict[str, str]:
        return texts_of_run(TrainingRun(base_model=make_llama(), config=config))

    def test_defaults_are_left_out(self) -> None:
        assert self.texts_of(TrainingConfig().to_json()) == {"base_model": "llama"}

    def test_what_the_run_does(self) -> None:
        config = {
            "lora": {"r": 8, "layers": "last_two_thirds", "target_modules": ["q_proj", "v_proj"]},
            "training": {
                "max_length_tokens": 1024,
                "per_device_batch_size": 4,
                "gradient_checkpointing": False,
            },
        }
        assert self.texts_of(config) == {
            "base_model": "llama",
            "tokens": "1024",
            "batch_size": "4",
            "rank": "8",
            # Of 32 blocks, by the configuration's rule: 32 - round(32 / 3).
            "layers": "21",
            "target_modules": "q_proj, v_proj",
            "checkpointing": "off",
        }

    def test_a_configuration_that_cannot_be_read_leaves_the_model(self) -> None:
        assert self.texts_of({"lora": {"rank": 8}}) == {"base_model": "llama"}
