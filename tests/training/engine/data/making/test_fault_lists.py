import pytest

from training.engine.data.making.fault_lists import MAX_LISTED_FAULTS, refuse_if_faulty
from training.engine.errors import ConfigInvalid, Fault


def test_no_fault_no_error() -> None:
    refuse_if_faulty(ConfigInvalid, "x-invalid", "The file", [])


def test_lists_are_bounded_and_counted() -> None:
    faults = [Fault(code="f", message="is bad", where=f"place {number}") for number in range(60)]
    with pytest.raises(
        ConfigInvalid, match=r"The file has 60 fault\(s\): place 0: is bad.*55 more"
    ) as caught:
        refuse_if_faulty(ConfigInvalid, "x-invalid", "The file", faults)
    assert caught.value.code == "x-invalid"
    assert len(caught.value.faults) == MAX_LISTED_FAULTS == 50
