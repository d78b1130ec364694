"""Stacked bars of an estimate: their places, by hand."""

from itertools import pairwise
from typing import Any

import pytest

from tests.training.engine.memory.test_model_shape import LLAMA2_7B
from training.admin.memory_bars import LEFT, RIGHT, BarChart, draw_bars
from training.engine.memory.comparison import compare_methods
from training.engine.memory.request import EstimateRequest


def draw(*cards: str, **changes: Any) -> BarChart:
    request = EstimateRequest.from_json({"cards": list(cards), **changes})
    return draw_bars(compare_methods(LLAMA2_7B, request))


def test_a_bar_for_each_method_and_for_each_that_is_sharded() -> None:
    chart = draw("24GB", "80GB x 8")
    assert [bar.label for bar in chart.bars] == [
        "full fine-tuning",
        "full fine-tuning, 80 GB x 8",
        "LoRA",
        "QLoRA",
    ]
    assert [bar.is_cut for bar in chart.bars] == [True, False, False, False]
    assert [bar.total for bar in chart.bars][2] == "18.7-19.7 GB"
    assert [name for name, _ in chart.names] == [
        "frozen_weights",
        "trained_states",
        "activations",
        "buffers",
        "overhead",
    ]


def test_parts_stand_beside_each_other_in_scale() -> None:
    # A card of 100 GB makes the scale 108 GB long: 500 units from 190 on.
    bar = draw("100GB", method="lora").bars[0]
    assert [part.name for part in bar.parts] == [
        "frozen_weights",
        "trained_states",
        "activations",
        "buffers",
        "overhead",
        "spread",
    ]
    assert bar.parts[0].x == LEFT
    assert bar.parts[0].width == pytest.approx(500 * 6_738_415_616 * 2 / 108e9, abs=0.1)
    for left, right in pairwise(bar.parts):
        assert right.x == pytest.approx(left.x + left.width, abs=0.1)
    # The least and the most are 1 GB apart.
    assert bar.parts[-1].width == pytest.approx(500 / 108, abs=0.11)
    assert bar.parts[3].label == "buffers: 2.0-3.0 GB"


def test_nothing_reaches_beyond_the_scale() -> None:
    for chart in (draw("4GB"), draw(), draw(method="full"), draw("1GB", "10000GB")):
        ends = [part.x + part.width for bar in chart.bars for part in bar.parts]
        assert max(ends) <= RIGHT + 0.1
        assert all(LEFT <= tick.x <= RIGHT for tick in (*chart.ticks, *chart.cards))


def test_full_fine_tuning_alone_is_the_scale() -> None:
    bar = draw(method="full").bars[0]
    assert not bar.is_cut
    assert bar.parts[-1].x + bar.parts[-1].width == pytest.approx(RIGHT, abs=0.1)


def test_labels_of_cards_do_not_touch() -> None:
    chart = draw("16GB", "17GB", "18GB", "80GB", "80GB x 8")
    assert [card.label for card in chart.cards] == ["16 GB", "17 GB", "18 GB", "80 GB"]
    assert len({card.y for card in chart.cards}) == 3
    assert chart.cards[3].y == chart.cards[0].y
    assert max(card.y for card in chart.cards) < chart.top


def test_ticks_are_round_and_few() -> None:
    assert [tick.label for tick in draw("24GB").ticks] == ["0 GB", "5 GB", "10 GB", "15 GB", "20 GB", "25 GB"]
    assert [tick.label for tick in draw("80GB").ticks] == ["0 GB", "20 GB", "40 GB", "60 GB", "80 GB"]
