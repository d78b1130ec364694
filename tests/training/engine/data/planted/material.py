"""One planted data set before it is written: clean rows with the planted lines among them."""

import json
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.training.engine.data.planted.backgrounds import KEYS, SEED, Row, compose, to_json

FAULTS = Path(__file__).parent / "faults"


@dataclass(frozen=True, slots=True, kw_only=True)
class Material:
    """Lines in the order of the file.

    Attributes:
        lines: (line, whether it is planted), without line feeds.
        background: The clean rows, changed or not.
    """

    lines: tuple[tuple[str, bool], ...]
    background: tuple[Row, ...]

    @property
    def planted_rows(self) -> dict[int, int]:
        """Row number to the number of the planted line, both from 1."""
        places = [place for place, (_, is_planted) in enumerate(self.lines, start=1) if is_planted]
        return {place: number for number, place in enumerate(places, start=1)}

    @property
    def text(self) -> str:
        """The file as JSONL."""
        return "".join(f"{line}\n" for line, _ in self.lines)


def gather(
    name: str,
    background: str,
    num_rows: int,
    *,
    change: str | None = None,
    seed: int = SEED,
    prefix: str = "b",
) -> Material:
    """Compose clean rows, change them where the fault is one of all rows, and put the planted lines in.

    Lines of JSON are spread evenly; a block of CSV stays together, since a record may have several lines.
    """
    rows = compose(background, num_rows, seed=seed, prefix=prefix)
    if change is not None:
        rows = CHANGES[change](rows)
    lines = [(json.dumps(row, ensure_ascii=False), False) for row in rows]
    planted = read_planted(name)
    is_block = (FAULTS / f"{name}.csv").is_file()
    for number, line in reversed(list(enumerate(planted, start=1))):
        place = num_rows // 2 if is_block else number * num_rows // (len(planted) + 1)
        lines.insert(place, (line, True))
    return Material(lines=tuple(lines), background=tuple(rows))


def read_planted(name: str) -> list[str]:
    """Return the planted lines of a fault; none for a fault that is only a change of the clean rows."""
    for ending in ("jsonl", "csv"):
        path = FAULTS / f"{name}.{ending}"
        if path.is_file():
            return path.read_text(encoding="utf-8").removesuffix("\n").split("\n")
    return []


def _move_answers(rows: Sequence[Row], distance: int) -> list[Row]:
    """Move every answer some rows down, negative ones up; at the end of the file they go round."""
    answers = [row["messages"][-1] for row in rows]
    return [
        {**row, "messages": [*row["messages"][:-1], answers[(number - distance) % len(rows)]]}
        for number, row in enumerate(rows)
    ]


def _shuffle_answers(rows: Sequence[Row]) -> list[Row]:
    answers = [row["messages"][-1] for row in rows]
    random.Random(3).shuffle(answers)
    return [
        {**row, "messages": [*row["messages"][:-1], answer]}
        for row, answer in zip(rows, answers, strict=True)
    ]


def _set_value(rows: Sequence[Row], key: str, choose: Callable[[int], str]) -> list[Row]:
    """Set one value of every JSON answer by the row's number, from 1."""
    changed = []
    for number, row in enumerate(rows, start=1):
        answer = {**json.loads(row["messages"][-1]["content"]), key: choose(number)}
        messages = [*row["messages"][:-1], {"role": "assistant", "content": to_json(answer)}]
        changed.append({**row, "messages": messages})
    return changed


def _set_every_third(rows: Sequence[Row], write: Callable[[str, str], tuple[str, str]]) -> list[Row]:
    changed = list(rows)
    for place in range(2, len(rows), 3):
        question, answer = (message["content"] for message in rows[place]["messages"])
        new = zip(("user", "assistant"), write(question, answer), strict=True)
        changed[place] = {
            **rows[place],
            "messages": [{"role": role, "content": content} for role, content in new],
        }
    return changed


def _add_to_all(rows: Sequence[Row], **fields: object) -> list[Row]:
    return [{**row, **fields} for row in rows]


def _group_most(rows: Sequence[Row]) -> list[Row]:
    return [{**row, "group": "customer-4"} if number % 3 else row for number, row in enumerate(rows)]


CHANGES: Mapping[str, Callable[[Sequence[Row]], list[Row]]] = {
    "one-row-down": lambda rows: _move_answers(rows, 1),
    "seven-rows-up": lambda rows: _move_answers(rows, -7),
    "shuffled": _shuffle_answers,
    "mostly-normal": lambda rows: _set_value(
        rows, KEYS["en"][2], lambda number: "normal" if number % 9 else "low"
    ),
    "all-middle": lambda rows: _set_value(rows, KEYS["zh"][2], lambda _: "中"),
    "every-third-answer-in-its-question": lambda rows: _set_every_third(
        rows, lambda question, answer: (f"{question} {answer}", answer)
    ),
    "every-third-answer-is-its-question": lambda rows: _set_every_third(
        rows, lambda question, _: (question, question)
    ),
    "used-and-unedited": lambda rows: _add_to_all(rows, used="yes", edited=False),
    "one-group-for-most": _group_most,
}
"""What is done to all clean rows where the fault is not one of single rows."""
