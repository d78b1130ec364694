"""What each step of the pipeline asks a job to do: inputs, configuration, code version. Reads rows, writes
nothing.

The content of a request decides the job's cache key, so nothing that may differ between two equal pieces of
work (an id, a time, a name that is not in the work itself) may stand in `inputs` or `config`.
"""

from dataclasses import dataclass
from typing import Any

from django.conf import settings

from evaluation.choices import RunSubject
from evaluation.models import EvaluationRun, SuiteVersion
from evaluation.services import code_versions
from registry.choices import JobKind
from registry.models import AdapterVersion

DATA_FILE = "data.jsonl"


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRequest:
    """The arguments of one `enqueue_job`.

    Attributes:
        kind: A `JobKind`.
        inputs: Input folders, in the form of `registry.models.Job.inputs`.
        config: Kind-specific configuration (JSON).
        code_version: See `code_versions`.
        subject: What it is about, for people; not part of the cache key.
    """

    kind: str
    inputs: dict[str, Any]
    config: dict[str, Any]
    code_version: str
    subject: str


def request_check(version: AdapterVersion, form: str) -> JobRequest:
    """The check of an adapter against its base model, for the form that will be served."""
    return JobRequest(
        kind=JobKind.CHECK,
        inputs={
            "adapter": {"artifact": version.artifact_id},
            "base_model": {"artifact": version.base_model.artifact_id},
        },
        config={"target_form": form},
        code_version=code_versions.CHECK,
        subject=str(version),
    )


def request_merge(version: AdapterVersion) -> JobRequest:
    """The merge of an adapter into its base model."""
    return JobRequest(
        kind=JobKind.MERGE,
        inputs={
            "adapter": {"artifact": version.artifact_id},
            "base_model": {"artifact": version.base_model.artifact_id},
        },
        config={},
        code_version=code_versions.MERGE,
        subject=str(version),
    )


def request_evaluation(run: EvaluationRun) -> JobRequest:
    """The evaluation of a run's subject on its suite; a candidate's needs the merge and the baseline's
    report.
    """
    is_baseline = run.subject == RunSubject.BASELINE
    inputs: dict[str, Any] = {
        "base_model": {"artifact": run.base_model.artifact_id},
        "suite": suite_input(run.suite_version),
    }
    if not is_baseline:
        inputs |= _candidate_inputs(run)
    return JobRequest(
        kind=JobKind.EVALUATE,
        inputs=inputs,
        config={
            "subject": run.subject,
            "form": shipping_form(run.suite_version),
            "backend": dict(settings.ENGINE_BACKEND),
        },
        code_version=code_versions.EVALUATE,
        subject=f"{run.base_model if is_baseline else run.version} on {run.suite_version}",
    )


def suite_input(suite_version: SuiteVersion) -> dict[str, Any]:
    """The input folder of a suite: suite.json inline and one file for each of the four sets."""
    files = {
        f"{item.role}.jsonl": {"artifact": item.dataset_version.artifact_id, "path": DATA_FILE}
        for item in suite_version.datasets.select_related("dataset_version")
    }
    return {"files": dict(sorted(files.items())), "inline": {"suite.json": suite_version.definition}}


def shipping_form(suite_version: SuiteVersion) -> str:
    """The serving form that a suite judges: "merged" or "adapter"."""
    return str(suite_version.definition["shipping_form"])


def _candidate_inputs(run: EvaluationRun) -> dict[str, Any]:
    version, baseline = run.version, run.baseline
    if version is None or version.merged_artifact_id is None or baseline is None:
        raise ValueError(f"run {run.pk} is not ready: it has no version, no merged model or no baseline")
    inputs: dict[str, Any] = {
        "adapter": {"artifact": version.artifact_id},
        "merged_model": {"artifact": version.merged_artifact_id},
        "baseline_report": {"artifact": baseline.report_artifact_id},
    }
    datasets = version.training_datasets.select_related("dataset").order_by("dataset__name", "number")
    if files := {f"{item}.jsonl": {"artifact": item.artifact_id, "path": DATA_FILE} for item in datasets}:
        inputs["training_data"] = {"files": files}
    return inputs
