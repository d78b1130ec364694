from hypothesis import given
from hypothesis import strategies as st

from training.engine.data.mixing import compute_amounts

NUM = st.integers(0, 3000)


@given(NUM, NUM, NUM, NUM, NUM, st.floats(0, 0.45), st.floats(0, 0.45))
def test_fractions_are_met_where_there_is_enough(
    changed: int, unchanged: int, general: int, more_general: int, more_unchanged: int, f: float, u: float
) -> None:
    amounts = compute_amounts(
        num_changed=changed,
        num_unchanged=unchanged,
        num_general=general,
        available_general=more_general,
        available_unchanged=more_unchanged,
        general_fraction=f,
        unchanged_fraction=u,
    )
    assert 0 <= amounts.general <= min(amounts.wanted_general, more_general)
    assert 0 <= amounts.unchanged <= min(amounts.wanted_unchanged, more_unchanged)
    all_general, all_unchanged = general + amounts.general, unchanged + amounts.unchanged
    whole = changed + all_general + all_unchanged
    if amounts.general and amounts.general == amounts.wanted_general:
        # Rounding to whole examples moves the number by at most one half.
        assert abs(all_general - f * whole) <= 0.5 + 1e-6
        if amounts.unchanged and amounts.unchanged == amounts.wanted_unchanged:
            assert abs(all_unchanged - u * whole) <= 1.5
