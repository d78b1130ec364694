import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluation.engine.scoring.json_output import parse_output, strip_outer_fence


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": 1}', {"a": 1}),
        ('  {"a": 1}\n', {"a": 1}),
        ('```json\n{"a": 1}\n```', {"a": 1}),
        ('```\n{"a": 1}```\n', {"a": 1}),
        ('```JSON\r\n{"a": 1}\r\n```', {"a": 1}),
        # A fence inside a string is part of the value (a public harness cut the JSON there, FACTS section 5).
        ('{"code": "```json\\nx\\n```"}', {"code": "```json\nx\n```"}),
        ('```json\n{"code": "```"}\n```', {"code": "```"}),
        ('{"a": "\uff11\uff12"}', {"a": "\uff11\uff12"}),  # full-width digits in a string are text
        ("[]", []),
        ("null", None),
    ],
)
def test_strict(text: str, value: object) -> None:
    parsed = parse_output(text)
    assert (parsed.level, parsed.value, parsed.reason) == ("strict", value, None)
    assert parsed.is_strict


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('Sure! {"a": 1}', {"a": 1}),
        ('{"a": 1} Hope this helps.', {"a": 1}),
        ('Here:\n```json\n{"a": 1}\n```', {"a": 1}),
        ("{'a': 1}", {"a": 1}),
        ('{"a": 1', {"a": 1}),
        ('```json\n```json\n{"a": 1}\n```\n```', {"a": 1}),  # two fences: one is removed, no more
    ],
)
def test_lenient_is_apart_from_strict(text: str, value: object) -> None:
    parsed = parse_output(text)
    assert (parsed.level, parsed.value) == ("lenient", value)
    assert parsed.reason


def test_a_duplicate_key_is_never_strict() -> None:
    parsed = parse_output('{"timeRange": "now", "timeRange": "later"}')
    assert parsed.level == "lenient"
    assert "timeRange" in str(parsed.reason)


@pytest.mark.parametrize("text", ["", "   ", "I cannot help with that.", "```\n```", "{", "}{", "[", "NaN"])
def test_unparsed(text: str) -> None:
    parsed = parse_output(text)
    assert (parsed.level, parsed.value) == ("unparsed", None)


def test_nan_is_not_strict() -> None:
    assert not parse_output('{"a": NaN}').is_strict


@pytest.mark.parametrize(
    "text",
    ['```json {"a": 1}```', '```\n{"a": 1}', '{"a": 1}\n```', 'x\n```\n{"a": 1}\n```', "```", "``````"],
)
def test_what_is_no_enclosing_fence_stays(text: str) -> None:
    assert strip_outer_fence(text) == text


@given(st.text(max_size=200))
@settings(deadline=None)  # json_repair is imported on first use
def test_any_text_has_a_level_and_only_unparsed_lacks_a_value(text: str) -> None:
    parsed = parse_output(text)
    assert parsed.level in ("strict", "lenient", "unparsed")
    assert (parsed.reason is None) == parsed.is_strict
