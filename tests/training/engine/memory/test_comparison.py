import json
from typing import Any

import pytest

from tests.training.engine.memory.test_model_shape import LLAMA2_7B
from training.engine.errors import ConfigInvalid
from training.engine.memory.cards import Card
from training.engine.memory.comparison import Fit, MemoryComparison, compare_methods
from training.engine.memory.request import EstimateRequest


def compare(*cards: str, **changes: Any) -> MemoryComparison:
    return compare_methods(LLAMA2_7B, EstimateRequest.from_json({"cards": list(cards), **changes}))


def fits_of(comparison: MemoryComparison) -> dict[str, list[tuple[Fit, bool]]]:
    return {item.method: [(fit.fit, fit.is_sharded) for fit in item.fits] for item in comparison.methods}


def test_the_guides_verdicts_on_a_7b_model() -> None:
    # LoRA and QLoRA fit 24 GB; full fine-tuning needs eight cards of 80 GB and sharding.
    comparison = compare("24GB", "80GB", "80GB x 8")
    assert fits_of(comparison) == {
        "full": [(Fit.TOO_LARGE, False), (Fit.TOO_LARGE, False), (Fit.FITS, True)],
        "lora": [(Fit.FITS, False)] * 3,
        "qlora": [(Fit.FITS, False)] * 3,
    }
    assert [answer.fitting for answer in comparison.cards] == [
        ("lora", "qlora"),
        ("lora", "qlora"),
        ("full", "lora", "qlora"),
    ]
    assert not any(answer.changes for answer in comparison.cards)


def test_between_least_and_most_is_tight_and_does_not_count_as_fitting() -> None:
    # LoRA: 18.7 to 19.7 GB.
    comparison = compare("19GB", method="lora")
    assert fits_of(comparison) == {"lora": [(Fit.TIGHT, False)]}
    answer = comparison.cards[0]
    assert (answer.fitting, answer.tight) == ((), ("lora",))
    assert [change.what.partition(",")[0] for change in answer.changes] == ["QLoRA"]


def test_the_edges_of_a_fit() -> None:
    lora = compare(method="lora").methods[0].estimate
    low, high = int(lora.low_bytes), int(lora.high_bytes)
    cards = tuple(Card(memory_bytes=size) for size in (high, high - 1, low, low - 1))
    comparison = compare_methods(LLAMA2_7B, EstimateRequest(method="lora", cards=cards))
    assert [fit for fit, _ in fits_of(comparison)["lora"]] == [Fit.FITS, Fit.TIGHT, Fit.TIGHT, Fit.TOO_LARGE]


def test_where_nothing_fits_the_changes_begin_with_lora_and_end_with_quantisation() -> None:
    answer = compare("16GB", tokens=8192, batch_size=4).cards[0]
    assert [change.request.method for change in answer.changes] == ["lora", "lora", "lora", "qlora"]
    assert answer.changes[-1].fits
    assert not answer.is_hopeless


def test_changes_of_a_single_method_begin_with_it() -> None:
    answer = compare("24GB", method="full", batch_size=2).cards[0]
    assert [change.what for change in answer.changes] == ["LoRA instead of full fine-tuning"]


def test_cards_that_shard_already_are_not_told_to_shard() -> None:
    answer = compare("10GB x 2", method="full").cards[0]
    assert answer.changes
    assert not any("sharded" in change.what for change in answer.changes)


def test_nothing_helps_on_a_card_that_is_too_small() -> None:
    answer = compare("4GB").cards[0]
    assert answer.changes
    assert answer.is_hopeless


def test_the_answer_is_json_with_whole_bytes() -> None:
    document = json.loads(json.dumps(compare("24GB", "80GB x 8").to_json()))
    assert document["model"]["num_parameters"] == 6_738_415_616
    assert document["request"]["cards"] == ["24 GB", "80 GB x 8"]
    lora = document["methods"][1]
    assert (lora["method"], lora["num_trained"]) == ("lora", 39_976_960)
    assert [line["name"] for line in lora["lines"]] == [
        "frozen_weights",
        "trained_states",
        "activations",
        "buffers",
        "overhead",
    ]
    assert all(isinstance(line["low_bytes"], int) and line["how"] for line in lora["lines"])
    assert lora["high_bytes"] == sum(line["high_bytes"] for line in lora["lines"])
    assert lora["cards"][1] == {
        "card": "80 GB x 8",
        "memory_bytes": 80_000_000_000,
        "num_cards": 8,
        "fit": "fits",
        "is_sharded": False,
        "low_bytes": lora["low_bytes"],
        "high_bytes": lora["high_bytes"],
    }
    assert document["cards"][0]["fitting"] == ["lora", "qlora"]
    assert document["doubts"] == []


def test_a_change_in_json_says_what_the_training_is_then() -> None:
    change = compare("16GB", method="lora").to_json()["cards"][0]["changes"][0]
    assert change.pop("what").startswith("QLoRA")
    assert change.pop("high_bytes") < 16e9
    assert change == {"method": "qlora", "batch_size": 1, "tokens": 2048, "checkpointing": True, "fits": True}


def test_faults_of_the_model_and_of_what_is_asked_of_it() -> None:
    with pytest.raises(ConfigInvalid) as caught:
        compare_methods({}, EstimateRequest())
    assert caught.value.code == "model-shape-unknown"
    with pytest.raises(ConfigInvalid) as caught:
        compare(layers=40)
    assert [fault.where for fault in caught.value.faults] == ["layers"]
