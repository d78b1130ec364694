"""Judges a training run before it begins, by what the server knows of it (MISSION D2)."""

from collections.abc import Mapping, Sequence
from typing import Any

from registry.artifacts.findings import Severity
from registry.choices import DatasetRole
from registry.errors import Fault, NotFoundError
from registry.models import BaseModel, DatasetVersion
from training.engine.config import TrainingConfig
from training.engine.errors import ConfigInvalid
from training.engine.lint.findings import LintFinding, LintReport
from training.engine.lint.judge import judge_plan
from training.engine.lint.plan import DataFacts, LengthFacts, TrainingPlan
from training.engine.memory.model_shape import ModelShape, read_model_shape
from training.errors import TrainingInvalid
from training.models import PreparedSet
from training.selectors.memory import read_base_config

_SETTINGS = ("method", "lora", "training", "data", "preflight")


def judge_run(
    *,
    config: TrainingConfig,
    base_model: BaseModel,
    datasets: Sequence[DatasetVersion],
    has_held_out: bool,
) -> LintReport:
    """What the rules find. Rules that need the card's memory, which the server does not know, are named as
    not checked; so are those that need lengths, unless the only dataset was prepared with this base.
    """
    plan = TrainingPlan(
        config=config,
        shape=_read_shape(base_model),
        base_dtype=base_model.dtype or None,
        data=_data_facts(datasets, base_model=base_model, config=config),
        has_held_out=has_held_out,
    )
    return judge_plan(plan)


def list_lint_faults(report: LintReport) -> list[Fault]:
    """The errors among the findings, with places as in the request."""
    return [
        Fault(code=found.code, message=found.message, where=_place(found), remedy=found.remedy)
        for found in report.findings
        if found.severity is Severity.ERROR
    ]


def _place(finding: LintFinding) -> str:
    setting = finding.where.replace(".", "/")
    if setting.split("/")[0] in _SETTINGS:
        return f"/config/{setting}"
    return "/datasets" if finding.where == "training data" else f"/{setting.replace(' ', '_')}"


def _read_shape(base_model: BaseModel) -> ModelShape | None:
    """None when it cannot be told; whether the files can be trained on is for the run to find out."""
    try:
        return read_model_shape(read_base_config(base_model))
    except (ConfigInvalid, NotFoundError, TrainingInvalid):
        return None


def _data_facts(
    datasets: Sequence[DatasetVersion], *, base_model: BaseModel, config: TrainingConfig
) -> DataFacts | None:
    num_rows = sum(version.num_examples for version in datasets)
    if not num_rows:
        return None
    num_general = sum(count_general(version) for version in datasets)
    lengths = _read_lengths(datasets, base_model, config)
    limit = config.data.max_examples
    return DataFacts(
        num_rows=num_rows if limit is None else min(num_rows, limit),
        general_fraction=num_general / num_rows,
        lengths=lengths if limit is None else None,
    )


def count_general(version: DatasetVersion) -> int:
    """How many examples of a version are general instruction data, as far as its role or card says."""
    if version.dataset.role == DatasetRole.GENERAL:
        return version.num_examples
    stated = version.card.get("num_general")
    is_number = isinstance(stated, int) and not isinstance(stated, bool)
    return min(max(stated, 0), version.num_examples) if is_number else 0


def _read_lengths(
    datasets: Sequence[DatasetVersion], base_model: BaseModel, config: TrainingConfig
) -> LengthFacts | None:
    """Lengths in tokens from the card of the only dataset, where its preparation measured with this base.

    They are of the texts without the template's own tokens, which are few beside a row that is too long. How
    many rows are dropped cannot be told from quantiles.
    """
    if len(datasets) != 1 or not _was_measured_with(datasets[0], base_model):
        return None
    quantiles = _token_quantiles(datasets[0].card)
    common, longest = quantiles.get("p95"), quantiles.get("max")
    if not isinstance(common, int) or not isinstance(longest, int) or not 0 < common <= longest:
        return None
    return LengthFacts(common_tokens=common, longest_tokens=longest)


def _was_measured_with(version: DatasetVersion, base_model: BaseModel) -> bool:
    sets = PreparedSet.objects.filter(dataset_version=version)
    return sets.filter(preparation__base_model__artifact_id=base_model.artifact_id).exists()


def _token_quantiles(card: Mapping[str, Any]) -> Mapping[str, Any]:
    value: Any = card
    for name in ("lengths", "total_tokens", "quantiles"):
        value = value.get(name) if isinstance(value, Mapping) else None
    return value if isinstance(value, Mapping) else {}
