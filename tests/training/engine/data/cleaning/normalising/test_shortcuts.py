# ruff: noqa: RUF001 (full-width marks are what is tested)
"""Each part looks first whether there is anything for it to do. Without that look it must do the same."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from training.engine.data.cleaning.normalising import amounts, dates, protected, units, white_space, width

EVERYWHERE = re.compile("")
PIECES = st.sampled_from(
    [
        *(
            "1,234",
            "101,102",
            "12,000 元",
            "¥ 100",
            "￥5",
            "$ 3",
            "US$\n7",
            "RMB\n2024",
            "人民币 8",
            "1.2 万",
            "€9",
        ),
        *(
            "2024年3月5日",
            "2024 年 3 月 5 日",
            "2024/3/5",
            "2024.03.05",
            "13/04/2024",
            "03-04-2024",
            "March 5, 2024",
        ),
        *(
            "5th of March 2024",
            "sept. 5,2024",
            "1999-12-31",
            "2024-02-30",
            "5-7 March 2024",
            "农历2024年3月5日",
        ),
        *("10KG", "5~8 km", "2gb", "kW", "mAh", "３", "Ａ", "％", "／", "\u3000", "\u00a0", "  ", "\t", "\n"),
        *(
            "`a`",
            "```x```",
            "~~~",
            "http://a.b/c",
            "www.a.org",
            "a@b.co",
            '{"a": 1}',
            "[1, 2]",
            "\uf8ff",
            "\uf900",
        ),
        *(" ", " ", "a", "的", "7", "-", "/", ".", ",", "of ", "may "),
    ]
)
TEXTS = st.lists(PIECES, max_size=7).map("".join) | st.text(max_size=30)

PARTS: dict[str, tuple[Callable[[str], Any], list[tuple[Any, str, Any]]]] = {
    "amounts": (amounts.unify_amounts, [(amounts, "_UNTIDY", EVERYWHERE)]),
    "dates": (
        dates.write_dates_as_iso,
        [(dates, name, EVERYWHERE) for name in ("_YEAR_SIGN", "_SIGN_YEAR", "_BLANK_YEAR")],
    ),
    "units": (units.unify_units, [(units, "_ANY", EVERYWHERE)]),
    "width": (width.fold_width, [(width, "_ANY", EVERYWHERE)]),
}


@pytest.mark.parametrize("name", PARTS)
@settings(max_examples=250, deadline=None)
@given(text=TEXTS)
def test_the_look_changes_nothing(name: str, text: str) -> None:
    treat, looks = PARTS[name]
    expected = treat(text)
    with pytest.MonkeyPatch.context() as patched:
        for module, attribute, value in looks:
            patched.setattr(module, attribute, value)
        assert treat(text) == expected


@settings(max_examples=250, deadline=None)
@given(text=TEXTS)
def test_what_is_protected_is_found_without_the_look(text: str) -> None:
    masked = protected.mask_protected(text)
    with pytest.MonkeyPatch.context() as patched:
        # The empty text stands everywhere.
        patched.setattr(protected, "_SIGNS", ("",))
        assert protected.mask_protected(text) == masked
    assert masked.unmask(masked.text) == text
    assert masked.stand_in not in text


@settings(max_examples=250, deadline=None)
@given(text=TEXTS)
def test_one_line_is_treated_as_the_first_of_several(text: str) -> None:
    # With a second line there is no short way.
    line = text.strip()
    if line and "\n" not in line:
        alone = white_space.tidy_white_space(line)
        assert white_space.tidy_white_space(f"{line}\n\n\n.").split("\n")[0] == alone
