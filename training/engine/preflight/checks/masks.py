"""Checks of the label mask: the trained tokens are the answer and its end token, and nothing else."""

from collections.abc import Sequence
from enum import Enum, auto

from training.engine.chat import IGNORED_LABEL, ChatTokenizer, render_prompt_ids
from training.engine.errors import ChatTemplateUnsuitable
from training.engine.handbook.rows import HandbookRow
from training.engine.preflight.data_view import DataView
from training.engine.preflight.decoding import decode
from training.engine.preflight.outcomes import failed, judge_part, passed, skipped, warned
from training.engine.preflight.report import CheckResult
from training.engine.preflight.token_rows import TokenRow

_NUM_TAIL_TOKENS = 3
"""Trained tokens after the end token that may be white space: templates write a line break there."""


class SpanEnd(Enum):
    """How a stretch of trained tokens ends."""

    STOP = auto()
    MASKED_STOP = auto()
    HOLE = auto()
    ROW = auto()


def check_trained_tokens(view: DataView) -> CheckResult:
    """Every row has a trained token (truncation and wrong masks leave none)."""
    silent = [row.example_id for row in view.rows if not row.is_trained]
    if not silent:
        return passed("trained-tokens", f"each of {len(view.rows)} rows has trained tokens")
    return failed(
        "trained-tokens",
        HandbookRow.WRONG_DATA,
        f"{len(silent)} of {len(view.rows)} rows have no trained token: all their labels are "
        f"{IGNORED_LABEL}, nothing is learnt from them",
        remedy="Mend the label mask: the labels of the answer are its token ids. Where a length limit has "
        "cut the answers off, raise it or drop those rows.",
        example_ids=silent,
    )


def check_labels(view: DataView) -> CheckResult:
    """A label is -100 or the id at its own place (labels are shifted inside the loss, never before)."""
    wrong = [
        row.example_id
        for row in view.rows
        if any(
            label not in (IGNORED_LABEL, token)
            for token, label in zip(row.input_ids, row.labels, strict=True)
        )
    ]
    if not wrong:
        return passed("labels-in-place", f"the labels of {len(view.rows)} rows are their own tokens")
    return failed(
        "labels-in-place",
        HandbookRow.WRONG_DATA,
        f"{len(wrong)} of {len(view.rows)} rows have labels that are not the tokens at their places: they "
        "are shifted, or of another row",
        remedy=f"Set each label to the input id at the same place, or {IGNORED_LABEL}; the loss shifts them "
        "itself.",
        example_ids=wrong,
    )


def check_prompt_untrained(view: DataView) -> CheckResult:
    """No row is trained from its beginning (a mask that was never made)."""
    whole = [row.example_id for row in view.rows if row.is_trained and row.num_prompt_tokens <= 1]
    if not whole:
        return passed("prompt-not-trained", f"none of {len(view.rows)} rows is trained from its beginning")
    return judge_part(
        "prompt-not-trained",
        HandbookRow.WRONG_DATA,
        f"{len(whole)} of {len(view.rows)} rows are trained from their first token on: the model learns to "
        "repeat the questions",
        remedy=f"Set the labels of everything before the answer to {IGNORED_LABEL}.",
        example_ids=whole,
        num_all=len(view.rows),
    )


def check_trained_text(view: DataView) -> CheckResult:
    """The decoded trained tokens are the answer and one end token, exactly."""
    known = [row for row in view.rows if row.example_id in view.messages]
    if not known:
        return skipped("trained-text", "the answers that the rows were made from are not known")
    wrong = [
        row.example_id
        for row in known
        if not _is_answer(view.tokenizer, row, view.messages[row.example_id][-1].content)
    ]
    if not wrong:
        return passed(
            "trained-text", f"the trained tokens of {len(known)} rows decode to answer and end token"
        )
    return failed(
        "trained-text",
        HandbookRow.WRONG_DATA,
        f"in {len(wrong)} of {len(known)} rows the trained tokens do not decode to the answer and one end "
        "token",
        remedy="Look at the decoded rows: the label mask does not lie on the answer, or the template "
        "changes it.",
        example_ids=wrong,
    )


def check_prompts(view: DataView) -> CheckResult:
    """A row begins with exactly the ids that serving would send (looked at in a sample)."""
    known = [row for row in view.sample if row.example_id in view.messages]
    if not known:
        return skipped("prompt-as-served", "the messages that the rows were made from are not known")
    try:
        wrong = [
            row.example_id
            for row in known
            if list(row.input_ids[: row.num_prompt_tokens])
            != render_prompt_ids(view.tokenizer, view.messages[row.example_id][:-1])
        ]
    except ChatTemplateUnsuitable as error:
        return failed(
            "prompt-as-served", HandbookRow.WRONG_DATA, error.message, remedy="Mend the chat template."
        )
    if not wrong:
        return passed("prompt-as-served", f"{len(known)} rows begin with the prompt that serving renders")
    return failed(
        "prompt-as-served",
        HandbookRow.WRONG_DATA,
        f"{len(wrong)} of {len(known)} rows do not begin with the ids that serving renders for their "
        "prompt: the model is trained on other prompts than it is asked with",
        remedy="Render training and serving with one chat template, and tokenise the prompt by itself.",
        example_ids=wrong,
    )


