"""Makes the data files of the ticket demo task from fragments and hand-written lines.

``python examples/tickets/generate.py`` writes the files beside this script; with ``--check`` it writes
nothing and verifies that the committed files are byte for byte what it makes. The same seed gives the same
bytes. README.md in this folder holds the labelling rules and says how each file was made.

No reference of an evaluation set is typed here or believed: ``labelling.py`` derives the tickets of the
hand-written messages and ``regression_rules.py`` the checks of the regression set, from the text alone. Where
a hand-written line or the composer says the same a second time, the two must agree. Only the standard library
is used.
"""

import argparse
import json
import logging
import random
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from labelling import MODULES, PROBLEM_TYPES, URGENCIES, Ticket, label
from regression_questions import Question, compose_questions
from regression_rules import derive_check, find_declined_act

logger = logging.getLogger("tickets")

FOLDER = Path(__file__).resolve().parent
HANDWRITTEN = FOLDER / "handwritten"
SEED = 20240607
NUM_TRAIN = 400
NUM_HOLDOUT = 120
# Stricter than the gate's 0.85 (MISSION C3, C6), so that a set holds no two messages that are nearly one.
MAX_SIMILARITY = 0.6
# Rows by which the answers of the harmful set are moved against their messages: a misaligned cleaning script.
# Greedy answers of the base model that ended within 110 tokens, right or wrong: see README.md.
BASE_ORIGIN = {"kind": "distilled", "teacher": "SmolLM2-135M-Instruct"}
HARMFUL_SHIFT = 7
# Shares in twentieths.
URGENCY_WEIGHTS = {"low": 4, "normal": 6, "high": 5, "critical": 5}
COMMONSENSE_SEED = 20240607
NUM_COMMONSENSE_OF_EACH_KIND = 5


