"""Cleaning step: JSON answers in one form (MISSION C2): compact, fields in one order, no fence, nothing lost.

Which keys there are, and of what type, is none of this step's business: the check ``uniformity`` looks at it.
General instruction data is left alone, and so is a dataset in which only few answers are JSON.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

from registry.artifacts.findings import shown
from training.engine.data.cleaning.json_answers import JsonNumber, JsonRefused, encode_string, parse_json
from training.engine.data.cleaning.step import Outcome, StepContext, StepKind
from training.engine.data.examples import Example
from training.engine.settings_rules import NAMES, choice, number, optional

_FENCE = "```"
_FENCE_START = re.compile(r"```[A-Za-z0-9_-]{0,20}\s")
_MAX_DEPTH = 100
MAX_PATHS = 200
MAX_ORDERS_PER_PATH = 2000
MAX_KEYS = 200
"""Objects whose keys are data (ids, dates) have endless orders; beyond these bounds none is learnt."""
MAX_OBJECTS_PER_ANSWER = 2000
"""Of one answer only so many are learnt from: each costs a search through the input."""
MIN_AGREEMENT = 0.5
"""Part of the objects at one place that must have the commonest order before others are brought into it."""
MIN_AGREEMENT_WHEN_QUOTED = 0.8
"""The same where most objects list their values as the input does: there the order may mean something."""

Path = tuple[str, ...]
Orders = Mapping[Path, Mapping[str, int]]


def take_from_fence(text: str) -> str:
    """Return what stands in the code fence that is all around the text, or the text itself, trimmed."""
    stripped = text.strip()
    start = _FENCE_START.match(stripped)
    if not start or not stripped.endswith(_FENCE) or len(stripped) < start.end() + len(_FENCE):
        return stripped
    inside = stripped[start.end() : -len(_FENCE)].strip()
    # Two fences with prose in between begin and end like one.
    return inside if inside.startswith(("{", "[")) and inside.endswith(("}", "]")) else stripped


def write_canonical(value: Any, orders: Orders) -> str:
    """Return parsed JSON (see ``parse_json``) as compact text.

    Args:
        value: The parsed value; numbers are written as they were read.
        orders: For the path of an object, each known key's place; other keys follow in their own order. A
            path holds the keys from the top, ``[]`` for the elements of a list.

    Raises:
        JsonRefused: ``too-deep``: nested more than 100 deep.
    """
    return _write(value, orders, ())


def _write(value: Any, orders: Orders, path: Path) -> str:
    if len(path) > _MAX_DEPTH:
        raise JsonRefused("too-deep", f"nested more than {_MAX_DEPTH} deep")
    if isinstance(value, dict):
        keys = _sort_keys(list(value), orders.get(path, {}))
        return (
            "{" + ",".join(f"{encode_string(k)}:{_write(value[k], orders, (*path, k))}" for k in keys) + "}"
        )
    if isinstance(value, list):
        return "[" + ",".join(_write(item, orders, (*path, "[]")) for item in value) + "]"
    if isinstance(value, JsonNumber):
        return str(value)
    if isinstance(value, str):
        return encode_string(value)
    return {None: "null", True: "true", False: "false"}[value]


def _sort_keys(keys: list[str], places: Mapping[str, int]) -> list[str]:
    last = len(places)
    return sorted(keys, key=lambda key: places.get(key, last))


class _KeyOrders:
    """Counts the orders of keys at each place of the answers."""

    def __init__(self) -> None:
        self._orders: defaultdict[Path, Counter[tuple[str, ...]]] = defaultdict(Counter)
        self._num_quoted: Counter[Path] = Counter()
        self._unbounded: set[Path] = set()

    def add(self, value: Any, input_text: str) -> None:
        """Count the objects of one answer, the first 2,000 of them."""
        for path, item in islice(_iterate_objects(value), MAX_OBJECTS_PER_ANSWER):
            self._count(item, input_text, path)

    def _count(self, value: dict[str, Any], input_text: str, path: Path) -> None:
        # One key alone has no order, but is one to know the place of.
        if path in self._unbounded or (path not in self._orders and len(self._orders) >= MAX_PATHS):
            return
        orders = self._orders[path]
        orders[tuple(value)] += 1
        self._num_quoted[path] += len(value) > 1 and _is_quoted_in_order(value.values(), input_text)
        if len(orders) > MAX_ORDERS_PER_PATH or len(value) > MAX_KEYS:
            self._unbounded.add(path)
            del self._orders[path]

    def learn(self) -> list["_LearntOrder"]:
        """Return what was learnt of each place, in the order in which the places came."""
        learnt = [_agree(path, orders, self._num_quoted[path]) for path, orders in self._orders.items()]
        return learnt + [_LearntOrder(path, (), None, None) for path in sorted(self._unbounded)]


def _iterate_objects(value: Any, path: Path = ()) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Yield the objects of a parsed value, the outermost first, to the depth that is written."""
    if len(path) > _MAX_DEPTH:
        return
    if isinstance(value, dict):
        yield path, value
        for key, item in value.items():
            yield from _iterate_objects(item, (*path, key))
    elif isinstance(value, list):
        for item in value:
            yield from _iterate_objects(item, (*path, "[]"))


def _is_quoted_in_order(values: Iterable[Any], text: str) -> bool:
    """Return whether the values are texts that stand in the input one after the other."""
    position = 0
    for value in values:
        if not isinstance(value, str) or isinstance(value, JsonNumber) or not value:
            return False
        found = text.find(value, position)
        if found < 0:
            return False
        position = found + len(value)
    return True


