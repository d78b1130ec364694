# ruff: noqa: RUF001 (full-width marks are what is tested)
import pytest
from hypothesis import given
from hypothesis import strategies as st

from training.engine.data.cleaning.normalising.protected import mask_protected


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("见https://a.b/c?x=1,2,然后", ("https://a.b/c?x=1,2",)),
        ("(www.a.cn/x), a.b@c.org.", ("www.a.cn/x", "a.b@c.org")),
        ("前```py\na, b\n```后`x,y`。", ("```py\na, b\n```", "`x,y`")),
        ("open ```a", ("```a",)),
        ('结果:{"a": ["x,y", 1.5]},好', ('{"a": ["x,y", 1.5]}',)),
        ("[图,片] {模板} [x", ()),
        ("{bad [1, 2] }", ("[1, 2]",)),
    ],
)
def test_parts(text: str, parts: tuple[str, ...]) -> None:
    masked = mask_protected(text)
    assert masked.parts == parts
    assert masked.unmask(masked.text) == text


@given(st.text(st.sampled_from('ab@.:/`{}["],1\n，\uf8ff\U00100000~'), max_size=30))
def test_unmasking_gives_the_text_back(text: str) -> None:
    masked = mask_protected(text)
    assert masked.unmask(masked.text) == text


def test_lost_stand_ins_are_noticed() -> None:
    masked = mask_protected("a `b` c")
    with pytest.raises(ValueError, match="stand-ins"):
        masked.unmask("a c")


def test_brackets_without_end_do_not_stop_it() -> None:
    # Nested beyond the parser's limit, and errors at every bracket: the search is given up, nothing is lost.
    for text in ("[" * 50_000, '{"' * 50_000, '[[[["' * 10_000):
        masked = mask_protected(text)
        assert masked.unmask(masked.text) == text
