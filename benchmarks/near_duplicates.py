# ruff: noqa: RUF001 (full-width characters are what is compared)
"""Near duplicates among 100,000 texts: Assay's exact join beside datasketch's MinHash with LSH.

The same shingles, the same threshold (0.85), 128 permutations, default weights; what LSH finds is verified
with the same Jaccard similarity. Each candidate runs in a process of its own. Shown are the time without
imports and without making the texts, the peak of the memory above that of the texts, the pairs found, their
part of all pairs, and the ratio to datasketch. A third line has as many texts that share a long boilerplate.

The texts are joined out of utterances of public sets beside the checkout (`ASSAY_SHARED`), or of the ticket
example, English and Chinese; 15 % are earlier ones with up to two words or letters replaced.

`python benchmarks/near_duplicates.py 20000` runs it on fewer texts.
"""

import json
import os
import random
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SHARED = Path(os.environ.get("ASSAY_SHARED", ROOT.parent / "shared"))
NUM_TEXTS = 100_000
THRESHOLD = 0.85
NUM_PERMUTATIONS = 128
SEED = 7
EDITED_FRACTION = 0.15
CHINESE_FRACTION = 0.3
BOILERPLATE_WORDS = 120
CHINESE_LINES = (
    "您好，我上周在网上买的耳机收到以后左边没有声音，请帮我换一个新的",
    "请问这张发票什么时候可以开出来，我们财务月底之前要入账",
    "手机应用更新以后一直打不开，重启了好几次也没有用",
)


def read_utterances() -> list[str]:
    """Reads what users say in the public sets, or in the ticket example, without repeats."""
    files = sorted(SHARED.glob("data/*/*.jsonl")) or sorted((ROOT / "examples/tickets").glob("*.jsonl"))
    texts: dict[str, None] = dict.fromkeys(CHINESE_LINES)
    for file in files:
        for line in file.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            inputs = [item["content"] for item in row.get("messages", ()) if item["role"] == "user"]
            texts.update(dict.fromkeys(inputs or [row["text"]]))
    return [text for text in texts if text.strip()]


def make_texts(count: int) -> list[str]:
    """Makes the texts; equal counts give equal texts."""
    generator = random.Random(SEED)
    utterances = read_utterances()
    chinese = [text for text in utterances if any("\u4e00" <= letter <= "\u9fff" for letter in text)]
    english = [text for text in utterances if text.isascii()]
    texts: list[str] = []
    while len(texts) < count:
        if texts and generator.random() < EDITED_FRACTION:
            texts.append(edit(generator.choice(texts), generator))
            continue
        pool = chinese if generator.random() < CHINESE_FRACTION else english
        texts.append(" ".join(generator.choices(pool, k=generator.randint(1, 3))))
    return texts


def edit(text: str, generator: random.Random) -> str:
    """Replaces up to two words, or letters of a text without spaces."""
    parts, separator = (text.split(" "), " ") if text.isascii() else (list(text), "")
    for _ in range(generator.randint(0, 2)):
        parts[generator.randrange(len(parts))] = "order" if separator else "的"
    return separator.join(parts)


def make_boilerplate(count: int) -> list[str]:
    """Makes texts that share 120 words and have 9 to 30 of their own: those with few are similar."""
    generator = random.Random(SEED)
    shared = " ".join(f"clause{number}" for number in range(BOILERPLATE_WORDS))
    return [
        f"{shared} {' '.join(f'word{generator.randrange(50_000)}' for _ in range(generator.randint(9, 30)))}"
        for _ in range(count)
    ]


def find_with_assay(texts: list[str]) -> Callable[[], int]:
    """Prepares Assay's join; imports are not measured."""
    from training.engine.data.near_duplicates import find_near_duplicate_pairs

    return lambda: sum(1 for _ in find_near_duplicate_pairs(texts, threshold=THRESHOLD))


def find_with_datasketch(texts: list[str]) -> Callable[[], int]:
    """Prepares MinHash with LSH and verification."""
    from datasketch import MinHash, MinHashLSH

    from training.engine.data.shingles import jaccard, make_shingles, normalise

    def find() -> int:
        index = MinHashLSH(threshold=THRESHOLD, num_perm=NUM_PERMUTATIONS)
        sets = [make_shingles(normalise(text)) for text in texts]
        encoded: Iterator[list[bytes]] = ([shingle.encode() for shingle in item] for item in sets)
        num_pairs = 0
        for number, sketch in enumerate(MinHash.generator(encoded, num_perm=NUM_PERMUTATIONS)):
            num_pairs += sum(jaccard(sets[number], sets[other]) >= THRESHOLD for other in index.query(sketch))
            index.insert(number, sketch, check_duplication=False)
        return num_pairs

    return find


def keep_firsts_of_boilerplate(texts: list[str]) -> Callable[[], int]:
    """Prepares what the cleaning step does: keeping the first of a kind."""
    import numpy as np

    from training.engine.data.near_duplicates import FirstsFinder, collect_sets

    def find() -> int:
        rows = np.arange(len(texts))
        finder = FirstsFinder([collect_sets(texts)], threshold=THRESHOLD, labels=np.zeros_like(rows))
        return int((finder.find(rows).first != rows).sum())

    return find


CANDIDATES = {
    "assay": (make_texts, find_with_assay),
    "datasketch": (make_texts, find_with_datasketch),
    "boilerplate": (make_boilerplate, keep_firsts_of_boilerplate),
}


def measure_here(name: str, count: int) -> None:
    """Runs one candidate in this process and prints its figures as JSON."""
    make, prepare = CANDIDATES[name]
    texts = make(count)
    run = prepare(texts)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    begun = time.perf_counter()
    found = run()
    seconds = time.perf_counter() - begun
    peak_bytes = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
    print(json.dumps({"seconds": seconds, "peak_bytes": peak_bytes, "found": found}))


def measure(name: str, count: int) -> dict[str, float]:
    """Runs one candidate in a fresh process."""
    done = subprocess.run(
        [sys.executable, __file__, name, str(count)],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin", "ASSAY_SHARED": str(SHARED)},
    )
    figures: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return figures


def main() -> None:
    """Measures all candidates in turn and prints the table."""
    if sys.argv[1:2] and sys.argv[1] in CANDIDATES:
        measure_here(sys.argv[1], int(sys.argv[2]))
        return
    count = int(sys.argv[1]) if len(sys.argv) > 1 else NUM_TEXTS
    figures = {name: measure(name, count) for name in CANDIDATES}
    other, all_pairs = figures["datasketch"], figures["assay"]["found"]
    print(f"near duplicates among {count:,} texts")
    print(f"{'':<12}{'seconds':>10}{'peak MiB':>10}{'found':>9}{'of all':>8}{'time / datasketch':>19}")
    for name in ("assay", "datasketch"):
        own = figures[name]
        print(
            f"{name:<12}{own['seconds']:>10.2f}{own['peak_bytes'] / 2**20:>10.0f}{own['found']:>9.0f}"
            f"{own['found'] / all_pairs:>8.3f}{own['seconds'] / other['seconds']:>19.3f}"
        )
    own = figures["boilerplate"]
    print(
        f"{'boilerplate':<12}{own['seconds']:>10.2f}{own['peak_bytes'] / 2**20:>10.0f}{own['found']:>9.0f}"
        "  dropped as near duplicates of an earlier one"
    )


if __name__ == "__main__":
    main()
