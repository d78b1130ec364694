"""Faults planted into real small trainings: the monitor names the row and the step at which they begin."""

import dataclasses
import gc
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from peft.tuners.lora.layer import Linear
from safetensors.torch import load_file, save_file

from tests.training.engine.planted.material import copy_base, make_line, make_lines
from tests.training.engine.planted.watched import train_watched
from training.engine.batches import Batch
from training.engine.errors import NotFinite, TrainingFailed
from training.engine.handbook.lookup import get_rows
from training.engine.handbook.rows import HandbookRow
from training.engine.held_out import HeldOutLoss
from training.engine.lora_model import load_tokenizer
from training.engine.monitor.findings import Finding
from training.engine.monitor.history import RunFacts
from training.engine.monitor.monitor import Monitor
from training.engine.packing import isolation
from training.engine.packing.collate import collate_packed
from training.engine.progress import SilentReporter
from training.engine.step_record import HeldOutRecord, StepRecord

MIB = 1 << 20


class Plant:
    """An observer that does something at every step, before the monitor looks."""

    def __init__(
        self, at_step: Callable[[int], None], at_held_out: Callable[[int], None] | None = None
    ) -> None:
        self._at_step = at_step
        self._at_held_out = at_held_out

    def on_step(self, record: StepRecord) -> None:
        self._at_step(record.step)

    def on_held_out(self, record: HeldOutRecord) -> None:
        if self._at_held_out is not None:
            self._at_held_out(record.step)


def full_tuning_rate(folder: Path) -> Monitor:
    return train_watched(folder, learning_rate=1e-5)


def few_examples_many_passes(folder: Path) -> Monitor:
    lines = make_lines(6)
    return train_watched(
        folder,
        lines=lines,
        learning_rate=1e-2,
        lora={"r": 32, "lora_dropout": 0.0},
        max_steps=120,
        eval_every_steps=10,
    )


def one_example_over_and_over(folder: Path) -> Monitor:
    only = make_lines(1)[0]
    lines = [{**only, "id": f"e{index}"} for index in range(40)]
    return train_watched(folder, lines=lines, learning_rate=5e-3, max_steps=60)


def learnt_by_heart_unseen(folder: Path) -> Monitor:
    return train_watched(folder, lines=make_lines(4), held_out=None, learning_rate=2e-2, max_steps=120)


def held_out_is_the_training_data(folder: Path) -> Monitor:
    lines = make_lines(4)
    return train_watched(folder, lines=lines, held_out=lines, learning_rate=2e-2, max_steps=120)


def rate_too_high_and_batch_of_one(folder: Path) -> Monitor:
    return train_watched(
        folder, learning_rate=3e-2, lr_scheduler="constant", max_grad_norm=0, per_device_batch_size=1,
        gradient_accumulation_steps=1, max_steps=150,
    )  # fmt: skip


def rate_far_too_high(folder: Path) -> Monitor:
    return train_watched(folder, learning_rate=1.0, lr_scheduler="constant", max_steps=110)


def abnormal_examples(folder: Path) -> Monitor:
    noise = [
        make_line(f"n{index}", f"Ticket {index}", "~#" * (3 + index % 5) + "\u00b6" * 5)
        for index in range(30)
    ]
    return train_watched(folder, lines=make_lines(130) + noise, max_grad_norm=0.2, max_steps=160)


def short_and_long_in_a_batch(folder: Path) -> Monitor:
    long = [make_line(f"l{index}", "Lima " * 80 + str(index), "high") for index in range(4)]
    lines = [make_line(f"s{index}", f"Oslo {index}", "low") for index in range(4)] + long
    return train_watched(
        folder,
        lines=lines,
        per_device_batch_size=8,
        gradient_accumulation_steps=1,
        learning_rate=1e-3,
        max_steps=25,
    )


def slower_than_before(folder: Path) -> Monitor:
    facts = RunFacts(has_held_out=True, expected_tokens_per_second=1e9)
    return train_watched(folder, facts=facts)


