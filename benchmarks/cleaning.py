# ruff: noqa: RUF001 (full-width marks are part of Chinese texts)
"""Cleaning a large raw file with the default recipe: rows a second of every stage and step, and peak memory.

`python benchmarks/cleaning.py --rows 1000000` writes that many rows, cleans them in a process of its own as
`python -m training.engine.data clean` does, and prints for each stage the wall and processor time, rows a
second, and the greatest memory so far. All steps and all checks run; no tokenizer, no evaluation set. With
one process (the default) the processor time of each step is shown too; `--processes N` lets N of them treat
examples, whose processor time is counted where they end.

The rows are tickets of a shop, five of six English and one Chinese, with JSON answers; one in twenty is an
earlier one again, some have dates, amounts, telephone numbers and addresses to treat, some answers only
refuse. `--keep FOLDER` leaves the raw file, the prepared sets and the report there; `--digest` also prints
one sha256 over all that was written, by which two versions of the code can be compared.
"""

import argparse
import hashlib
import json
import multiprocessing
import os
import random
import resource
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from training.engine.data.cleaning.step import Outcome, Step, StepContext, StepKind
    from training.engine.data.examples import Example

ROOT = Path(__file__).resolve().parent.parent
NUM_ROWS = 20_000
SEED = 7
CHINESE_FRACTION = 1 / 6
REPEATED_FRACTION = 0.05
_REMEMBERED = 1_000


def _list(text: str) -> tuple[str, ...]:
    return tuple(item.strip() for item in text.split("|"))


NAMES = _list("Anna|Ben|Carla|David|Elena|Farid|Greta|Hugo|Ines|Jonas|Katya|Liam|Mona|Nadia|Omar|Paula|Quinn")
SURNAMES = _list(
    "Abel|Brandt|Chen|Dietz|Evans|Fischer|Garcia|Huber|Ivanov|Jung|Keller|Lopez|Meyer|Novak|Okafor"
)
PRODUCTS = _list(
    """headphones|coffee machine|desk lamp|standing desk|phone case|power bank|rain jacket|running shoes
    |keyboard|monitor|water bottle|backpack|toaster|air purifier|smart watch|tablet|router|electric kettle
    |yoga mat|drill"""
)
CITIES = _list(
    "Berlin|Lyon|Madrid|Porto|Turin|Vienna|Oslo|Leeds|Gdansk|Zurich|Boston|Denver|Dublin|Bergen|Malmo"
)
OPENINGS = (
    "Hello, I ordered a {product} on {date} and it has still not arrived in {city}.",
    "My name is {name} and the {product} from order {order} stopped working after two days.",
    "I was charged {amount} twice for the same {product}, please look into it.",
    "The courier left the parcel with my {product} at the wrong address in {city} last week.",
    "I would like to return the {product} that I bought on {date} because the colour is wrong.",
    "Your app logs me out every time I try to pay for the {product} with my card.",
    "We need an invoice for order {order}, the accounting department in {city} is waiting for it.",
    "Can you tell me whether the {product} works with the older model that I already own?",
    "The discount of {amount} that the newsletter promised was not applied to my {product}.",
    "Since the update on {date} the {product} no longer connects to the network at home.",
)
DETAILS = (
    "I have already tried to restart it and to reset it, but nothing helped so far.",
    "The tracking page says delivered, yet neither I nor my neighbours have seen anything.",
    "Two colleagues of mine in {city} had exactly the same trouble with theirs.",
    "I attached three photos and the receipt over {amount} to the form on your page.",
    "Last time it took the support four days to answer, which is far too long for us.",
    "The box was open and the manual for the {product} was missing as well.",
    "According to your terms I may return it within thirty days, that is until {date}.",
    "It weighs about {weight}, so I can hardly carry it back to the post office.",
    "My bank in {city} confirmed that the payment of {amount} went through.",
    "There is a scratch on the left side, and the power light blinks all the time.",
)
CLOSINGS = (
    "Please call me back at {phone} this afternoon.",
    "Please write to {email} when you know more.",
    "I am waiting for your answer, thank you very much in advance.",
    "If this is not settled by {date}, I will cancel the whole order.",
    "Otherwise I would like to have my money back as soon as possible.",
    "Kind regards, {name}",
)
CHINESE_OPENINGS = (
    "你好,我在{date}买的{product}到现在还没有收到",
    "订单{order}里的{product}用了两天就坏了，怎么处理?",
    "我被重复扣款{amount}，请帮我查一下",
    "快递把{product}送错地址了,我人在{city}",
    "我想退掉{date}买的{product}，颜色不对",
)
CHINESE_DETAILS = (
    "我已经重启过好几次了,还是没有用。",
    "物流显示已签收，但是我没有收到任何东西!",
    "盒子是打开的，说明书也没有(照片见附件)。",
    "我的电话是{phone}，请尽快联系我。",
    "如果{date}之前不能解决，我就取消订单。",
)
CHINESE_PRODUCTS = _list("耳机|咖啡机|台灯|手机壳|充电宝|冲锋衣|跑鞋|键盘|显示器|水杯")
CHINESE_CITIES = _list("北京|上海|广州|成都|杭州|南京|武汉|西安")
SUMMARIES = (
    "The customer reports a problem with the {product} and asks for {wish}.",
    "A buyer from {city} wants {wish} for order {order}.",
    "The {product} is at issue; the customer expects {wish} soon.",
)
WISHES = ("a refund", "a new delivery", "a repair", "an invoice", "a call back", "an exchange")
SYSTEM = (
    "You are a support agent. Answer with one JSON object: intent, urgency, product, date, amount, summary."
)
REFUSALS = ("I'm sorry, but I cannot assist with that.", "很抱歉，我无法回答您的问题。", "N/A", "...")


