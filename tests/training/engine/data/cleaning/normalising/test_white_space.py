import pytest

from training.engine.data.cleaning.normalising.white_space import tidy_white_space


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("  a   b \u2003c\u00a0d  ", "a b c d"),
        ("a \n\n\n\nb\n \nc", "a\n\nb\n\nc"),
        ("\n\n a\n", "a"),
        ("change\t\tthe  language", "change the language"),
        ("name\tage\nAnn\t\nBob\t5", "name\tage\nAnn\nBob\t5"),
        ("- a\n  - b  c\n    code  x", "- a\n  - b c\n    code  x"),
        ("  x\n  y", "  x\n  y"),
        ("a  = 1", "a  = 1"),
        ("", ""),
        (" \n ", ""),
    ],
)
def test_tidy(text: str, expected: str) -> None:
    assert tidy_white_space(text) == expected
    assert tidy_white_space(expected) == expected


def test_spaces_between_chinese_go_only_when_asked() -> None:
    text = "张 三 用 iPhone ， 好"  # noqa: RUF001
    assert tidy_white_space(text) == text
    assert tidy_white_space(text, join_cjk=True) == "张三用 iPhone ，好"  # noqa: RUF001