CASES: Sequence[tuple[Callable[[Path], Monitor], str, HandbookRow, range]] = [
    (full_tuning_rate, "monitor/loss-flat-low-rate", HandbookRow.LOSS_FLAT, range(1, 2)),
    (few_examples_many_passes, "monitor/loss-near-zero-memorised", HandbookRow.LOSS_NEAR_ZERO, range(2, 150)),
    (few_examples_many_passes, "monitor/held-out-rises", HandbookRow.HELD_OUT_RISES, range(10, 121)),
    (one_example_over_and_over, "monitor/loss-near-zero-memorised", HandbookRow.LOSS_NEAR_ZERO, range(2, 41)),
    (learnt_by_heart_unseen, "monitor/loss-near-zero-unexplained", HandbookRow.LOSS_NEAR_ZERO, range(2, 101)),
    (
        held_out_is_the_training_data,
        "monitor/loss-near-zero-everywhere",
        HandbookRow.LOSS_NEAR_ZERO,
        range(2, 101),
    ),
    (rate_too_high_and_batch_of_one, "monitor/loss-diverges", HandbookRow.LOSS_OSCILLATES, range(11, 101)),
    (rate_far_too_high, "monitor/loss-stuck-high-rate", HandbookRow.LOSS_OSCILLATES, range(1, 2)),
    (rate_far_too_high, "monitor/gradient-small", HandbookRow.GRADIENT_SMALL, range(30, 61)),
    (abnormal_examples, "monitor/gradient-clipped-often", HandbookRow.GRADIENT_CLIPPED_OFTEN, range(51, 62)),
    (short_and_long_in_a_batch, "monitor/padding-waste", HandbookRow.PADDING_WASTE, range(1, 2)),
    (slower_than_before, "monitor/throughput-low", HandbookRow.THROUGHPUT_LOW, range(6, 7)),
]


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Callable[[Path], Monitor]], Monitor]:
    """Trains once for all that is looked for in a training."""
    done: dict[str, Monitor] = {}

    def get(plant: Callable[[Path], Monitor]) -> Monitor:
        if plant.__name__ not in done:
            done[plant.__name__] = plant(tmp_path_factory.mktemp(plant.__name__))
        return done[plant.__name__]

    return get


@pytest.mark.parametrize(
    ("plant", "code", "row", "steps"), CASES, ids=[f"{c[0].__name__}:{c[1]}" for c in CASES]
)
def test_the_monitor_names_the_row(
    plant: Callable[[Path], Monitor], code: str, row: HandbookRow, steps: range, watched: Any
) -> None:
    finding = find(watched(plant), code)
    assert finding.row is row
    assert finding.step in steps
    assert row in get_rows(code)


class StepTimes:
    """Passes steps on to a monitor of its own, with other times."""

    def __init__(self, seconds: Callable[[int], float]) -> None:
        self.monitor = Monitor(SilentReporter())
        self._seconds = seconds

    def on_step(self, record: StepRecord) -> None:
        self.monitor.on_step(replace(record, seconds=self._seconds(record.step)))

    def on_held_out(self, record: HeldOutRecord) -> None:
        self.monitor.on_held_out(record)


def find(monitor: Monitor, code: str) -> Finding:
    found = [finding for finding in monitor.findings if finding.code == code]
    assert len(found) == 1, [(f.code, f.step, f.message) for f in monitor.findings]
    return found[0]


def test_steps_that_become_slow(tmp_path: Path) -> None:
    """The steps are real; their times are given, because machines that run tests are shared."""
    times = StepTimes(lambda step: 0.05 if step < 60 else 0.2)
    train_watched(tmp_path, observers=[times], max_steps=112, held_out=None)
    finding = find(times.monitor, "monitor/throughput-falls")
    assert finding.row is HandbookRow.THROUGHPUT_LOW
    assert 55 <= finding.step <= 63


def test_tensors_kept_from_step_to_step(tmp_path: Path) -> None:
    kept: list[torch.Tensor] = []
    plant = Plant(lambda step: kept.append(torch.ones(MIB)))  # 4 MiB in each step.
    finding = find(train_watched(tmp_path, observers=[plant], max_steps=135), "monitor/memory-grows")
    assert finding.row is HandbookRow.OUT_OF_MEMORY_LATER
    assert finding.step == 31
    assert finding.evidence["bytes_per_step"] == pytest.approx(4 * MIB, rel=0.3)