class TicketWriter:
    """Composes rows; equal seeds give equal rows."""

    def __init__(self, seed: int = SEED) -> None:
        """Start with a generator of its own."""
        self._random = random.Random(seed)
        self._earlier: list[dict[str, Any]] = []

    def compose(self, number: int) -> dict[str, Any]:
        """Returns one row."""
        draw = self._random
        if self._earlier and draw.random() < REPEATED_FRACTION:
            return {**draw.choice(self._earlier), "id": f"t{number:07d}"}
        is_chinese = draw.random() < CHINESE_FRACTION
        slots = self._draw_slots(is_chinese=is_chinese)
        text = self._compose_chinese(slots) if is_chinese else self._compose_english(slots)
        row = {
            "id": f"t{number:07d}",
            "messages": [
                {"role": "system", "content": SYSTEM},
                {"role": "user", "content": text},
                {"role": "assistant", "content": self._answer(slots)},
            ],
            "tags": {"channel": draw.choice(("mail", "chat", "form")), "shop": f"s{draw.randrange(12)}"},
            "group": f"customer-{draw.randrange(400_000)}",
            "reference_source": "person",
        }
        if len(self._earlier) < _REMEMBERED:
            self._earlier.append(row)
        else:
            self._earlier[draw.randrange(_REMEMBERED)] = row
        return row

    def _draw_slots(self, *, is_chinese: bool) -> dict[str, str]:
        draw = self._random
        year, month, day = draw.randrange(2021, 2026), draw.randrange(1, 13), draw.randrange(1, 29)
        english_dates = (f"{year}-{month:02d}-{day:02d}", f"{day} March {year}", f"{month}/{day}/{year}")
        chinese_dates = (f"{year}年{month}月{day}日", f"{year}/{month}/{day}")
        price = draw.randrange(5, 2500)
        return {
            "name": f"{draw.choice(NAMES)} {draw.choice(SURNAMES)}",
            "product": draw.choice(CHINESE_PRODUCTS if is_chinese else PRODUCTS),
            "city": draw.choice(CHINESE_CITIES if is_chinese else CITIES),
            "order": f"{draw.choice('ABCDEF')}{draw.randrange(10**7, 10**8)}",
            "date": draw.choice(chinese_dates if is_chinese else english_dates),
            "amount": f"{price} 元"
            if is_chinese
            else draw.choice((f"${price:,}.{price % 90 + 10}", f"€ {price}")),
            "weight": f"{price % 40 + 1}kg",
            "phone": f"13{draw.randrange(10**8, 10**9)}"
            if is_chinese
            else f"+49 30 {draw.randrange(10**6, 10**7)}",
            "email": f"{draw.choice(NAMES).lower()}.{draw.randrange(10**4)}@mail-{draw.randrange(90)}.net",
            "wish": draw.choice(WISHES),
        }

    def _compose_english(self, slots: Mapping[str, str]) -> str:
        draw = self._random
        parts = [draw.choice(OPENINGS), *draw.sample(DETAILS, draw.randint(1, 3)), draw.choice(CLOSINGS)]
        return draw.choice((" ", " ", "  ", "\n")).join(parts).format_map(slots)

    def _compose_chinese(self, slots: Mapping[str, str]) -> str:
        draw = self._random
        parts = [draw.choice(CHINESE_OPENINGS), *draw.sample(CHINESE_DETAILS, draw.randint(1, 3))]
        return draw.choice((",", "，", "。 ")).join(parts).format_map(slots)

    def _answer(self, slots: Mapping[str, str]) -> str:
        draw = self._random
        if draw.random() < 0.01:
            return draw.choice(REFUSALS)
        fields = {
            "intent": draw.choice(("delivery", "payment", "return", "technical", "question")),
            "urgency": draw.choice(("low", "normal", "high")),
            "product": slots["product"],
            "date": slots["date"],
            "amount": slots["amount"],
            "summary": draw.choice(SUMMARIES).format_map(slots),
        }
        if draw.random() < 0.1:
            fields = dict(reversed(fields.items()))
        answer = json.dumps(fields, ensure_ascii=draw.random() < 0.05)
        return f"```json\n{answer}\n```" if draw.random() < 0.03 else answer