def check_mask_holes(view: DataView) -> CheckResult:
    """No answer is left in its middle by the mask."""
    wrong = [row.example_id for row in view.rows if SpanEnd.HOLE in _list_ends(view, row)]
    if not wrong:
        return passed("mask-without-holes", f"no mask of {len(view.rows)} rows ends inside of an answer")
    return judge_part(
        "mask-without-holes",
        HandbookRow.WRONG_DATA,
        f"in {len(wrong)} of {len(view.rows)} rows a trained stretch ends in the middle of a text: the mask "
        "lies beside the answer, or cuts it in two",
        remedy="Look at the decoded rows and mend the mask; each answer is trained from its first token to "
        "its end token.",
        example_ids=wrong,
        num_all=len(view.rows),
    )


def check_end_token(view: DataView) -> CheckResult:
    """The end token of each answer is there and trained."""
    masked, missing = _find_wrong_ends(view)
    wrong = [*masked, *missing]
    if not wrong:
        return passed(
            "end-token-trained", f"each answer of {len(view.rows)} rows ends with a trained end token"
        )
    return judge_part(
        "end-token-trained",
        HandbookRow.NEVER_STOPS,
        f"{len(wrong)} of {len(view.rows)} rows do not train the end token ({len(masked)} mask it, "
        f"{len(missing)} have none): the model would not learn to stop",
        remedy="Put the end token behind each answer and give it its own id as label.",
        example_ids=wrong,
        num_all=len(view.rows),
    )


def check_padding_mask(view: DataView) -> CheckResult:
    """The end token is not masked because padding uses the same token."""
    pad = view.tokenizer.pad_token_id
    masked = [row for row in view.rows if SpanEnd.MASKED_STOP in _list_ends(view, row)]
    wrong = [row.example_id for row in masked if pad is not None and _first_after_answer(row) == pad]
    if not wrong:
        return passed("padding-keeps-end-token", "no end token is masked as padding")
    return judge_part(
        "padding-keeps-end-token",
        HandbookRow.NEVER_STOPS,
        f"in {len(wrong)} of {len(view.rows)} rows the end token is masked, and padding is that same token "
        f"({pad}): who masks the padding by its id masks the end of each answer too",
        remedy="Mask padding by its place (the attention mask), not by its id, or pad with another token.",
        example_ids=wrong,
        num_all=len(view.rows),
    )


def check_stop_token(view: DataView) -> CheckResult:
    """Serving stops at the token that the rows end with."""
    last = {row.trained_ids[-1] for row in view.rows if SpanEnd.STOP in _list_ends(view, row)[-1:]}
    strange = sorted(last - view.stop_ids) if view.stop_ids else []
    if not strange:
        return passed("end-token-stops-serving", "serving stops by itself at the trained end token")
    shown = ", ".join(f"{token} {decode(view.tokenizer, [token])!r}" for token in strange)
    return warned(
        "end-token-stops-serving",
        HandbookRow.NEVER_STOPS,
        f"the rows end with {shown}, which is neither the tokenizer's eos token nor one of the base's "
        "generation settings: a server that is not told so writes on behind the answer (Assay's own "
        "evaluation is told)",
        remedy="Pass this token as a stop id in serving, or add it to eos_token_id in "
        "generation_config.json.",
    )


def check_length_limit(view: DataView) -> CheckResult:
    """No row was cut at the length limit."""
    limit = view.config.training.max_length_tokens
    cut = [
        row.example_id
        for row in view.rows
        if len(row.input_ids) >= limit and row.input_ids[-1] not in view.end_ids
    ]
    if not cut:
        return passed(
            "not-cut-at-the-limit", f"no row of {len(view.rows)} ends at {limit} tokens without its end"
        )
    return judge_part(
        "not-cut-at-the-limit",
        HandbookRow.WRONG_DATA,
        f"{len(cut)} of {len(view.rows)} rows have {limit} tokens or more and no end token: the length "
        "limit has cut them, and the model learns to stop in the middle",
        remedy="Drop the rows that are too long, or raise max_length_tokens.",
        example_ids=cut,
        num_all=len(view.rows),
    )


def _is_answer(tokenizer: ChatTokenizer, row: TokenRow, answer: str) -> bool:
    ids = row.trained_ids
    # Templates that strip answers (Llama 3) are allowed to.
    return bool(ids) and decode(tokenizer, ids[:-1]) in (answer, answer.strip())


def _list_ends(view: DataView, row: TokenRow) -> list[SpanEnd]:
    return [
        _find_end(view, row, begin, end) for begin, end, trained in row.iterate_spans() if trained and end > 1
    ]


def _find_end(view: DataView, row: TokenRow, begin: int, end: int) -> SpanEnd:
    tail = row.input_ids[max(begin, end - _NUM_TAIL_TOKENS) : end]
    for index in range(len(tail) - 1, -1, -1):
        if tail[index] in view.end_ids:
            rest = tail[index + 1 :]
            return SpanEnd.STOP if not decode(view.tokenizer, rest).strip() else SpanEnd.HOLE
    if end == len(row.input_ids):
        return SpanEnd.ROW
    return SpanEnd.MASKED_STOP if row.input_ids[end] in view.end_ids else SpanEnd.HOLE


def _find_wrong_ends(view: DataView) -> tuple[list[str], list[str]]:
    masked, missing = [], []
    for row in view.rows:
        ends = _list_ends(view, row)
        if SpanEnd.MASKED_STOP in ends:
            masked.append(row.example_id)
        elif SpanEnd.ROW in ends:
            missing.append(row.example_id)
    return masked, missing


def _first_after_answer(row: TokenRow) -> int | None:
    ends: Sequence[int] = [end for _, end, trained in row.iterate_spans() if trained]
    return row.input_ids[ends[-1]] if ends and ends[-1] < len(row.input_ids) else None
