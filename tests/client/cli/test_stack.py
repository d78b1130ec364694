import sys

import pytest

from client.cli.stack import become_stack
from client.errors import UsageError


def test_the_stack_takes_the_place_of_the_client() -> None:
    calls: list[tuple[str, list[str]]] = []
    become_stack(
        ["up", "--detach"],
        is_installed=lambda _: True,
        replace_process=lambda path, arguments: calls.append((path, arguments)),
    )
    assert calls == [(sys.executable, [sys.executable, "-m", "config.stack", "up", "--detach"])]


def test_a_missing_server_is_told_with_the_way_to_it() -> None:
    with pytest.raises(UsageError, match=r"pip install 'assay-gate\[worker\]'") as caught:
        become_stack(["up"], is_installed=lambda name: name != "celery")
    assert "celery missing" in caught.value.message
