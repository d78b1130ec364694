import pytest

from training.engine.data.mixing import mix_rows

TASK = [{"id": f"t{i}"} for i in range(90)]
GENERAL = [{"id": f"g{i}"} for i in range(40)]


def test_fraction_of_the_whole() -> None:
    mixed = mix_rows(TASK, GENERAL, general_fraction=0.1, seed=1)
    assert (mixed.num_task, mixed.num_general, mixed.general_fraction) == (90, 10, 0.1)
    assert len({row["id"] for row in mixed.rows}) == 100
    assert {row.get("role") for row in mixed.rows if str(row["id"]).startswith("g")} == {"general"}
    assert mix_rows(TASK, GENERAL, general_fraction=0.1, seed=1) == mixed
    assert mix_rows(TASK, GENERAL, general_fraction=0.1, seed=2).rows != mixed.rows


def test_too_few_general_rows_are_not_repeated() -> None:
    mixed = mix_rows(TASK, GENERAL, general_fraction=0.5, seed=1)
    assert mixed.num_general == 40
    assert mixed.general_fraction == pytest.approx(40 / 130)


def test_bad_fraction() -> None:
    with pytest.raises(ValueError, match="general_fraction"):
        mix_rows(TASK, GENERAL, general_fraction=1.0, seed=1)