class DisagreementError(Exception):
    """A label that was written by hand or composed is not the one that the rules derive from the text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GeneratedMessage:
    """A composed message and the labels that it was composed from."""

    text: str
    ticket: Ticket


class Composer:
    """Puts messages together from fragments; draws only from its own random generator.

    Args:
        fragments: the parsed ``fragments.json``.
        rng: source of every choice.
    """

    def __init__(self, fragments: Mapping[str, Any], rng: random.Random) -> None:
        self._fragments = fragments
        self._rng = rng

    def compose(self, ticket: Ticket) -> str:
        """A message that states exactly what the labels say, in varied order and style."""
        rng = self._rng
        parts = [
            rng.choice(self._fragments["urgency"][ticket.urgency]),
            self._call_wish(asks_for_call=ticket.asks_for_call),
            *rng.sample(self._fragments["noise"], rng.choices((0, 1, 2), (5, 4, 1))[0]),
        ]
        rng.shuffle(parts)
        position = 0 if rng.random() < 0.55 else rng.randint(0, len(parts))
        parts.insert(position, self._problem(ticket))
        framed = [rng.choice(self._fragments["greetings"]), *parts, rng.choice(self._fragments["closings"])]
        return self._style([part for part in framed if part])

    def _problem(self, ticket: Ticket) -> str:
        names = self._fragments["modules"][ticket.module]
        the, place = self._rng.choice(names["the"]), self._rng.choice(names["in"])
        sentence: str = self._rng.choice(self._fragments["problems"][ticket.problem_type])
        slots = {"{the}": the, "{The}": the[0].upper() + the[1:], "{in}": place}
        return re.sub(r"\{\w+\}", lambda slot: slots[slot.group()], sentence)

    def _call_wish(self, *, asks_for_call: bool) -> str:
        if asks_for_call:
            return str(self._rng.choice(self._fragments["call"]))
        return str(self._rng.choice(self._fragments["no_call"])) if self._rng.random() < 0.1 else ""

    def _style(self, parts: Sequence[str]) -> str:
        rng = self._rng
        text = ("\n" if rng.random() < 0.12 else " ").join(parts)
        if rng.random() < 0.2:
            text = text.lower()
        if rng.random() < 0.15:
            text = re.sub(r"[.,!](?=\s|$)", "", text)
        if rng.random() < 0.2:
            text = swap_two_letters(text, rng)
        return text


def swap_two_letters(text: str, rng: random.Random) -> str:
    """The text with two inner letters of one word of six or more letters swapped, if there is such a word."""
    words = list(re.finditer(r"\b[A-Za-z]{6,}\b", text))
    if not words:
        return text
    word = rng.choice(words)
    at = word.start() + rng.randint(1, len(word.group()) - 3)
    return text[:at] + text[at + 1] + text[at] + text[at + 2 :]


def draw_ticket(index: int, rng: random.Random) -> Ticket:
    """The labels of sample ``index``: each pair of problem type and module in turn."""
    problem_type = PROBLEM_TYPES[index % len(PROBLEM_TYPES)]
    module = MODULES[index // len(PROBLEM_TYPES) % len(MODULES)]
    urgencies = list(URGENCIES)
    if problem_type == "how_to":
        # A whole company is not blocked by a question about how a thing is done.
        urgencies.remove("critical")
    urgency = rng.choices(urgencies, [URGENCY_WEIGHTS[name] for name in urgencies])[0]
    asks_for_call = rng.random() < 0.25
    return Ticket(problem_type=problem_type, urgency=urgency, module=module, asks_for_call=asks_for_call)


def to_shingles(text: str) -> frozenset[tuple[str, ...]]:
    """The set of word 3-grams of the case-folded text; a shorter text is one shingle."""
    words = re.findall(r"\w+", text.casefold())
    return frozenset(tuple(words[i : i + 3]) for i in range(max(1, len(words) - 2)))


def compute_jaccard(left: frozenset[tuple[str, ...]], right: frozenset[tuple[str, ...]]) -> float:
    """Size of the intersection over size of the union, in [0, 1]."""
    return len(left & right) / len(left | right)


def generate_messages(count: int, seed: int) -> list[GeneratedMessage]:
    """``count`` messages in random order, no two with a similarity of ``MAX_SIMILARITY`` or more."""
    rng = random.Random(seed)
    composer = Composer(read_json(HANDWRITTEN / "fragments.json"), rng)
    messages: list[GeneratedMessage] = []
    seen = [to_shingles(row["text"]) for row in read_jsonl(HANDWRITTEN / "ood.jsonl")]
    while len(messages) < count:
        ticket = draw_ticket(len(messages), rng)
        text = composer.compose(ticket)
        shingles = to_shingles(text)
        if all(compute_jaccard(shingles, other) < MAX_SIMILARITY for other in seen):
            seen.append(shingles)
            messages.append(GeneratedMessage(text=text, ticket=ticket))
    rng.shuffle(messages)
    return messages


def read_json(path: Path) -> Any:
    """The parsed file."""
    return json.loads(path.read_text(encoding="utf-8"))


def read_jsonl(path: Path) -> Iterator[dict[str, Any]]:
    """The objects of the file, one a line."""
    for line in path.read_text(encoding="utf-8").splitlines():
        yield json.loads(line)


def to_messages(user: str, answer: str | None, *, system: str | None = None) -> list[dict[str, str]]:
    """A conversation with an optional system turn and an optional reference answer."""
    turns = [("system", system), ("user", user), ("assistant", answer)]
    return [{"role": role, "content": content} for role, content in turns if content is not None]


def to_origin(source: str | None, channel: str) -> dict[str, Any]:
    """What a line says of itself: its channel, and where its reference is from when that can be said."""
    origin: dict[str, Any] = {"tags": {"channel": channel}}
    return origin if source is None else {**origin, "reference_source": source}


def derive_ticket(row: Mapping[str, Any]) -> Ticket | None:
    """The ticket that the labelling rules derive from a hand-written message; None if none follows.

    Raises:
        DisagreementError: the labels that were written beside the message are others.
    """
    keys = ("problem_type", "urgency", "module", "asks_for_call")
    written = Ticket(**{key: row[key] for key in keys}) if "problem_type" in row else None
    derived = label(row["text"])
    if derived != written:
        raise DisagreementError(f"{row['text']!r}: written {written}, derived {derived}")
    return derived


def build_generated(
    name: str, messages: Iterable[GeneratedMessage], *, system: str | None
) -> list[dict[str, Any]]:
    """Example lines of a generated set.

    Training lines carry the system prompt themselves, so that a mix with general samples, which are trained
    without it, needs no further rule.
    """
    return [
        {
            "id": f"tickets-{name}-{number:04d}",
            "messages": to_messages(message.text, message.ticket.to_answer(), system=system),
            **to_origin("rule", "mail"),
        }
        for number, message in enumerate(messages, start=1)
    ]


def build_harmful(train: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The training lines with the answers moved by ``HARMFUL_SHIFT`` rows: well-formed and wrong.

    No rule gives these answers, so that the lines name no source.
    """
    answers = [line["messages"][-1] for line in train]
    return [
        {
            "id": f"tickets-harmful-{number:04d}",
            "messages": [*line["messages"][:-1], answers[(number - 1 + HARMFUL_SHIFT) % len(answers)]],
            **to_origin(None, line["tags"]["channel"]),
        }
        for number, line in enumerate(train, start=1)
    ]


def build_ood() -> list[dict[str, Any]]:
    """The out-of-distribution lines."""
    lines = []
    for number, row in enumerate(read_jsonl(HANDWRITTEN / "ood.jsonl"), start=1):
        ticket = derive_ticket(row)
        if ticket is None:
            raise DisagreementError(f"{row['text']!r}: no ticket follows from it")
        lines.append(
            {
                "id": f"tickets-ood-{number:04d}",
                "messages": to_messages(row["text"], ticket.to_answer()),
                **to_origin("rule", row["channel"]),
            }
        )
    return lines


