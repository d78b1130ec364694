"""Plans what an evaluation asks of its engines: every example becomes a rendered prompt with its limits.

A plan depends on the suite, the chat format and the subject alone, not on a model: the same prompts go to
the base, the adapter and the merged model.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from evaluation.engine.backends.base import ContinuationRequest, GenerationRequest
from evaluation.engine.errors import Fault, SuiteError, describe_faults
from evaluation.engine.examples import AnyExample, Message, RegressionExample, Role
from evaluation.engine.prompts import (
    ChatFormat,
    RenderedPrompt,
    assemble_messages,
    encode_continuation,
    render_prompt,
)
from evaluation.engine.scoring.regression import ChoiceRule
from evaluation.engine.suite import SuiteDefinition
from evaluation.engine.suite_folder import Suite

Subject = Literal["baseline", "candidate"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedExample:
    """An example and what is asked for it.

    Attributes:
        key: Unique within the plan; also the id of its generation request.
        role: The set that it belongs to.
        example: The example.
        prompt: What the model reads.
        max_tokens: Limit of generated tokens; unused for choices.
        options: Token ids of the options of a choice, in the rule's order; empty for a generated answer.
        is_refused: Whether prompt and answer do not fit into the context (canaries only).
    """

    key: str
    role: Role
    example: AnyExample
    prompt: RenderedPrompt
    max_tokens: int
    options: tuple[tuple[int, ...], ...] = ()
    is_refused: bool = False

    @property
    def num_needed_tokens(self) -> int:
        """Tokens of context that the prompt and its longest answer take."""
        answer = max((len(option) + 1 for option in self.options), default=self.max_tokens)
        return len(self.prompt.token_ids) + answer


@dataclass(frozen=True, slots=True)
class Plan:
    """The planned examples of an evaluation, by set."""

    examples: tuple[PlannedExample, ...]

    def of(self, *roles: Role) -> tuple[PlannedExample, ...]:
        """Return the planned examples of these sets."""
        return tuple(planned for planned in self.examples if planned.role in roles)


def build_plan(suite: Suite, chat: ChatFormat, *, subject: Subject, max_model_len: int) -> Plan:
    """Render every example of the suite.

    A canary may be longer than the context on purpose (E3): it is planned as refused, since that is what
    serving does with it. Any other example must fit.

    Args:
        suite: The checked suite.
        chat: Tokenizer and chat template.
        subject: A baseline run uses the suite's baseline prompt and demonstrations for holdout and OOD.
        max_model_len: Context of the engine in tokens.

    Raises:
        SuiteError: Examples do not fit (``prompt-too-long``), all of them named.
        PromptError: The template cannot render a prompt.
    """
    definition = suite.definition
    planned = [
        _plan_example(example, role, number, definition, chat, subject)
        for role in ("holdout", "ood", "regression", "canary")
        for number, example in enumerate(suite.examples(role))
    ]
    too_long = [p for p in planned if p.role != "canary" and p.num_needed_tokens > max_model_len]
    if too_long:
        faults = [
            Fault(
                "prompt-too-long",
                f"prompt and answer need {p.num_needed_tokens} tokens, the engine has {max_model_len}",
                f"{p.role}.jsonl: {p.example.id}",
                "raise max_model_len, or shorten the example",
            )
            for p in too_long
        ]
        raise SuiteError("prompt-too-long", f"the suite has {describe_faults(faults)}", faults=faults)
    return Plan(tuple(_mark_refused(p, max_model_len) for p in planned))


def generation_requests(
    planned: Sequence[PlannedExample], chat: ChatFormat, *, num_logprobs: int = 0, suffix: str = ""
) -> tuple[GenerationRequest, ...]:
    """Return a generation request for each planned example that is generated.

    Args:
        planned: Planned examples; choices and refused ones are left out.
        chat: Gives the stop tokens.
        num_logprobs: Asked for canaries, so that forms can be compared.
        suffix: Added to the request ids, for repetitions.
    """
    return tuple(
        GenerationRequest(
            request_id=p.key + suffix,
            prompt_token_ids=p.prompt.token_ids,
            max_tokens=p.max_tokens,
            stop_token_ids=chat.stop_token_ids,
            num_logprobs=num_logprobs if p.role == "canary" else 0,
        )
        for p in planned
        if not p.options and not p.is_refused
    )


def continuation_requests(planned: Sequence[PlannedExample]) -> tuple[ContinuationRequest, ...]:
    """Return a scoring request for each option of each planned choice."""
    return tuple(
        ContinuationRequest(
            request_id=option_key(p, number),
            prompt_token_ids=p.prompt.token_ids,
            continuation_token_ids=option,
        )
        for p in planned
        for number, option in enumerate(p.options)
    )


def option_key(planned: PlannedExample, number: int) -> str:
    """Return the request id of one option of a planned choice."""
    return f"{planned.key}/{number}"


def _plan_example(
    example: AnyExample,
    role: Role,
    number: int,
    definition: SuiteDefinition,
    chat: ChatFormat,
    subject: Subject,
) -> PlannedExample:
    if isinstance(example, RegressionExample):
        return _plan_regression(example, number, definition, chat)
    if subject == "baseline" and role != "canary":
        messages = assemble_messages(
            example,
            system_prompt=definition.baseline_system_prompt,
            few_shot=definition.few_shot,
            replace_system=True,
        )
    else:
        messages = assemble_messages(example, system_prompt=definition.system_prompt)
    return PlannedExample(
        key=f"{role}:{number}",
        role=role,
        example=example,
        prompt=render_prompt(chat, messages),
        max_tokens=definition.max_tokens,
    )


def _plan_regression(
    example: RegressionExample, number: int, definition: SuiteDefinition, chat: ChatFormat
) -> PlannedExample:
    messages = assemble_messages(example, system_prompt=None)
    options: tuple[tuple[int, ...], ...] = ()
    if isinstance(example.scoring, ChoiceRule):
        if example.scoring.question is not None:
            messages = (*messages[:-1], Message("user", example.scoring.question))
        options = tuple(encode_continuation(chat, text) for text in example.scoring.choices)
    return PlannedExample(
        key=f"regression:{number}",
        role="regression",
        example=example,
        prompt=render_prompt(chat, messages),
        max_tokens=definition.regression_max_tokens,
        options=options,
    )


def _mark_refused(planned: PlannedExample, max_model_len: int) -> PlannedExample:
    if planned.num_needed_tokens <= max_model_len:
        return planned
    return PlannedExample(
        key=planned.key,
        role=planned.role,
        example=planned.example,
        prompt=planned.prompt,
        max_tokens=planned.max_tokens,
        is_refused=True,
    )
