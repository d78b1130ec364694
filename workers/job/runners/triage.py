"""kind "triage": samples on a base model under several prompts, failures sorted, as the output `report`."""

import json

from evaluation.engine.triage.run import run_triage
from evaluation.engine.triage.samples import parse_samples
from evaluation.engine.triage.settings import TriageConfig
from workers.job.comparison import with_timing
from workers.job.events import EventWriter
from workers.job.execution import RunnerResult
from workers.job.files import read_json
from workers.job.spec import JobTask

OUTPUT = "report"
SAMPLES_FILE = "samples.json"


def run(task: JobTask, report: EventWriter) -> RunnerResult:
    """Runs the samples in the input `samples` on the input `base_model`."""
    document = read_json(task.input("samples") / SAMPLES_FILE, code="samples-unreadable")
    samples = parse_samples([json.dumps(item).encode() for item in document["samples"]], "samples")
    result = run_triage(
        base_model=task.input("base_model"),
        samples=samples,
        config=TriageConfig.from_json(task.spec.config),
        workdir=task.scratch,
        output=task.outputs / OUTPUT,
        report=report,
    )
    values = {
        "best_prompt": result.summary["best_prompt"],
        "prompts": result.summary["prompts"],
        "verdict": result.verdict.to_json(),
        "total_seconds": result.summary["timing"]["total_seconds"],
    }
    return RunnerResult(values=with_timing(values, "total_seconds"), outputs=(OUTPUT,))
