from dataclasses import replace
from pathlib import Path

import pytest

from tests.training.engine.planted.material import pretrained_llama
from tests.training.engine.preflight.trained import (
    is_same_state,
    load_base,
    make_config,
    read_rows,
    state_of,
)
from training.engine.chat import ChatRow
from training.engine.config import PreflightSettings
from training.engine.device import choose_precision
from training.engine.handbook.rows import HandbookRow
from training.engine.preflight.overfit import (
    LOSS_THRESHOLD,
    OverfitAttempt,
    choose_examples,
    identify_base,
    identify_overfit,
    known_overfit,
    try_overfit,
)
from training.engine.preflight.report import CheckStatus
from training.engine.training_rows import TrainingRows


def attempt(rows: TrainingRows, method: str = "lora", *, max_steps: int = 60) -> tuple[OverfitAttempt, bool]:
    """Return what came out, and whether the base is as it was."""
    config = replace(
        make_config(method), preflight=PreflightSettings(overfit_examples=6, overfit_max_steps=max_steps)
    )
    base, precision = load_base(rows, config)
    before = state_of(base)
    result = try_overfit(
        base, rows.training, config, precision, pad_token_id=rows.pad_token_id, fingerprint="f"
    )
    return result, is_same_state(before, state_of(base))


@pytest.mark.parametrize("method", ["lora", "full"])
def test_a_sound_pipeline_learns_by_heart_and_leaves_no_trace(tmp_path: Path, method: str) -> None:
    rows = read_rows(tmp_path, make_config())
    found, is_same = attempt(rows, method)
    assert found.check.status is CheckStatus.PASSED, found.check.message
    result = found.result
    assert (result.status, result.num_examples) == ("passed", 6)
    assert result.losses[-1] < LOSS_THRESHOLD <= result.losses[-2]
    assert result.num_steps == len(result.losses) - 1 < 60
    assert is_same


def test_too_few_steps_fail_with_the_curve_as_evidence(tmp_path: Path) -> None:
    rows = read_rows(tmp_path, make_config())
    found, is_same = attempt(rows, max_steps=2)
    assert (found.check.status, found.check.row) == (CheckStatus.FAILED, HandbookRow.CANNOT_OVERFIT)
    assert found.result.num_steps == 2
    assert len(found.result.losses) == 3
    assert f"to {found.result.losses[-1]:.3f} in 2 steps" in found.check.message
    assert is_same


def test_the_same_attempt_gives_the_same_losses(tmp_path: Path) -> None:
    rows = read_rows(tmp_path, make_config())
    first, second = attempt(rows, max_steps=3), attempt(rows, max_steps=3)
    assert first[0].result == second[0].result


def test_examples_are_short_and_no_prompt_comes_twice() -> None:
    rows = [ChatRow(f"a{i}", (1, 2, i), 2) for i in range(5)]  # one prompt, five answers
    rows += [ChatRow(f"b{i}", (1, 10 + i, 3), 2) for i in range(5)]
    rows += [ChatRow("long", tuple(range(50)), 2)]
    chosen = choose_examples(rows, 10, seed=0)
    assert [row.example_id for row in chosen] == ["a0", "b0", "b1", "b2", "b3", "b4"]
    assert len(choose_examples(rows, 3, seed=0)) == 3
    assert choose_examples(rows, 3, seed=1) == choose_examples(rows, 3, seed=1)


def test_the_fingerprint_follows_what_the_attempt_depends_on() -> None:
    config = make_config()

    def identify(**other: object) -> str:
        values = {
            "base_identity": "b", "chat_template": "t", "libraries": {"torch": "1"}, "config": config,
            "precision": choose_precision("float32"), **other,
        }  # fmt: skip
        return identify_overfit(**values)  # type: ignore[arg-type]

    assert identify() == identify()
    assert len(identify()) == 64
    others = [
        identify(base_identity="c"),
        identify(chat_template=None),
        identify(libraries={"torch": "2"}),
        identify(config=replace(config, method="full")),
        identify(config=replace(config, lora=replace(config.lora, r=16))),
        identify(config=replace(config, lora=replace(config.lora, target_modules=("q_proj",)))),
        identify(precision=choose_precision("bfloat16")),
    ]
    assert len({identify(), *others}) == len(others) + 1
    # Data and learning rate are not what it says something about.
    same = replace(config, training=replace(config.training, learning_rate=1e-3, seed=7))
    assert identify(config=same) == identify()


def test_the_identity_of_a_base_follows_its_files(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "model.safetensors").write_bytes(b"12345678")
    before = identify_base(tmp_path)
    assert before == identify_base(tmp_path)
    (tmp_path / "model.safetensors").write_bytes(b"123456789")
    assert identify_base(tmp_path) != before
    assert identify_base(pretrained_llama()) != before


def test_a_known_attempt_counts_as_passed() -> None:
    found = known_overfit("f" * 64)
    assert (found.result.status, found.check.status) == ("known", CheckStatus.PASSED)
