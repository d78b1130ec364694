"""Views on small healthy data, and ways to spoil them."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from tests.fixtures.models import smollm2_tokenizer
from tests.training.engine.planted.material import make_lines
from training.engine.chat import IGNORED_LABEL, render_rows
from training.engine.config import TrainingConfig
from training.engine.data.examples import ChatMessage, Example
from training.engine.preflight.data_stage import look_at_data, make_view
from training.engine.preflight.data_view import DataView
from training.engine.preflight.report import CheckResult, CheckStatus
from training.engine.preflight.token_rows import TokenRow, from_chat_rows

SYSTEM = "Read the ticket and answer with one JSON object of product, fault and urgency."
PASSED, FAILED, WARNING = CheckStatus.PASSED, CheckStatus.FAILED, CheckStatus.WARNING
SKIPPED = CheckStatus.SKIPPED


def make_examples(count: int = 40, *, seed: int = 0, prefix: str = "e") -> tuple[Example, ...]:
    return tuple(
        make_example(line["id"], line["messages"][0]["content"], line["messages"][1]["content"])
        for line in make_lines(count, seed=seed, prefix=prefix)
    )


def make_example(name: str, question: str, answer: str, *, system: str | None = SYSTEM) -> Example:
    messages = (ChatMessage("user", question), ChatMessage("assistant", answer))
    first = () if system is None else (ChatMessage("system", system),)
    return Example(example_id=name, messages=(*first, *messages))


def view_of(
    examples: Sequence[Example] | None = None, *, tokenizer: Any = None, config: Any = None, **more: Any
) -> DataView:
    tokenizer = tokenizer or smollm2_tokenizer()
    examples = make_examples() if examples is None else examples
    settings = TrainingConfig.from_json(config or {})
    rendered = render_rows(
        tokenizer,
        examples,
        system_prompt=settings.data.system_prompt,
        max_length_tokens=settings.training.max_length_tokens,
    )
    return make_view(
        tokenizer,
        from_chat_rows(rendered.rows),
        settings,
        examples=examples,
        dropped=rendered.dropped,
        **more,
    )


def foreign(change: Callable[[TokenRow], TokenRow] | None = None, *, count: int | None = None) -> DataView:
    """Rows that were tokenised elsewhere: without examples; the first ``count`` are changed, None for all."""
    view = view_of()
    change = change or (lambda row: row)
    rows = [change(row) if count is None or i < count else row for i, row in enumerate(view.rows)]
    return replace(view, rows=rows, examples=())


def with_labels(row: TokenRow, labels: Sequence[int]) -> TokenRow:
    return TokenRow(row.example_id, row.input_ids, tuple(labels))


def masked(row: TokenRow, *places: int) -> TokenRow:
    labels = list(row.labels)
    for place in places:
        labels[place] = IGNORED_LABEL
    return with_labels(row, labels)


def all_results(view: DataView) -> dict[str, CheckResult]:
    return {check.code: check for check in look_at_data(view, ()).checks}


def troubles(view: DataView) -> dict[str, str]:
    """Return the codes that are not passed or skipped, with their rows."""
    return {
        code: str(check.row) for code, check in all_results(view).items() if check.status in (FAILED, WARNING)
    }
