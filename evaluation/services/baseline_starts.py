"""Starts baseline runs on request."""

from dataclasses import dataclass

from evaluation.errors import SubmissionInvalid
from evaluation.models import EvaluationRun
from evaluation.selectors.runs import get_baseline, list_baselines
from evaluation.selectors.suites import get_suite_version
from evaluation.services.baselines import ensure_baseline
from evaluation.services.pipeline import advance_run
from registry.choices import TokenScope
from registry.errors import Fault
from registry.selectors.base_models import get_base_model
from registry.services.actors import Actor
from registry.services.lookups import look_up


@dataclass(frozen=True, slots=True, kw_only=True)
class StartedBaseline:
    """A baseline run, and whether it was made just now."""

    run: EvaluationRun
    is_new: bool


def start_baseline(*, base_model_name: str, suite: str, actor: Actor) -> StartedBaseline:
    """Starts the baseline of a base model on a suite, or returns the one that is there (begun again if it
    failed).

    Args:
        base_model_name: A registered base model.
        suite: "name" (newest) or "name@number".
        actor: Needs the scope `evaluate`.

    Raises:
        ScopeError: the actor may not.
        SubmissionInvalid: unknown base model or suite, both at once (code `baseline-invalid`).
    """
    actor.require(TokenScope.EVALUATE)
    faults: list[Fault] = []
    base_model = look_up(faults, "/base_model", lambda: get_base_model(base_model_name))
    suite_version = look_up(faults, "/suite", lambda: get_suite_version(reference=suite))
    if base_model is None or suite_version is None:
        raise SubmissionInvalid("baseline-invalid", faults=faults)
    is_new = not list_baselines().filter(base_model=base_model, suite_version=suite_version).exists()
    run = ensure_baseline(base_model=base_model, suite_version=suite_version, actor=actor)
    advance_run(run_id=run.pk)
    return StartedBaseline(run=get_baseline(run.pk), is_new=is_new)
