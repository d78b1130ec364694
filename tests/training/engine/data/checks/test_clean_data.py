"""The committed files of the demo are clean: no check has more than an explanation to give."""

from collections.abc import Callable

import pytest

from registry.artifacts.findings import Severity
from tests.training.engine.data.checks.conftest import Run
from training.engine.data.checks import (
    answer_in_input,
    label_balance,
    misalignment,
    stock_phrases,
    template_tokens,
    truncation,
    uniformity,
)
from training.engine.data.checks.check import CheckKind
from training.engine.data.examples import Example

KINDS = [
    module.KIND
    for module in (
        answer_in_input,
        label_balance,
        misalignment,
        stock_phrases,
        template_tokens,
        truncation,
        uniformity,
    )
]


@pytest.mark.parametrize("kind", KINDS, ids=[kind.name for kind in KINDS])
@pytest.mark.parametrize("name", ["train", "holdout", "ood"])
def test_clean_data_is_not_complained_of(
    run: Run, demo: Callable[[str], tuple[Example, ...]], kind: CheckKind, name: str
) -> None:
    assert [item for item in run(kind, demo(name)) if item.severity is not Severity.INFO] == []


@pytest.mark.parametrize("kind", KINDS, ids=[kind.name for kind in KINDS])
def test_no_examples_no_findings(run: Run, kind: CheckKind) -> None:
    assert run(kind, []) == ()
    assert set(kind.rules) == set(kind.defaults)


@pytest.mark.parametrize("kind", KINDS, ids=[kind.name for kind in KINDS])
def test_findings_are_the_same_every_time(
    run: Run, demo: Callable[[str], tuple[Example, ...]], kind: CheckKind
) -> None:
    examples = demo("harmful_train")[:150]
    assert run(kind, examples) == run(kind, examples)