def test_an_evaluation_that_keeps_what_it_computed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    measure = HeldOutLoss.measure
    kept: list[torch.Tensor] = []

    def keep(self: HeldOutLoss) -> float:
        kept.append(torch.ones(20 * MIB))
        return measure(self)

    monkeypatch.setattr(HeldOutLoss, "measure", keep)
    # What trainings before this one left behind is given back now and then; several evaluations see past it.
    gc.collect()
    finding = find(train_watched(tmp_path, eval_every_steps=10), "monitor/memory-grows-at-evaluation")
    assert finding.row is HandbookRow.MEMORY_GROWS_AT_EVALUATION
    assert finding.step in range(20, 51, 10)


def test_a_poisoned_base_is_no_finite_loss(tmp_path: Path) -> None:
    base = copy_base(tmp_path / "base")
    tensors = load_file(base / "model.safetensors")
    tensors["model.norm.weight"][0] = torch.nan
    save_file(tensors, base / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(NotFinite) as caught:
        train_watched(tmp_path, base=base)
    monitor = Monitor(SilentReporter())
    monitor.on_not_finite(step=caught.value.step, what=caught.value.what)
    finding = find(monitor, "monitor/loss-not-finite")
    assert (finding.row, finding.step) == (HandbookRow.LOSS_NOT_FINITE, 1)


def test_one_poisoned_example_is_among_those_of_the_step(tmp_path: Path) -> None:
    base = copy_base(tmp_path / "base")
    tokenizer: Any = load_tokenizer(base)
    (token,) = tokenizer.encode("~", add_special_tokens=False)
    tensors = load_file(base / "model.safetensors")
    tensors["model.embed_tokens.weight"][token] = torch.nan
    save_file(tensors, base / "model.safetensors", metadata={"format": "pt"})
    lines = [*make_lines(159), make_line("poisoned", "Ticket ~", "low")]
    with pytest.raises(NotFinite) as caught:
        train_watched(tmp_path, base=base, lines=lines)
    assert "poisoned" in caught.value.example_ids
    assert caught.value.step > 1
    monitor = Monitor(SilentReporter())
    monitor.on_not_finite(step=caught.value.step, what=caught.value.what)
    assert find(monitor, "monitor/loss-not-finite").row is HandbookRow.LOSS_NOT_FINITE


def test_packing_that_leaks_ends_before_the_first_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def collate_leaking(sequences: Any, *, pad_token_id: int) -> Batch:
        # With a mask given, transformers looks for no borders in the positions.
        batch = collate_packed(sequences, pad_token_id=pad_token_id)
        return dataclasses.replace(batch, attention_mask=torch.ones_like(batch.input_ids))

    monkeypatch.setattr(isolation, "collate_packed", collate_leaking)
    with pytest.raises(TrainingFailed) as caught:
        train_watched(tmp_path, packing=True, max_length_tokens=256)
    assert get_rows(f"trainer/{caught.value.code}") == (HandbookRow.PACKING_LEAK,)


def test_float16_that_overflows(tmp_path: Path) -> None:
    base = copy_base(tmp_path / "base")
    tensors = load_file(base / "model.safetensors")
    tensors["lm_head.weight"] = tensors["lm_head.weight"] * 3e4
    save_file(tensors, base / "model.safetensors", metadata={"format": "pt"})
    try:
        monitor = train_watched(tmp_path, base=base, dtype="float16", max_steps=40)
    except NotFinite as error:
        monitor = Monitor(SilentReporter())
        monitor.on_not_finite(step=error.step, what=error.what)
    assert HandbookRow.LOSS_NOT_FINITE in {finding.row for finding in monitor.findings}


def test_a_frozen_adapter_ends_in_the_first_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    forward = Linear.forward

    def leave_out_narrow(self: Any, x: torch.Tensor, *args: Any, **kwargs: Any) -> torch.Tensor:
        # The branch of keys and values is left out, as by a wrong hook: nothing reaches its matrices.
        is_narrow = self.base_layer.out_features == 32
        output: torch.Tensor = self.base_layer(x) if is_narrow else forward(self, x, *args, **kwargs)
        return output

    monkeypatch.setattr(Linear, "forward", leave_out_narrow)
    with pytest.raises(TrainingFailed) as caught:
        train_watched(tmp_path)
    assert get_rows(f"trainer/{caught.value.code}") == (HandbookRow.NOT_TRAINABLE,)
