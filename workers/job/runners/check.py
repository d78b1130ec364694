"""kind "check": is the adapter sound, and does it fit its base model. A faulty adapter is a succeeded
check.
"""

from registry.artifacts.adapter_check import TargetForm, check_adapter
from workers.job.events import EventWriter
from workers.job.execution import RunnerResult
from workers.job.spec import JobTask


def run(task: JobTask, report: EventWriter) -> RunnerResult:
    """Checks the input `adapter` against `base_model` for `config.target_form`."""
    report.progress(0.0, "Checking the adapter against its base model")
    check = check_adapter(
        task.input("adapter"),
        task.input("base_model"),
        str(task.spec.config.get("target_form", TargetForm.MERGED)),
    )
    report.progress(1.0, f"{len(check.findings)} findings")
    return RunnerResult(values=check.to_json())