def write_rows(path: Path, count: int) -> None:
    """Writes a raw file; equal counts give equal bytes."""
    writer = TicketWriter()
    with path.open("w", encoding="utf-8") as file:
        for number in range(count):
            file.write(json.dumps(writer.compose(number), ensure_ascii=False) + "\n")


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """When a stage began.

    Attributes:
        name: What the preparation said that it does.
        wall_seconds: On the clock.
        cpu_seconds: Of this process and those that it started and that have ended.
        peak_bytes: Greatest resident memory of the process so far; of its children the greatest one's.
    """

    name: str
    wall_seconds: float
    cpu_seconds: float
    peak_bytes: int


class StageClock:
    """Takes the progress of a preparation and remembers when each stage began."""

    def __init__(self) -> None:
        """Start without moments."""
        self.moments: list[Moment] = []

    def progress(self, fraction: float, message: str) -> None:
        """Note a moment."""
        own, children = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
        self.moments.append(
            Moment(
                name=message,
                wall_seconds=time.perf_counter(),
                cpu_seconds=own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime,
                peak_bytes=1024 * max(own.ru_maxrss, children.ru_maxrss),
            )
        )

    def log(self, level: str, message: str) -> None:
        """Drop a log line."""

    def metric(self, step: int, values: Mapping[str, float]) -> None:
        """Drop metric values."""


class TimedStep:
    """A step, and the processor time that it takes."""

    def __init__(self, step: "Step", seconds: list[float]) -> None:
        """Take the step and [of the first pass, of the second], to which its time is added."""
        self._step, self._seconds = step, seconds

    def observe(self, example: "Example") -> None:
        """Observe."""
        begun = time.process_time()
        self._step.observe(example)
        self._seconds[0] += time.process_time() - begun

    def apply(self, example: "Example") -> "Outcome":
        """Apply."""
        begun = time.process_time()
        outcome = self._step.apply(example)
        self._seconds[1] += time.process_time() - begun
        return outcome

    def facts(self) -> Mapping[str, Any]:
        """Return the step's facts."""
        return self._step.facts()


