"""Lengths of training rows, rendered as the trainer renders them. Needs the packages of a worker."""

import sys
from collections.abc import Sequence
from dataclasses import replace

from training.engine.chat import ChatTokenizer, render_rows
from training.engine.config import TrainingConfig
from training.engine.data.distributions import LengthCounter
from training.engine.data.examples import Example
from training.engine.lint.data_facts import MeasuredData, UnusableExample, count_examples
from training.engine.lint.plan import summarise_lengths


def measure_rows(
    examples: Sequence[Example], config: TrainingConfig, *, tokenizer: ChatTokenizer
) -> MeasuredData:
    """Count examples and the tokens of each.

    Args:
        examples: All of them.
        config: For the system prompt and the maximum length.
        tokenizer: Of the base model.

    Raises:
        ChatTemplateUnsuitable: See `training.engine.chat.render_rows`.
    """
    counted = count_examples(examples)
    rendered = render_rows(
        tokenizer, examples, system_prompt=config.data.system_prompt, max_length_tokens=sys.maxsize
    )
    lengths = LengthCounter()
    for row in rendered.rows:
        lengths.add(len(row.input_ids))
    facts = replace(
        counted.facts,
        num_rows=len(rendered.rows),
        lengths=summarise_lengths(lengths, max_length_tokens=config.training.max_length_tokens),
    )
    unusable = tuple(
        UnusableExample(example_id=item.example_id, reason=item.reason) for item in rendered.dropped
    )
    return MeasuredData(facts=facts, unusable=unusable)
