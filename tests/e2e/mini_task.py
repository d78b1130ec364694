"""A cut of the demo task that a real model walks through in minutes."""

import json
from pathlib import Path

TICKETS = Path(__file__).resolve().parents[2] / "examples" / "tickets"
NUM_TASK_EXAMPLES = 8
NUM_CANARIES = 6

TRAINING_CONFIG = {
    "lora": {"r": 8, "lora_alpha": 16},
    "training": {
        "learning_rate": 2e-3,
        "max_steps": 10,
        "per_device_batch_size": 8,
        "gradient_accumulation_steps": 1,
        "gradient_checkpointing": False,
        "log_every_steps": 1,
        "max_length_tokens": 512,
        "dtype": "auto",
    },
}

LENIENT_POLICY = {
    "name": "mini",
    "version": 1,
    "rules": {
        "evidence": {"min_examples": 4, "min_canaries": 4, "min_verified_fraction": 1.0},
        "leakage": {"max_pairs": 0},
    },
}
"""What a cut of a few examples can be held to; the default policy finds it inconclusive at best."""


def write_mini_task(folder: Path) -> Path:
    """Writes suite.json, the four cut sets, train.jsonl and training.json into `folder`."""
    folder.mkdir(parents=True)
    suite = json.loads((TICKETS / "suite.json").read_text(encoding="utf-8"))
    if "output_schema" not in suite:
        raise ValueError("the demo suite has no output schema")
    suite["name"] = "tickets-mini"
    suite["sampling"] |= {"max_tokens": 48, "regression_max_tokens": 16}
    (folder / "suite.json").write_text(json.dumps(suite), encoding="utf-8")
    _cut("holdout", folder, NUM_TASK_EXAMPLES)
    _cut("ood", folder, NUM_TASK_EXAMPLES)
    _cut("canary", folder, NUM_CANARIES)
    _cut("train", folder, 96)
    _cut_regression(folder)
    (folder / "training.json").write_text(json.dumps(TRAINING_CONFIG), encoding="utf-8")
    return folder


def _read_lines(name: str) -> list[str]:
    return (TICKETS / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()


def _write_lines(path: Path, lines: list[str]) -> None:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def _cut(name: str, folder: Path, num_lines: int) -> None:
    _write_lines(folder / f"{name}.jsonl", _read_lines(name)[:num_lines])


def _cut_regression(folder: Path) -> None:
    """Two examples of each dimension."""
    taken: dict[str, list[str]] = {}
    for line in _read_lines("regression"):
        kept = taken.setdefault(json.loads(line)["dimension"], [])
        if len(kept) < 2:
            kept.append(line)
    _write_lines(folder / "regression.jsonl", [line for lines in taken.values() for line in lines])
