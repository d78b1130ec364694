import json
from dataclasses import replace
from pathlib import Path

from tests.fixtures.models import smollm2_tokenizer
from tests.training.engine.planted.material import make_lines, write_lines
from tests.training.engine.preflight.views import all_results, foreign, troubles, view_of
from tests.training.engine.reporters import RecordingReporter
from training.engine.config import TrainingConfig
from training.engine.preflight.checks.catalogue import DATA_CHECKS
from training.engine.preflight.data_stage import (
    iterate_batches,
    look_at_data,
    read_stop_ids,
    view_training_data,
)
from training.engine.preflight.report import CheckStatus
from training.engine.training_rows import read_training_rows


def test_healthy_data_raise_nothing() -> None:
    assert troubles(view_of()) == {}
    assert troubles(foreign()) == {}
    # Every check says something under a code of its own.
    assert len(all_results(view_of())) == len(DATA_CHECKS)


def test_an_empty_data_set_from_elsewhere_breaks_no_check() -> None:
    view = replace(foreign(), rows=[])
    assert all(check.status is not CheckStatus.FAILED for check in all_results(view).values())


def test_the_view_of_a_training_knows_what_was_left_out(tmp_path: Path) -> None:
    lines = make_lines(20)
    lines[3]["messages"][0]["content"] = "word " * 400
    data = write_lines(tmp_path / "train.jsonl", lines)
    holdout = write_lines(tmp_path / "holdout.jsonl", make_lines(5, seed=9, prefix="h"))
    (tmp_path / "generation_config.json").write_text(json.dumps({"eos_token_id": [2, 7]}))
    (tmp_path / "config.json").write_text(json.dumps({"vocab_size": 49_152}))
    config = TrainingConfig.from_json(
        {"training": {"max_length_tokens": 200}, "preflight": {"num_shown_batches": 2}}
    )
    tokenizer = smollm2_tokenizer()
    rows = read_training_rows(
        tokenizer, training_data=data, holdout=holdout, config=config, report=RecordingReporter()
    )
    view = view_training_data(
        tokenizer, rows, config, base_model=tmp_path, training_data=data, holdout=holdout
    )
    assert [item.example_id for item in view.dropped] == ["e3"]
    assert (view.vocabulary_size, view.stop_ids) == (49_152, frozenset({2, 7}))
    assert (len(view.rows), len(view.examples), len(view.held_out)) == (19, 20, 5)
    found = look_at_data(view, iterate_batches(rows, config))
    assert [len(batch) for batch in found.batches] == [1, 1]  # two batches of one row each


def test_stop_ids_without_generation_settings_are_the_tokenizers(tmp_path: Path) -> None:
    assert read_stop_ids(smollm2_tokenizer(), tmp_path) == {smollm2_tokenizer().eos_token_id}