@dataclass(frozen=True, slots=True)
class _LearntOrder:
    """The order of keys at one place.

    Attributes:
        path: The place.
        keys: All keys in the commonest order.
        agreement: Part of the objects with several keys that follow it; None when there were too many orders.
        quoted: Part of these that list their values as the input does.
    """

    path: Path
    keys: tuple[str, ...]
    agreement: float | None
    quoted: float | None

    @property
    def is_settled(self) -> bool:
        if self.agreement is None or self.quoted is None:
            return False
        return self.agreement >= (MIN_AGREEMENT_WHEN_QUOTED if self.quoted >= 0.5 else MIN_AGREEMENT)


def _agree(path: Path, orders: Counter[tuple[str, ...]], num_quoted: int) -> _LearntOrder:
    """Return the order that most objects follow: the commonest whole order, and keys that it lacks put behind
    the key that they follow in the commonest order that has them.
    """
    ranked = sorted(orders.items(), key=lambda item: (-item[1], -len(item[0]), item[0]))
    agreed: list[str] = []
    for keys, _ in ranked:
        place = 0
        for key in keys:
            if key in agreed:
                place = agreed.index(key) + 1
            else:
                agreed.insert(place, key)
                place += 1
    places = {key: place for place, key in enumerate(agreed)}
    several = {keys: number for keys, number in orders.items() if len(keys) > 1}
    num_objects = sum(several.values())
    if not num_objects:
        return _LearntOrder(path, tuple(agreed), 1.0, 0.0)
    following = sum(n for keys, n in several.items() if _sort_keys(list(keys), places) == list(keys))
    return _LearntOrder(path, tuple(agreed), following / num_objects, num_quoted / num_objects)


class _CanonicalJson:
    def __init__(self, parameters: Mapping[str, Any], _context: StepContext) -> None:
        self._parameters = parameters
        self._key_orders = _KeyOrders()
        self._num_json = self._num_answers = 0
        self._orders: Orders | None = None

    def observe(self, example: Example) -> None:
        if example.is_general or example.answer is None:
            return
        self._num_answers += 1
        try:
            value = _parse_container(take_from_fence(example.answer))
        except JsonRefused as refused:
            self._num_json += refused.code != "not-json"
            return
        self._num_json += 1
        self._key_orders.add(value, example.input_text)

    def apply(self, example: Example) -> Outcome:
        if example.is_general or example.answer is None or not self._is_json_dataset():
            return Outcome.kept(example)
        answer = take_from_fence(example.answer)
        try:
            value = _parse_container(answer)
            written = write_canonical(value, self._settled_orders())
        except JsonRefused as refused:
            return self._refuse(example, refused)
        if written == example.answer:
            return Outcome.kept(example)
        reasons = []
        if answer != example.answer.strip():
            reasons.append("fence-removed")
        as_it_was = write_canonical(value, {})
        if as_it_was != answer or (answer != example.answer and not reasons):
            reasons.append("json-form")
        if written != as_it_was:
            reasons.append("field-order")
        return Outcome.changed(example.with_answer(written), *reasons)

    def facts(self) -> Mapping[str, Any]:
        return {
            "is_applied": self._is_json_dataset(),
            "num_answers": self._num_answers,
            "json_fraction": round(self._json_fraction(), 4),
            "field_orders": {
                _show(learnt.path): {
                    "keys": [shown(key) for key in learnt.keys],
                    "agreement": _round(learnt.agreement),
                    "quoted_from_input": _round(learnt.quoted),
                    "is_applied": learnt.path in self._settled_orders(),
                }
                for learnt in self._key_orders.learn()
            },
        }

    def _json_fraction(self) -> float:
        return self._num_json / self._num_answers if self._num_answers else 0.0

    def _is_json_dataset(self) -> bool:
        return self._num_json > 0 and self._json_fraction() >= self._parameters["min_json_fraction"]

    def _settled_orders(self) -> Orders:
        if self._orders is None:
            settled = {learnt.path: learnt.keys for learnt in self._key_orders.learn() if learnt.is_settled}
            if self._parameters["field_order"] is not None:
                settled[()] = self._parameters["field_order"]
            self._orders = {
                path: {key: place for place, key in enumerate(keys)} for path, keys in settled.items()
            }
        return self._orders

    def _refuse(self, example: Example, refused: JsonRefused) -> Outcome:
        detail = shown(refused)
        parameter = "not_json" if refused.code == "not-json" else "faulty_json"
        if self._parameters[parameter] == "drop":
            return Outcome.dropped(refused.code, detail=detail)
        return Outcome.flagged(example, refused.code, detail=detail)


def _parse_container(text: str) -> Any:
    if not text.startswith(("{", "[")):
        raise JsonRefused("not-json", "neither an object nor an array")
    return parse_json(text)


def _round(fraction: float | None) -> float | None:
    return None if fraction is None else round(fraction, 4)


def _show(path: Path) -> str:
    return ".".join(("$", *(shown(key) for key in path)))


KIND = StepKind(
    name="canonical_json",
    version=1,
    summary="Writes JSON answers compact and with fields in one order; faulty JSON is dropped or flagged.",
    source="MISSION C2",
    rules={
        "field_order": optional(NAMES),
        "not_json": choice("flag", "drop"),
        "faulty_json": choice("drop", "flag"),
        "min_json_fraction": number(0.0, 1.0),
    },
    defaults={"field_order": None, "not_json": "flag", "faulty_json": "drop", "min_json_fraction": 0.9},
    build=_CanonicalJson,
    needs_first_pass=True,
    is_local=True,
)
KINDS: tuple[StepKind, ...] = (KIND,)
