from typing import Any

import pytest

from tests.training.engine.memory.test_model_shape import shape_of
from training.engine.errors import ConfigInvalid
from training.engine.memory.estimate import MemoryRequest
from training.engine.memory.request import EstimateRequest

EVERYTHING: dict[str, Any] = {
    "method": "lora",
    "cards": ["24 GB", "80 GB x 8"],
    "tokens": 4096,
    "batch_size": 2,
    "rank": 32,
    "target_modules": ["q_proj", "v_proj"],
    "layers": 21,
    "checkpointing": False,
    "short_moments": True,
}


def test_nothing_given_is_the_default_training() -> None:
    request = EstimateRequest.from_json({})
    assert request == EstimateRequest()
    assert request.methods == ("full", "lora", "qlora")
    assert request.for_method("lora") == MemoryRequest(method="lora")


def test_what_is_given_is_kept_and_reads_back() -> None:
    request = EstimateRequest.from_json(EVERYTHING)
    assert request.to_json() == EVERYTHING
    assert EstimateRequest.from_json(request.to_json()) == request
    assert request.for_method("lora") == MemoryRequest(
        method="lora",
        batch_size=2,
        length_tokens=4096,
        rank=32,
        target_modules=("q_proj", "v_proj"),
        num_lora_layers=21,
        has_checkpointing=False,
        has_short_moments=True,
    )


def test_every_fault_at_once() -> None:
    raw = {
        "method": "prefix",
        "cards": ["24GB", "A100"],
        "tokens": 0,
        "batch_size": True,
        "rank": 10**30,
        "target_modules": [],
        "layers": 1.5,
        "checkpointing": "yes",
        "batch": 1,
    }
    with pytest.raises(ConfigInvalid) as caught:
        EstimateRequest.from_json(raw)
    assert caught.value.code == "memory-request-invalid"
    places = {fault.where: fault.code for fault in caught.value.faults}
    assert places.pop("batch") == "unknown-key"
    assert places.pop("cards[1]") == "card-unreadable"
    assert set(places.values()) == {"invalid-value"}
    assert places.keys() == raw.keys() - {"batch", "cards"}


def test_cards_must_be_a_list() -> None:
    with pytest.raises(ConfigInvalid) as caught:
        EstimateRequest.from_json({"cards": "24GB"})
    assert [(fault.code, fault.where) for fault in caught.value.faults] == [("wrong-type", "cards")]


def test_what_the_model_does_not_have() -> None:
    request = EstimateRequest.from_json({"layers": 33, "target_modules": ["q_proj", "W_pack\u202e"]})
    with pytest.raises(ConfigInvalid) as caught:
        request.check_against(shape_of())
    assert [(fault.code, fault.where) for fault in caught.value.faults] == [
        ("layers-out-of-range", "layers"),
        ("target-module-unknown", "target_modules"),
    ]
    assert "\u202e" not in caught.value.faults[1].message
    EstimateRequest.from_json({"layers": 32}).check_against(shape_of())
