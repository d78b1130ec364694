"""A decision can be made again from what is stored, and a change of what is stored shows."""

import pytest

from evaluation.errors import EvaluationConflict
from evaluation.models import Decision, EvaluationRun, ExampleResult
from evaluation.selectors.decisions import get_decision
from evaluation.services.decisions import decide_run, recompute_decision
from registry.services.actors import SYSTEM
from tests.fixtures.evaluation import make_decided_run, make_suite
from tests.fixtures.registry import make_version

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("num_wrong", [3, 60])
def test_recompute_is_equal(num_wrong: int) -> None:
    run = make_decided_run(make_version(), make_suite(), num_wrong=num_wrong)
    decision = get_decision(run.decision.pk)
    recomputation = recompute_decision(decision=decision, actor=SYSTEM)
    assert (recomputation.is_equal, recomputation.differences) == (True, ())
    assert recomputation.verdict == decision.verdict


def test_a_changed_row_shows() -> None:
    run = make_decided_run(make_version(), make_suite(), num_wrong=60)
    row = ExampleResult.objects.get(run=run, role="holdout", example_id="holdout-0")
    row.details = row.details | {"score": 1.0}
    row.save()
    recomputation = recompute_decision(decision=get_decision(run.decision.pk), actor=SYSTEM)
    assert not recomputation.is_equal
    assert any("rows" in difference for difference in recomputation.differences)


def test_a_changed_verdict_shows() -> None:
    run = make_decided_run(make_version(), make_suite(), num_wrong=60)
    Decision.objects.filter(pk=run.decision.pk).update(verdict="passed")
    recomputation = recompute_decision(decision=get_decision(run.decision.pk), actor=SYSTEM)
    assert recomputation.differences == ("the verdict was passed and is now rejected",)


def test_only_a_scored_candidate_is_decided() -> None:
    run = make_decided_run(make_version(), make_suite())
    baseline = EvaluationRun.objects.get(subject="baseline")
    for it in (run, baseline):
        with pytest.raises(EvaluationConflict):
            decide_run(run_id=it.pk, actor=SYSTEM)
