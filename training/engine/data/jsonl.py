"""Reading examples of a job's input folder, with every fault and its line number. No torch here."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from training.engine.data.examples import ROLES, ChatMessage, Example
from training.engine.errors import DataInvalid, Fault

MAX_LISTED_FAULTS = 50
GENERAL_FOLDER = "general"
"""Subfolder of an input whose files hold general instruction data, whatever their lines say."""


def list_jsonl_files(path: Path) -> tuple[Path, ...]:
    """Return ``path`` itself when it is a file, else the ``*.jsonl`` files of the folder and of its
    ``general/``, each sorted by name.

    Raises:
        DataInvalid: ``data-file-missing`` when there is none.
    """
    if path.is_file():
        return (path,)
    files = (*sorted(path.glob("*.jsonl")), *sorted(path.glob(f"{GENERAL_FOLDER}/*.jsonl")))
    if not files:
        raise DataInvalid("data-file-missing", f"The input {path.name} holds no .jsonl file.")
    return files


def read_rows(path: Path) -> list[tuple[int, dict[str, Any]]]:
    """Return (line number, object) of every line that is not blank, whatever its keys.

    Raises:
        DataInvalid: ``jsonl-invalid`` with every line that is not a JSON object.
    """
    faults: list[Fault] = []
    rows = list(_iterate_rows(path, faults))
    _raise_if_faulty(path, faults)
    return rows


def read_examples(path: Path, *, needs_answer: bool = True) -> tuple[Example, ...]:
    """Read the examples of a JSONL file.

    Args:
        path: File in UTF-8, one object per line with ``id`` and ``messages``; other keys are ignored.
        needs_answer: Whether the last message must be the assistant's.

    Raises:
        DataInvalid: ``jsonl-invalid`` with every fault and its line number, duplicate ids included.
    """
    faults: list[Fault] = []
    examples: list[Example] = []
    first_lines: dict[str, int] = {}
    for line, row in _iterate_rows(path, faults):
        where = f"{path.name} line {line}"
        if path.parent.name == GENERAL_FOLDER:
            row = {**row, "role": "general"}
        example = _read_example(row, where, faults, needs_answer=needs_answer)
        if example is None:
            continue
        if example.example_id in first_lines:
            message = (
                f"the id {example.example_id!r} was used in line {first_lines[example.example_id]} already"
            )
            faults.append(Fault(code="duplicate-id", message=message, where=where))
        first_lines.setdefault(example.example_id, line)
        examples.append(example)
    _raise_if_faulty(path, faults)
    return tuple(examples)


def _iterate_rows(path: Path, faults: list[Fault]) -> Iterator[tuple[int, dict[str, Any]]]:
    # Split at "\n" only: str.splitlines also splits at U+2028, which is allowed inside JSON strings.
    with path.open("rb") as file:
        for line, raw in enumerate(file, start=1):
            if not raw.strip():
                continue
            where = f"{path.name} line {line}"
            try:
                row = json.loads(raw.decode("utf-8-sig" if line == 1 else "utf-8"))
            except (UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
                faults.append(
                    Fault(code="not-json", message=f"not a line of JSON in UTF-8: {error}", where=where)
                )
                continue
            if isinstance(row, dict):
                yield line, row
            else:
                faults.append(Fault(code="not-an-object", message="not a JSON object", where=where))


def _read_example(
    row: Mapping[str, Any], where: str, faults: list[Fault], *, needs_answer: bool
) -> Example | None:
    before = len(faults)
    example_id = row.get("id")
    if not isinstance(example_id, str) or not example_id:
        faults.append(Fault(code="id-missing", message="id must be a text that is not empty", where=where))
    messages = _read_messages(row.get("messages"), where, faults)
    if messages and needs_answer and messages[-1].role != "assistant":
        message = f"the last message must be the assistant's answer, it is of {messages[-1].role}"
        faults.append(Fault(code="answer-missing", message=message, where=where))
    if len(faults) > before:
        return None
    return Example(
        example_id=str(example_id),
        messages=messages,
        is_general=row.get("role") == "general",
        fields={key: value for key, value in row.items() if key not in ("id", "messages")},
    )


def _read_messages(raw: Any, where: str, faults: list[Fault]) -> tuple[ChatMessage, ...]:
    if not isinstance(raw, list) or not raw:
        faults.append(
            Fault(code="messages-invalid", message="messages must be a list that is not empty", where=where)
        )
        return ()
    messages = []
    for number, item in enumerate(raw, start=1):
        role = item.get("role") if isinstance(item, dict) else None
        content = item.get("content") if isinstance(item, dict) else None
        if role not in ROLES or not isinstance(content, str):
            message = f"message {number} needs a role ({', '.join(ROLES)}) and a text as content"
            faults.append(Fault(code="messages-invalid", message=message, where=where))
        else:
            messages.append(ChatMessage(role, content))
    return tuple(messages)


def _raise_if_faulty(path: Path, faults: list[Fault]) -> None:
    if not faults:
        return
    listed = "; ".join(f"{fault.where}: {fault.message}" for fault in faults[:5])
    more = f" (and {len(faults) - 5} more)" if len(faults) > 5 else ""
    raise DataInvalid(
        "jsonl-invalid",
        f"{path.name} has {len(faults)} fault(s): {listed}{more}",
        faults=faults[:MAX_LISTED_FAULTS],
    )
