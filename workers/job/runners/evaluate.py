"""kind "evaluate": a baseline or a candidate on a suite, as the output `report`.

Leakage is the training engine's business and the report the evaluation engine's; they meet here.
"""

from evaluation.engine.evaluate import EvaluationConfig, run_evaluation
from evaluation.engine.progress import PartReporter
from training.engine.data.leakage import check_leakage
from workers.job.comparison import with_timing
from workers.job.events import EventWriter
from workers.job.execution import RunnerResult
from workers.job.spec import JobTask

OUTPUT = "report"
LEAKAGE_FRACTION = 0.03
"""Share of the progress bar for the comparison with the training data."""


def run(task: JobTask, report: EventWriter) -> RunnerResult:
    """Evaluates what the config says; `training_data`, where there is such an input, is searched for
    leaks.
    """
    config = EvaluationConfig.from_json(task.spec.config)
    report.progress(0.0, "Comparing training and evaluation data")
    leakage = check_leakage(training_data=task.optional_input("training_data"), suite=task.input("suite"))
    result = run_evaluation(
        base_model=task.input("base_model"),
        suite=task.input("suite"),
        adapter=task.optional_input("adapter"),
        merged_model=task.optional_input("merged_model"),
        baseline_report=task.optional_input("baseline_report"),
        config=config,
        workdir=task.scratch,
        output=task.outputs / OUTPUT,
        report=PartReporter(report, LEAKAGE_FRACTION, 1.0, "Evaluation"),
        leakage=leakage,
    )
    return RunnerResult(values=with_timing(result.values, "total_seconds"), outputs=(OUTPUT,))
