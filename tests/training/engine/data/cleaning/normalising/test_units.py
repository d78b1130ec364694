import pytest

from training.engine.data.cleaning.normalising.units import unify_units


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("10KG, 10kg, 10 kg", "10 kg, 10 kg, 10 kg"),
        ("重10Kg", "重10 kg"),
        ("1.5KM and 5-10cm", "1.5 km and 5-10 cm"),
        ("256gb, 3.5 ghz", "256 GB, 3.5 GHz"),
    ],
)
def test_units(text: str, expected: str) -> None:
    assert unify_units(text) == expected


@pytest.mark.parametrize("text", ["5G", "10Mb", "5 MM", "10m", "RTX4090-24GB", "3kgs", "A10kg", "kg 5"])
def test_what_may_mean_something_else_stays(text: str) -> None:
    assert unify_units(text) == text
