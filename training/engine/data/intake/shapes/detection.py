"""Which shape a file has, judged on its first rows; where that is not sure, what was seen, and no guess."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from registry.artifacts.findings import shown_list
from training.engine.data.intake.settings import AUTO, IntakeSettings
from training.engine.data.intake.shapes.alpaca import AlpacaShape
from training.engine.data.intake.shapes.columns import ColumnsShape
from training.engine.data.intake.shapes.messages import MessagesShape
from training.engine.data.intake.shapes.pairs import KNOWN_PAIRS, PairShape
from training.engine.data.intake.shapes.shape import Shape
from training.engine.data.intake.shapes.sharegpt import ShareGptShape

MIN_CLAIMED_FRACTION = 0.8
"""Part of the first rows that must have the columns of one shape for it to be sure."""
MAX_SHOWN_COLUMNS = 12

_ASKING = (
    "text", "query", "question", "utterance", "sentence", "prompt", "instruction", "input", "content",
    "message", "ticket", "request", "用户输入", "输入", "问题", "文本", "内容", "提问", "指令",
)  # fmt: skip
_ANSWERING = (
    "label", "answer", "response", "output", "completion", "reply", "intent", "target", "summary",
    "result",     "输出", "答案", "回答", "回复", "标签", "结果",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class ShapeCandidate:
    """How well one shape fits the first rows.

    Attributes:
        name: The shape.
        columns: The columns that it would read.
        num_claimed: Rows that have its columns in its types.
        doubt: Why the first other row is not of it; "" when all are.
    """

    name: str
    columns: tuple[str, ...]
    num_claimed: int
    doubt: str

    def to_json(self) -> dict[str, Any]:
        """Return the form used in previews."""
        return {
            "shape": self.name,
            "columns": list(self.columns),
            "num_rows": self.num_claimed,
            "doubt": self.doubt,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class ShapeChoice:
    """The shape of a file, or why it is not known.

    Attributes:
        shape: None when it is not sure.
        confidence: "stated", "sure", "unsure", or "none" when there was no row to judge by.
        reason: One sentence.
        candidates: All shapes that were tried, the best first.
        suggestion: Value for ``columns`` that a person may want to state; empty when none comes to mind.
    """

    shape: Shape | None
    confidence: str
    reason: str
    candidates: tuple[ShapeCandidate, ...] = ()
    suggestion: Mapping[str, str] = field(default_factory=dict)


def choose_shape(rows: Sequence[Mapping[str, Any]], settings: IntakeSettings) -> ShapeChoice:
    """Choose the shape of a file.

    Args:
        rows: Its first readable rows.
        settings: A stated shape or mapped columns win.
    """
    stated = settings.shape if settings.shape != AUTO else ""
    if stated == "columns" or any(
        name in settings.columns for name in ("input", "messages", "conversations")
    ):
        return _choose_stated(rows, [ColumnsShape(settings.columns)], "columns")
    shapes: list[Shape] = [MessagesShape(), ShareGptShape(), AlpacaShape()]
    shapes.extend(PairShape(*pair) for pair in KNOWN_PAIRS)
    if stated:
        return _choose_stated(rows, [shape for shape in shapes if shape.name == stated], stated)
    candidates = _rank(rows, shapes)
    return _choose_found(rows, candidates)


def _choose_stated(rows: Sequence[Mapping[str, Any]], shapes: list[Shape], name: str) -> ShapeChoice:
    ranked = _rank(rows, shapes)
    candidates = tuple(candidate for candidate, _ in ranked)
    best, shape = ranked[0]
    claimed = [candidate for candidate in candidates if candidate.num_claimed]
    if not rows:
        return ShapeChoice(shape=shape, confidence="stated", reason="stated; no row to see it by")
    if not claimed:
        reason = (
            f"stated as {name}, but no row of the first {len(rows)} fits: {best.doubt}; {_columns_seen(rows)}"
        )
        return ShapeChoice(
            shape=None,
            confidence="unsure",
            reason=reason,
            candidates=candidates,
            suggestion=suggest_columns(rows),
        )
    if len(claimed) > 1 and claimed[1].num_claimed == best.num_claimed:
        return _both(claimed, candidates)
    return ShapeChoice(shape=shape, confidence="stated", reason="stated", candidates=candidates)


def _choose_found(
    rows: Sequence[Mapping[str, Any]], ranked: list[tuple[ShapeCandidate, Shape]]
) -> ShapeChoice:
    candidates = tuple(candidate for candidate, _ in ranked)
    if not rows:
        return ShapeChoice(shape=None, confidence="none", reason="there is no readable row to judge by")
    claimed = [candidate for candidate in candidates if candidate.num_claimed]
    if not claimed:
        reason = f"no row of the first {len(rows)} has a known shape; {_columns_seen(rows)}"
        return ShapeChoice(
            shape=None,
            confidence="unsure",
            reason=reason,
            candidates=candidates,
            suggestion=suggest_columns(rows),
        )
    best = claimed[0]
    rivals = [item for item in claimed[1:] if item.num_claimed > (1 - MIN_CLAIMED_FRACTION) * len(rows)]
    if rivals:
        return _both([best, *rivals], candidates)
    if best.num_claimed < MIN_CLAIMED_FRACTION * len(rows):
        seen = f"only {best.num_claimed} of the first {len(rows)} rows look like {best.name}"
        reason = f"{seen}; in others: {best.doubt}"
        return ShapeChoice(shape=None, confidence="unsure", reason=reason, candidates=candidates)
    reason = f"{best.num_claimed} of the first {len(rows)} rows have {' and '.join(best.columns)}"
    return ShapeChoice(shape=ranked[0][1], confidence="sure", reason=reason, candidates=candidates)


def _both(claimed: Sequence[ShapeCandidate], candidates: tuple[ShapeCandidate, ...]) -> ShapeChoice:
    listed = " and ".join(
        f"{item.name} ({', '.join(item.columns)}: {item.num_claimed} rows)" for item in claimed
    )
    reason = f"several shapes are possible: {listed}"
    return ShapeChoice(shape=None, confidence="unsure", reason=reason, candidates=candidates)


def _rank(rows: Sequence[Mapping[str, Any]], shapes: Sequence[Shape]) -> list[tuple[ShapeCandidate, Shape]]:
    ranked = []
    for shape in shapes:
        doubts = [doubt for row in rows if (doubt := shape.doubt(row))]
        needed = tuple(column for column, meaning in shape.meanings.items() if meaning in _NEEDED)
        candidate = ShapeCandidate(
            name=shape.name,
            columns=needed,
            num_claimed=len(rows) - len(doubts),
            doubt=doubts[0] if doubts else "",
        )
        ranked.append((candidate, shape))
    return sorted(ranked, key=lambda item: -item[0].num_claimed)


_NEEDED = ("messages", "conversations", "input", "answer", "input, first part")


def suggest_columns(rows: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Return the mapping that the names of the columns suggest: input, and answer where there is one."""
    columns = {str(column).casefold(): str(column) for row in rows for column in row}
    asking = next((columns[name] for name in _ASKING if name in columns), None)
    if asking is None:
        return {}
    answering = next(
        (columns[name] for name in _ANSWERING if name in columns and columns[name] != asking), None
    )
    return {"input": asking} if answering is None else {"input": asking, "answer": answering}


def _columns_seen(rows: Sequence[Mapping[str, Any]]) -> str:
    columns = dict.fromkeys(str(column) for row in rows for column in row)
    return f"columns seen: {shown_list(columns, limit=MAX_SHOWN_COLUMNS)}"
