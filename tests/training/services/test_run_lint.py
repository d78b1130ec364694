"""The rules judge a run before it begins, by what the server knows."""

import json
from typing import Any

import pytest

from registry.models import AuditEvent, DatasetVersion, Job
from tests.fixtures.evaluation import make_dataset
from tests.fixtures.preparations import make_preparation
from tests.fixtures.registry import make_base_model, store_files
from tests.fixtures.training_runs import make_run
from training.engine.config import TrainingConfig
from training.engine.lint.findings import LintReport
from training.errors import TrainingInvalid
from training.models import PreparedSet, TrainingRun
from training.services.run_lint import count_general, judge_run

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("store")]

# https://huggingface.co/HuggingFaceTB/SmolLM2-135M: 30 blocks.
SMOL = json.dumps(
    {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": 576,
        "intermediate_size": 1536,
        "num_hidden_layers": 30,
        "num_attention_heads": 9,
        "num_key_value_heads": 3,
        "vocab_size": 49152,
        "tie_word_embeddings": True,
    }
).encode()


def judge(*versions: DatasetVersion, has_held_out: bool = True, **config: Any) -> LintReport:
    return judge_run(
        config=TrainingConfig.from_json(config),
        base_model=make_base_model(),
        datasets=versions,
        has_held_out=has_held_out,
    )


def codes(report: LintReport) -> set[str]:
    return {finding.code for finding in report.findings}


def test_findings_are_stored_with_the_run() -> None:
    run = make_run()
    stored = {finding["code"]: finding["severity"] for finding in run.lint["findings"]}
    # Three examples, none held out, none general.
    assert stored["few-rows"] == stored["no-held-out-set"] == stored["general-fraction"] == "warning"
    assert run.lint["is_overridden"] is False
    # The server knows neither the card nor how long the rows are.
    missing = {rule["code"]: rule["missing"] for rule in run.lint["unchecked"]}
    assert missing["rows-dropped-by-length"] == ["lengths", "too_long"]


def test_errors_refuse_all_at_once_unless_they_are_accepted() -> None:
    config = {"lora": {"use_dora": True}, "training": {"learning_rate": 0.1}}
    with pytest.raises(TrainingInvalid) as caught:
        make_run(config=config)
    assert caught.value.code == "training-lint-failed"
    assert {fault.where for fault in caught.value.faults} == {
        "/config/lora/use_dora",
        "/config/training/learning_rate",
    }
    assert all(fault.remedy for fault in caught.value.faults)
    assert not TrainingRun.objects.exists() and not Job.objects.exists()
    run = make_run(config=config, allow_lint_errors=True)
    assert run.lint["is_overridden"] is True
    row = AuditEvent.objects.get(action="training.allow_lint_errors")
    assert row.object_id == str(run.pk)
    assert row.after is not None and len(row.after["codes"]) == 2
    make_run("sound", allow_lint_errors=True)
    assert AuditEvent.objects.filter(action="training.allow_lint_errors").count() == 1


def test_the_shape_of_the_base_is_read_from_its_files() -> None:
    base = make_base_model()
    base.artifact = store_files({"config.json": SMOL}, kind="base_model")
    base.save()
    layers = {"first": 0, "last": 30}
    assert "layers-unsuitable" in codes(judge(lora={"layers": layers}))
    assert "layers-unsuitable" not in codes(judge(lora={"layers": layers | {"last": 20}}))


def test_general_data_is_counted_by_role_and_card() -> None:
    task, general = make_dataset("task", "train", num=90), make_dataset("chat", "general", num=10)
    assert "general-fraction" not in codes(judge(task, general))
    assert "general-fraction" in codes(judge(task))
    task.card = {"num_general": 9}
    assert "general-fraction" not in codes(judge(task))
    for odd in (True, "9", None, -4):
        task.card = {"num_general": odd}
        assert count_general(task) == 0
    task.card = {"num_general": 1000}
    assert count_general(task) == 90


def test_a_limit_on_examples_counts() -> None:
    report = judge(make_dataset("task", "train", num=300), data={"max_examples": 20})
    (found,) = [finding for finding in report.findings if finding.code == "few-rows"]
    assert found.message.startswith("20 rows")


def test_lengths_come_from_the_card_of_a_set_prepared_with_this_base() -> None:
    version = make_dataset("task", "train", num=300)
    version.card = {"lengths": {"total_tokens": {"quantiles": {"p95": 900, "max": 2000}}}}
    version.save()
    assert "max-length-at-the-maximum" not in codes(judge(version))
    preparation = make_preparation()
    preparation.base_model = make_base_model()
    preparation.save()
    PreparedSet.objects.create(
        preparation=preparation, role="train", dataset_version=version, num_examples=300
    )
    # 2000 / 900 = 2.2, above the 1.5 of the rule.
    assert "max-length-at-the-maximum" in codes(judge(version))
    preparation.base_model = make_base_model("another")
    preparation.save()
    assert "max-length-at-the-maximum" not in codes(judge(version))


def test_a_mini_run_is_judged_by_the_configuration_that_it_tries() -> None:
    run = make_run(purpose="mini")
    stored = {finding["code"] for finding in run.lint["findings"]}
    # With the 200 steps of the small experiment, three examples would be passed over 400 times.
    assert "too-many-epochs" not in stored
    assert run.config["training"]["max_steps"] == 200
