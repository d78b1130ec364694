"""Clean data sets of two tasks in two languages, composed of fragments, into which faults are planted.

Tickets answer with one JSON object, replies with free text. The same number of rows and seed give the same
rows.
"""

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

Row = dict[str, Any]

FRAGMENTS: dict[str, dict[str, Any]] = json.loads((Path(__file__).parent / "fragments.json").read_text())
BACKGROUNDS = ("tickets-en", "tickets-zh", "replies-en", "replies-zh")
KEYS = {
    "en": ("problem", "product", "urgency", "order", "date", "weight"),
    "zh": ("问题", "产品", "紧急", "订单", "日期", "重量"),
}
SEED = 5


def compose(background: str, num_rows: int, *, seed: int = SEED, prefix: str = "b") -> list[Row]:
    """Return rows with id, messages and tags; neither system prompt nor maker of the reference."""
    task, language = background.split("-")
    draw = _Draw(language, random.Random(f"{background}/{seed}"))
    rows = draw.iterate_tickets() if task == "tickets" else draw.iterate_replies()
    composed = []
    for number in range(num_rows):
        question, answer = next(rows)
        messages = [{"role": "user", "content": question}, {"role": "assistant", "content": answer}]
        composed.append(
            {
                "id": f"{prefix}{number + 1:02d}",
                "messages": messages,
                "tags": {"channel": ("mail", "chat", "form")[number % 3]},
            }
        )
    return composed


class _Draw:
    """Draws one row after the other; no two have the same words."""

    def __init__(self, language: str, rng: random.Random) -> None:
        self._language, self._rng = language, rng
        self._parts = FRAGMENTS[language]
        self._orders: set[str] = set()

    def iterate_tickets(self) -> Iterator[tuple[str, str]]:
        rng, parts = self._rng, self._parts
        while True:
            problem = rng.choice(list(parts["problems"]))
            product = rng.choice(list(parts["products"]))
            urgency = rng.choice(list(parts["urgency"]))
            month, day, grams = rng.randint(1, 10), rng.randint(1, 28), 100 * rng.randint(4, 95)
            slots = {
                "product": rng.choice(parts["products"][product]),
                "order": self._draw_order(),
                "date_text": f"{day} {parts['months'][month - 1]} 2023"
                if self._language == "en"
                else f"2023年{month}月{day}日",
                "grams": str(grams),
            }
            sentences = [
                rng.choice(parts["problems"][problem]),
                rng.choice(parts["orders"]),
                rng.choice(parts["weights"]),
                *rng.sample(parts["asides"], rng.randint(0, 2)),
            ]
            rng.shuffle(sentences)
            sentences.insert(rng.choice((0, len(sentences))), rng.choice(parts["urgency"][urgency]))
            unit = " kg" if self._language == "en" else "公斤"
            values = (
                *(problem, product, urgency, slots["order"]),
                *(f"2023-{month:02d}-{day:02d}", f"{grams / 1000:.1f}{unit}"),
            )
            answer = dict(zip(KEYS[self._language], values, strict=True))
            yield self._join(sentences).format(**slots), to_json(answer)

    def iterate_replies(self) -> Iterator[tuple[str, str]]:
        rng, parts = self._rng, self._parts
        while True:
            slots = {
                "product": rng.choice([name for names in parts["products"].values() for name in names]),
                "order": self._draw_order(),
                "town": rng.choice(parts["towns"]),
                "size": str(rng.randint(41, 98)),
                "days": str(rng.randint(3, 29)),
                **{name: rng.choice(parts[f"{name}s"]) for name in ("weekday", "colour", "part", "name")},
            }
            question = rng.choice(parts["questions"])
            number = parts["questions"].index(question)
            # The last two replies fit every question, so that not one question has one reply.
            reply = parts["replies"][rng.choice((number, number, number, 8, 9))]
            lead = rng.choice(parts["asides"]) if rng.random() < 0.5 else rng.choice(parts["orders"])
            dates = {"date_text": rng.choice(parts["weekdays"])}
            yield (
                self._join([question, lead]).format(**slots, **dates),
                self._join([reply, rng.choice(parts["endings"])]).format(**slots),
            )

    def _join(self, sentences: list[str]) -> str:
        return ("" if self._language == "zh" else " ").join(sentences)

    def _draw_order(self) -> str:
        while (order := f"{self._rng.choice('ABCDEF')}{self._rng.randint(1000, 9999)}") in self._orders:
            pass
        self._orders.add(order)
        return order


def to_json(value: object) -> str:
    """Return compact JSON as the answers of the tickets are written."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