def watch(kind: "StepKind", seconds: dict[str, list[float]]) -> "StepKind":
    """Returns a kind whose steps add their time to a list under their name."""
    own = seconds.setdefault(kind.name, [0.0, 0.0])

    def build(parameters: Mapping[str, Any], context: "StepContext") -> "Step":
        return TimedStep(kind.build(parameters, context), own)

    return replace(kind, build=build)


def clean(folder: Path, num_processes: int = 1) -> tuple[list[Moment], dict[str, list[float]]]:
    """Cleans the raw file of a folder into ``prepared`` beside it; returns when each stage began, and of each
    step the processor time of its passes.
    """
    from training.engine.data.preparation.inputs import PreparationInputs
    from training.engine.data.preparation.run import run_preparation
    from training.engine.data.recipe import Recipe

    clock, seconds = StageClock(), dict[str, list[float]]()
    recipe = Recipe.from_json({})
    if num_processes == 1:
        recipe = replace(
            recipe, clean=tuple(replace(step, kind=watch(step.kind, seconds)) for step in recipe.clean)
        )
    with tempfile.TemporaryDirectory(prefix="assay-bench-", dir=folder) as scratch:
        run_preparation(
            PreparationInputs(sources=folder / "rows.jsonl"),
            recipe,
            output=folder / "prepared",
            scratch=Path(scratch),
            report=clock,
            num_processes=num_processes,
        )
    return clock.moments, seconds


def digest_folder(folder: Path) -> str:
    """Returns one sha256 over names and contents of all files of a folder."""
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            digest.update(f"{path.relative_to(folder)}\0{path.stat().st_size}\0".encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()


def iterate_stages(moments: list[Moment]) -> Iterator[tuple[str, float, float, int]]:
    """Yields name, wall seconds, processor seconds and peak bytes of each stage, then of the whole."""
    whole = ("all", moments[0], moments[-1])
    for name, begun, ended in (*((begun.name, begun, ended) for begun, ended in pairwise(moments)), whole):
        yield (
            name,
            ended.wall_seconds - begun.wall_seconds,
            ended.cpu_seconds - begun.cpu_seconds,
            ended.peak_bytes,
        )


def show(num_rows: int, moments: list[Moment], seconds: dict[str, list[float]]) -> None:
    """Prints the tables."""
    print(f"{'':<84}{'seconds':>9}{'cpu s':>9}{'rows / s':>10}{'peak MiB':>10}")
    for name, wall, cpu, peak in iterate_stages(moments):
        print(f"{name[:82]:<84}{wall:>9.1f}{cpu:>9.1f}{num_rows / wall:>10,.0f}{peak / 2**20:>10.0f}")
    if seconds:
        print(f"{'processor time of each step':<84}{'observe':>9}{'apply':>9}{'rows / s':>10}")
    for name, (observe, apply) in seconds.items():
        print(f"{name:<84}{observe:>9.1f}{apply:>9.1f}{num_rows / (observe + apply):>10,.0f}")


def main() -> None:
    """Writes rows, cleans them and prints the tables."""
    # The folder of this file, which Python puts first, may hold files that are called like packages.
    sys.path.insert(0, str(ROOT))
    parser = argparse.ArgumentParser(description="Rows a second and memory of the cleaning pipeline.")
    parser.add_argument("--rows", type=int, default=NUM_ROWS)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--keep", type=Path, default=None, help="New folder for the files.")
    parser.add_argument("--digest", action="store_true", help="Also print one digest over all outputs.")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="assay-bench-") as temporary:
        folder = arguments.keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        write_rows(folder / "rows.jsonl", arguments.rows)
        # A fresh process: its peak memory is that of the pipeline alone.
        with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
            moments, seconds = pool.submit(clean, folder, arguments.processes).result()
        print(f"{arguments.rows:,} rows, {arguments.processes} process(es), {os.cpu_count()} cores")
        show(arguments.rows, moments, seconds)
        if arguments.digest:
            print(f"sha256 of the outputs: {digest_folder(folder / 'prepared')}")


if __name__ == "__main__":
    main()
