import itertools
import json
import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from registry.artifacts.findings import Severity
from tests.training.engine.lint.plans import HEALTHY_DATA, SEVEN_B, make_data, make_plan
from training.engine.config import TrainingConfig
from training.engine.lint.catalogue import RULES
from training.engine.lint.findings import LintRule, explain, refuse, warn
from training.engine.lint.judge import judge_plan
from training.engine.lint.plan import Fact, LengthFacts, TrainingPlan

# Whatever can be unknown; the plan stays valid without it.
UNKNOWNS = ("shape", "base_dtype", "data", "card_bytes", "has_held_out")


def test_codes_are_unique_and_sourced() -> None:
    codes = [rule.code for rule in RULES]
    assert len(set(codes)) == len(codes)
    for rule in RULES:
        assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", rule.code)
        assert re.fullmatch(r"[A-G]\d+(, [A-GT]\d+)*", rule.source), rule
        assert rule.where


def test_settings_that_rules_name_exist() -> None:
    config = TrainingConfig().to_json()
    for rule in RULES:
        section, _, name = rule.where.partition(".")
        assert not name or name in config[section], rule


def test_healthy_defaults_give_nothing_above_info() -> None:
    report = judge_plan(make_plan())
    assert report.unchecked == ()
    assert [finding for finding in report.findings if finding.severity is not Severity.INFO] == []
    assert not report.has_errors


def test_the_defaults_alone_give_nothing() -> None:
    assert judge_plan(TrainingPlan(config=TrainingConfig())).findings == ()


def test_rules_without_their_facts_are_named() -> None:
    report = judge_plan(TrainingPlan(config=TrainingConfig()))
    missing = {rule.code: rule.missing for rule in report.unchecked}
    assert missing["no-held-out-set"] == (Fact.HELD_OUT,)
    assert missing["memory-does-not-fit"] == (Fact.CARD, Fact.SHAPE)
    assert "learning-rate-above-usual" not in missing
    run = len(RULES) - len(report.unchecked)
    assert run == sum(rule.needs <= {Fact.PASSES} for rule in RULES)


@pytest.mark.parametrize("method", ["lora", "qlora", "full"])
@pytest.mark.parametrize("max_steps", [None, 5])
def test_no_rule_uses_a_fact_that_it_does_not_declare(method: str, max_steps: int | None) -> None:
    """All combinations of unknown facts, with settings that make most rules speak."""
    long = LengthFacts(common_tokens=900, longest_tokens=9000, num_too_long=300)
    plans = [
        make_plan(method=method, max_steps=max_steps, card_gb=8, base_dtype="float16", has_held_out=False),
        make_plan(
            method=method,
            max_steps=max_steps,
            has_held_out=True,
            lora={
                "r": 128,
                "lora_alpha": 16,
                "lora_dropout": 0,
                "target_modules": ["q_proj", "lm_head", "none"],
                "layers": {"first": 0, "last": 99},
                "use_dora": True,
            },
            gradient_checkpointing=False,
            dtype="float32",
            learning_rate=1.0,
            num_epochs=0.1,
            eval_every_steps=10_000,
            log_every_steps=1000,
        ),
    ]
    datas = [
        make_data(50, 0.0, long),
        make_data(50, None, replace(long, num_too_long=None)),
        make_data(0, None),
        make_data(50_000, 0.5, replace(long, num_too_long=0)),
    ]
    for plan, data in itertools.product(plans, datas):
        for size in range(len(UNKNOWNS) + 1):
            for unknown in itertools.combinations(UNKNOWNS, size):
                partial = replace(replace(plan, data=data), **dict.fromkeys(unknown))
                report = judge_plan(partial)
                told = {finding.code for finding in report.findings}
                assert told.isdisjoint(rule.code for rule in report.unchecked)


@given(
    rate=st.floats(1e-7, 1.0),
    rank=st.integers(1, 256),
    epochs=st.floats(0.1, 20),
    num_rows=st.integers(0, 100_000),
    general=st.floats(0, 1),
    card=st.floats(1, 200),
    batch=st.integers(1, 64),
    fraction=st.floats(0, 0.9),
)
def test_reports_are_json_ordered_and_repeatable(
    rate: float,
    rank: int,
    epochs: float,
    num_rows: int,
    general: float,
    card: float,
    batch: int,
    fraction: float,
) -> None:
    plan = make_plan(
        data=make_data(num_rows, general),
        card_gb=card,
        lora={"r": rank},
        learning_rate=rate,
        num_epochs=epochs,
        per_device_batch_size=batch,
        warmup_fraction=fraction,
    )
    report = judge_plan(plan)
    assert json.loads(json.dumps(report.to_json(), allow_nan=False)) == report.to_json()
    assert judge_plan(plan) == report
    order = [Severity.ERROR, Severity.WARNING, Severity.INFO]
    ranks = [order.index(finding.severity) for finding in report.findings]
    assert ranks == sorted(ranks)
    assert all(finding.message and finding.remedy for finding in report.findings)
    # Only one rule speaks of the height of the rate.
    assert sum(finding.where == "training.learning_rate" for finding in report.findings) <= 1


def test_the_weightiest_come_first_and_the_source_is_named() -> None:
    rules = (
        LintRule("a", "D1", "x", lambda plan: explain("m", "r")),
        LintRule("b", "D2", "x", lambda plan: refuse("m", "r")),
        LintRule("c", "D3", "x", lambda plan: warn("m", "r"), frozenset({Fact.CARD})),
        LintRule("d", "D3", "x", lambda plan: warn("m", "r")),
        LintRule("e", "D3", "x", lambda plan: None),
    )
    report = judge_plan(make_plan(card_gb=None), rules=rules)
    assert [finding.code for finding in report.findings] == ["b", "d", "a"]
    assert report.findings[0].source == "MISSION D2"
    assert report.has_errors
    assert [rule.to_json() for rule in report.unchecked] == [{"code": "c", "missing": ["card"]}]


def test_the_shared_facts_are_what_the_tests_say() -> None:
    assert SEVEN_B.num_parameters == 6_738_415_616
    assert HEALTHY_DATA.num_rows == 2000
