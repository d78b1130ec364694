from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from training.engine.errors import ConfigInvalid
from training.engine.layer_choice import LAYERS, LayerRange, layers_to_json, select_layers


# By hand: 2/3 of 32 is 21.33, of 30 is 20, of 28 is 18.67, of 2 is 1.33, of 1 is 0.67.
@pytest.mark.parametrize(
    ("num_layers", "num_chosen"), [(32, 21), (30, 20), (28, 19), (24, 16), (2, 1), (1, 1)]
)
def test_the_last_two_thirds(num_layers: int, num_chosen: int) -> None:
    chosen = select_layers("last_two_thirds", num_layers)
    assert chosen == tuple(range(num_layers - num_chosen, num_layers))


@given(st.integers(1, 500))
def test_the_last_two_thirds_are_the_nearest_number_of_blocks_at_the_end(num_layers: int) -> None:
    chosen = select_layers("last_two_thirds", num_layers)
    assert chosen is not None
    assert chosen[-1] == num_layers - 1
    assert abs(len(chosen) - 2 * num_layers / 3) <= 1 / 3 + 1e-9


def test_a_range_has_both_ends() -> None:
    assert select_layers(LayerRange(first=3, last=5), 6) == (3, 4, 5)
    assert select_layers(None, 6) is None


def test_a_range_beyond_the_model_is_refused() -> None:
    with pytest.raises(ConfigInvalid, match="blocks 3 to 6; the model has 6, numbered 0 to 5") as caught:
        select_layers(LayerRange(first=3, last=6), 6)
    assert caught.value.code == "layers-out-of-range"


@pytest.mark.parametrize("value", [None, "last_two_thirds", {"first": 0, "last": 0}, {"first": 2, "last": 9}])
def test_round_trip(value: Any) -> None:
    assert layers_to_json(LAYERS.read(value)) == value


@pytest.mark.parametrize(
    "value",
    [
        "last-two-thirds", "", [], [1, 2], 3, True, {}, {"first": 1}, {"first": 1, "last": 2, "step": 2},
        {"first": 2, "last": 1}, {"first": -1, "last": 1}, {"first": 0, "last": True},
    ],
)  # fmt: skip
def test_what_is_no_choice(value: Any) -> None:
    with pytest.raises(ValueError):
        LAYERS.read(value)
