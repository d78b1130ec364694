from pathlib import Path

import pytest

from training.engine.data.cleaning.run import read_parameters
from training.engine.data.cleaning.sensitive import KINDS
from training.engine.data.cleaning.sensitive.step import SCREEN_SENSITIVE, ScreenSensitive
from training.engine.data.cleaning.step import StepContext
from training.engine.data.examples import ChatMessage, Example
from training.engine.data.jsonl import read_examples
from training.engine.errors import ConfigInvalid

TICKETS = Path(__file__).parents[6] / "examples" / "tickets"


def build(tmp_path: Path, **parameters: object) -> ScreenSensitive:
    full = read_parameters(SCREEN_SENSITIVE, parameters, "step")
    step = SCREEN_SENSITIVE.build(full, StepContext(seed=1, scratch=tmp_path))
    assert isinstance(step, ScreenSensitive)
    return step


def make(user: str) -> Example:
    return Example(example_id="e", messages=(ChatMessage("user", user), ChatMessage("assistant", "ok")))


def test_facts_count_findings_and_examples(tmp_path: Path) -> None:
    step = build(tmp_path)
    step.apply(make("13912345678 13612345678 user@example.com"))
    step.apply(make("13912345678 a@firm.cn"))
    step.apply(make("nothing"))
    assert step.facts() == {
        "num_findings": {"email": 1, "phone": 3},
        "num_examples": {"email": 1, "phone": 2},
        "num_reserved_ignored": 1,
        "num_in_fields": 0,
    }


def test_parameters(tmp_path: Path) -> None:
    step = build(tmp_path, kinds=["ip", "email"], actions={"ip": "drop"}, regions=["FR"])
    assert step.apply(make("93.184.216.34")).reasons == ("ip-dropped",)
    assert step.apply(make("13912345678")).reasons == ()
    assert step.mask_example(make("a@firm.cn")).input_text == "[EMAIL_1]"
    assert step.mask_text("a@firm.cn") == "[EMAIL]"


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("kinds", ["phones"]),
        ("kinds", []),
        ("regions", ["XX"]),
        ("action", "delete"),
        ("actions", {"phone": "delete"}),
        ("actions", {"phones": "drop"}),
        ("ignore_reserved", "yes"),
    ],
)
def test_wrong_parameters(key: str, value: object) -> None:
    with pytest.raises(ConfigInvalid) as caught:
        read_parameters(SCREEN_SENSITIVE, {key: value}, "step")
    assert caught.value.faults[0].where == f"step.{key}"


def test_the_demo_data_holds_only_reserved_numbers(tmp_path: Path) -> None:
    step = build(tmp_path)
    for name in ("train", "holdout", "ood"):
        for example in read_examples(TICKETS / f"{name}.jsonl"):
            assert step.apply(example).example is example
    assert step.facts()["num_findings"] == {}


def test_the_kind_is_exposed() -> None:
    assert KINDS == (SCREEN_SENSITIVE,) and set(SCREEN_SENSITIVE.rules) == set(SCREEN_SENSITIVE.defaults)
