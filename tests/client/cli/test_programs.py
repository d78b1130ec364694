import sys

import pytest

from client.cli.programs import become_program
from client.errors import UsageError


def test_another_program_takes_the_place_of_this_one() -> None:
    calls: list[tuple[str, list[str]]] = []
    become_program(
        "some.module",
        ["a", "--b"],
        needed_packages=("json",),
        not_installed=("x", "{missing}"),
        replace_process=lambda path, arguments: calls.append((path, arguments)),
    )
    assert calls == [(sys.executable, [sys.executable, "-m", "some.module", "a", "--b"])]


def test_every_missing_package_is_named() -> None:
    with pytest.raises(UsageError) as caught:
        become_program(
            "some.module",
            [],
            needed_packages=("json", "no_such_package_a", "no_such_package_b"),
            not_installed=("not-there", "missing: {missing}"),
        )
    assert caught.value.code == "not-there"
    assert caught.value.message == "missing: no_such_package_a, no_such_package_b"