def build_canary() -> list[dict[str, Any]]:
    """The canaries; those from whose text the rules derive no ticket have no reference."""
    lines = []
    for number, row in enumerate(read_jsonl(HANDWRITTEN / "canary.jsonl"), start=1):
        ticket = derive_ticket(row)
        lines.append(
            {
                "id": f"tickets-canary-{number:04d}",
                "messages": to_messages(row["text"], ticket.to_answer() if ticket else None),
                "category": row["category"],
                **to_origin("rule", "canary"),
            }
        )
    return lines


def build_general() -> list[dict[str, Any]]:
    """General instruction lines for the mix against forgetting, without system prompt; answered by a language
    model, some by the base itself.
    """
    return [
        {
            "id": f"tickets-general-{number:04d}",
            "messages": to_messages(row["prompt"], row["answer"]),
            "category": row["category"],
            **to_origin("model", "general"),
            **({"origin": BASE_ORIGIN} if row.get("answered_by") == "base" else {}),
        }
        for number, row in enumerate(read_jsonl(HANDWRITTEN / "general.jsonl"), start=1)
    ]


def build_regression() -> list[dict[str, Any]]:
    """The regression lines with the checks that follow from their prompts, sorted by dimension."""
    prompts = [(row["dimension"], row["prompt"]) for row in list_regression_rows()]
    questions = compose_questions(COMMONSENSE_SEED, num_of_each=NUM_COMMONSENSE_OF_EACH_KIND)
    prompts += [
        ("commonsense", compose_choice(question, number)) for number, question in enumerate(questions)
    ]
    lines = []
    for number, (dimension, prompt) in enumerate(sorted(prompts, key=lambda pair: pair[0]), start=1):
        lines.append(
            {
                "id": f"tickets-regression-{number:04d}",
                "dimension": dimension,
                "messages": to_messages(prompt, None),
                "scoring": derive_check(dimension, prompt),
                **to_origin("rule", "general"),
            }
        )
    return lines


def list_regression_rows() -> Iterator[dict[str, Any]]:
    """The hand-written regression rows.

    Raises:
        DisagreementError: a refusal row expects what the list of declined acts does not say.
    """
    for row in read_jsonl(HANDWRITTEN / "regression.jsonl"):
        if row["dimension"] == "refusal":
            act = find_declined_act(row["prompt"])
            if (act is not None) != (row["expect"] == "refuse"):
                raise DisagreementError(f"{row['prompt']!r}: written {row['expect']}, listed as {act}")
        yield row


def compose_choice(question: Question, number: int) -> str:
    """The prompt of a composed question.

    Raises:
        DisagreementError: solving its text does not give the option that it was composed with.
    """
    prompt = question.to_prompt(number)
    scoring = derive_check("commonsense", prompt)
    derived = scoring["choices"][scoring["labels"].index(scoring["answer"])]
    if derived != question.right_sentence:
        raise DisagreementError(f"{prompt!r}: composed {question.right_sentence!r}, solved {derived!r}")
    return prompt


def build_files() -> dict[str, str]:
    """The text of every generated file by its name."""
    suite = read_json(HANDWRITTEN / "suite.json")
    suite["output_schema"] = read_json(FOLDER / "schema.json")
    messages = generate_messages(NUM_TRAIN + NUM_HOLDOUT, SEED)
    train = build_generated("train", messages[:NUM_TRAIN], system=suite["system_prompt"])
    sets = {
        "train": train,
        "holdout": build_generated("holdout", messages[NUM_TRAIN:], system=None),
        "harmful_train": build_harmful(train),
        "ood": build_ood(),
        "regression": build_regression(),
        "canary": build_canary(),
        "general": build_general(),
    }
    files = {f"{name}.jsonl": to_jsonl(lines) for name, lines in sets.items()}
    files["suite.json"] = json.dumps(suite, indent=2, ensure_ascii=False) + "\n"
    return files


def to_jsonl(lines: Iterable[Mapping[str, Any]]) -> str:
    """One JSON object a line, keys in the given order."""
    return "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)


def find_differences(files: Mapping[str, str]) -> list[str]:
    """Names of files that are missing or differ from the given text."""
    return [
        name
        for name, text in files.items()
        if not (FOLDER / name).is_file() or (FOLDER / name).read_bytes() != text.encode()
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    """Writes or checks the files; returns 0, or 1 when ``--check`` found a difference."""
    parser = argparse.ArgumentParser(description="Make the data files of the ticket demo task.")
    parser.add_argument("--check", action="store_true", help="verify the committed files and write nothing")
    options = parser.parse_args(arguments)
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
    files = build_files()
    if options.check:
        differences = find_differences(files)
        for name in differences:
            logger.error("%s is not what generate.py makes: run it without --check", name)
        return 1 if differences else 0
    for name, text in files.items():
        (FOLDER / name).write_bytes(text.encode())
    logger.info("wrote %s", ", ".join(files))
    return 0


if __name__ == "__main__":
    sys.exit(main())
