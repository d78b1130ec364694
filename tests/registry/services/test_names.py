"""Names and references."""

import pytest

from registry.errors import ValidationFailed
from registry.services.names import Reference, find_name_fault, near_misses, parse_reference


@pytest.mark.parametrize("name", ["a", "tickets", "qwen2.5-7b", "a_b", "x" * 96])
def test_good_names(name: str) -> None:
    assert find_name_fault(name, where="/name") is None


@pytest.mark.parametrize("name", ["", "A", "a/b", "-a", "a-", ".", "a b", "x" * 97, "a\n", "数"])
def test_bad_names(name: str) -> None:
    fault = find_name_fault(name, where="/name")
    assert fault is not None and (fault.code, fault.where) == ("name-invalid", "/name")


def test_references() -> None:
    assert parse_reference("tickets@12", where="/x") == Reference(name="tickets", number=12)
    assert parse_reference("tickets", where="/x") == Reference(name="tickets", number=None)
    assert str(Reference(name="a", number=2)) == "a@2" and str(Reference(name="a", number=None)) == "a"


@pytest.mark.parametrize(
    "text", ["", "@1", "a@", "a@0", "a@01", "a@-1", "a@1@2", "A@1", "a@1.5", "a@9999999999"]
)
def test_bad_references(text: str) -> None:
    with pytest.raises(ValidationFailed) as caught:
        parse_reference(text, where="/suite")
    assert caught.value.faults[0].where == "/suite"


def test_a_number_can_be_needed() -> None:
    with pytest.raises(ValidationFailed):
        parse_reference("tickets", where="/x", needs_number=True)


def test_near_misses() -> None:
    assert near_misses("ticktes", ["tickets", "zebra"]) == " Did you mean 'tickets'?"
    assert near_misses("q", ["tickets"]) == ""
