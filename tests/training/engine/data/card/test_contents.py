import json

import pytest

from training.engine.data.card.contents import ContentsCounter, find_script, iterate_leaves
from training.engine.data.examples import ChatMessage, Example


def example(name: str, asked: str, answer: str, **fields: object) -> Example:
    return Example(
        example_id=name,
        messages=(ChatMessage("user", asked), ChatMessage("assistant", answer)),
        fields=fields,
    )


@pytest.mark.parametrize(
    ("text", "script"),
    [
        ("the app is slow", "latin"),
        ("应用很慢", "han"),
        ("アプリが遅い", "kana"),
        ("앱이 느려요", "hangul"),
        ("приложение", "cyrillic"),
        ("我要退款 refund please", "mixed"),
        ("应用很慢,iPhone 15 上一直打不开这个页面怎么办呢", "mixed"),
        ("12:30 !!", "none"),
        ("", "none"),
    ],
)
def test_scripts(text: str, script: str) -> None:
    assert find_script(text) == script


def test_leaves_of_nested_answers() -> None:
    answer = json.dumps({"a": {"b": "x"}, "c": [{"d": 1}, {"d": True}], "e": None})
    assert list(iterate_leaves(answer)) == [
        ("a/b", "x"),
        ("c[]/d", "1"),
        ("c[]/d", "true"),
        ("e", "null"),
    ]


@pytest.mark.parametrize("answer", ["no json", "{broken", "[1]", "{" * 100_000, ""])
def test_other_answers_have_no_leaves(answer: str) -> None:
    assert list(iterate_leaves(answer)) == []


def test_a_card_counts_by_hand() -> None:
    counter = ContentsCounter(len)
    counter.add(example("1", "slow app", '{"kind":"bug"}', reference_source="rule", tags={"lang": "en"}))
    counter.add(example("2", "退款", '{"kind":"refund"}', reference_source="model", confirmed_by="Ann"))
    counter.add(example("3", "same", "Same", origin={"kind": "log"}))
    card = counter.to_json()
    assert card["num_examples"] == 3
    # A rule's reference and one that a person confirmed; the third says nothing of its reference.
    assert (card["num_verified"], card["num_confirmed"]) == (2, 1)
    assert card["sources"] == {"model": 1, "rule": 1, "unknown": 1}
    assert card["fields"] == {"kind": {"bug": 1, "refund": 1}}
    assert card["tags"] == {"lang": {"en": 1}}
    assert card["origins"] == {"unknown": 2, "log": 1}
    # "Same" and "same" are equal after folding: nothing to change.
    assert card["num_unchanged"] == 1
    assert card["lengths"]["total_tokens"]["quantiles"]["max"] == len("slow app") + len('{"kind":"bug"}')


def test_free_text_fields_are_no_labels_and_many_values_are_counted_together() -> None:
    counter = ContentsCounter(None)
    for number in range(400):
        counter.add(example(str(number), "x", json.dumps({"text": f"free {number}", "code": number % 40})))
    card = counter.to_json()
    assert "text" not in card["fields"]
    codes = card["fields"]["code"]
    # 40 codes of 10 each: 30 are listed, the other 10 codes together.
    assert codes.pop("…") == 100
    assert len(codes) == 30
    assert card["lengths"]["total_tokens"] is None
