"""The intake check of an adapter: files, configuration and tensor headers against the chosen base model.

Nothing is loaded or run: only JSON and safetensors headers are read, so it takes milliseconds and no
accelerator. What headers cannot show (a NaN inside a tensor, a base of equal shapes but other values) is left
to the merge and to the evaluation.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from registry.artifacts.adapter_changes import AdapterModule, ChangeSet
from registry.artifacts.adapter_config import CONFIG_FILE, AdapterConfig, AdapterKind, read_adapter_config
from registry.artifacts.adapter_folder import WEIGHTS_FILE, check_weights_file
from registry.artifacts.adapter_rules import check_config
from registry.artifacts.adapter_serving import (
    check_rank,
    describe_merged_only,
    describe_serving,
    list_obstacles,
    round_up_rank,
)
from registry.artifacts.adapter_tensors import match_adapter_tensors
from registry.artifacts.adapter_vocabulary import check_vocabulary
from registry.artifacts.base_model import BaseModelSummary, read_base_model
from registry.artifacts.errors import AdapterConfigError, SafetensorsError
from registry.artifacts.findings import Finding, has_errors
from registry.artifacts.module_patterns import leaf_name
from registry.artifacts.safetensors_header import SafetensorsHeader, read_header

_MAX_FINDINGS_PER_CODE = 20


class TargetForm(StrEnum):
    """The form in which the adapter is to be shipped."""

    MERGED = "merged"
    ADAPTER = "adapter"


@dataclass(frozen=True, slots=True, kw_only=True)
class AdapterSummary:
    """The facts of a LoRA adapter for the registry and the report.

    Attributes:
        kind: whose schema it follows ("lora", "mlx", …).
        peft_type: as written; None when absent.
        peft_version: None before peft 0.18.
        task_type: None when null.
        base_hint: what the file names as its base; None when null.
        target_form: the form it was checked for.
        num_tensors: tensors in the file; 0 when it could not be read.
        num_modules: matched modules.
        num_parameters: elements of the matched A and B.
        size_bytes: length of the weights file; 0 when it could not be read.
        dtypes: safetensors names, sorted.
        target_modules: last parts of the matched modules' names, sorted.
        ranks: distinct ranks, sorted.
        scalings: distinct scalings, sorted.
        max_lora_rank: what vLLM's max_lora_rank must be at least; None when no module matched or none is
            large enough.
        forms: the forms in which it can be served: "merged", and "adapter" where vLLM 0.32 supports it;
            empty when it is not sound.
    """

    kind: str
    peft_type: str | None
    peft_version: str | None
    task_type: str | None
    base_hint: str | None
    target_form: str
    num_tensors: int = 0
    num_modules: int = 0
    num_parameters: int = 0
    size_bytes: int = 0
    dtypes: tuple[str, ...] = ()
    target_modules: tuple[str, ...] = ()
    ranks: tuple[int, ...] = ()
    scalings: tuple[float, ...] = ()
    max_lora_rank: int | None = None
    forms: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the fields as JSON."""
        values = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class AdapterCheck:
    """The outcome of the intake check.

    Attributes:
        findings: every fault at once; at most 20 of one kind, the rest counted.
        summary: None when adapter_config.json could not be read.
        changes: what it changes in the base model; complete only when `ok`.
    """

    findings: tuple[Finding, ...]
    summary: AdapterSummary | None
    changes: ChangeSet = field(default_factory=ChangeSet)

    @property
    def modules(self) -> tuple[AdapterModule, ...]:
        """The low-rank pairs, sorted by name."""
        return self.changes.modules

    @property
    def ok(self) -> bool:
        """Whether the adapter is accepted."""
        return not has_errors(self.findings)

    def to_json(self) -> dict[str, Any]:
        """Return the values of a check job: ok, findings, summary."""
        return {
            "ok": self.ok,
            "findings": [finding.to_json() for finding in self.findings],
            "summary": {} if self.summary is None else self.summary.to_json(),
        }


def check_adapter(
    adapter_dir: Path,
    base_model_dir: Path,
    target_form: TargetForm | str = TargetForm.MERGED,
    *,
    is_adapter_form_needed: bool = True,
) -> AdapterCheck:
    """Check an adapter's folder against a base model's folder.

    Args:
        adapter_dir: holds adapter_config.json and adapter_model.safetensors.
        base_model_dir: the base model chosen at submission.
        target_form: the suite's shipping form.
        is_adapter_form_needed: whether base + adapter must run in vLLM too, as it must while the canaries are
            compared in both forms; what vLLM cannot load is refused for both target forms then. The merge
            itself passes False. Always needed for the target form "adapter".

    Raises:
        BaseModelError: the base model is at fault, not the adapter.
        OSError: a file cannot be read.
    """
    form = TargetForm(target_form)
    is_needed = is_adapter_form_needed or form is TargetForm.ADAPTER
    base = read_base_model(base_model_dir)
    try:
        config = read_adapter_config(adapter_dir / CONFIG_FILE)
    except AdapterConfigError as error:
        remedy = "Save the adapter again with peft: model.save_pretrained(folder)."
        return AdapterCheck(
            findings=(Finding.error(error.code, str(error), where=CONFIG_FILE, remedy=remedy),), summary=None
        )
    findings = check_config(
        config, architectures=base.architectures, is_tied=base.is_tied, is_adapter_form_needed=False
    )
    header: SafetensorsHeader | None = None
    changes = ChangeSet()
    forms: tuple[str, ...] = ()
    if config.kind is AdapterKind.LORA:
        header = _read_weights(adapter_dir, findings)
        if header is not None and not any(finding.code == "adapter-pattern-invalid" for finding in findings):
            match = match_adapter_tensors(header.tensors, config, base)
            changes = match.changes
            findings.extend(match.findings)
            findings.extend(check_vocabulary(base_model_dir, changes.embedding.vocab_size))
        forms = _find_forms(config, base, changes, findings, is_needed=is_needed)
    return AdapterCheck(
        findings=tuple(_limit(findings)),
        summary=_summarise(config, header, changes.modules, form, forms),
        changes=changes,
    )


def _find_forms(
    config: AdapterConfig,
    base: BaseModelSummary,
    changes: ChangeSet,
    findings: list[Finding],
    *,
    is_needed: bool,
) -> tuple[str, ...]:
    """Return the forms in which the adapter can be served; refuse it when the adapter form is needed in
    vain.
    """
    is_sound = not has_errors(findings)
    reasons = [*list_obstacles(config, architectures=base.architectures), *changes.obstacles]
    ranks = [module.rank for module in changes.modules]
    rank_faults = list(check_rank(config, ranks, is_adapter_form_needed=is_needed))
    findings.extend(rank_faults)
    if reasons and is_needed:
        findings.extend(describe_serving(config, changes.obstacles, architectures=base.architectures))
    elif reasons:
        findings.append(describe_merged_only(reasons))
    if not is_sound:
        return ()
    if reasons or rank_faults:
        return (TargetForm.MERGED.value,)
    return (TargetForm.MERGED.value, TargetForm.ADAPTER.value)


def inspect_adapter_config(config: AdapterConfig) -> tuple[Finding, ...]:
    """Return what can be said without weights and without a base model; for the client before an upload."""
    return tuple(check_config(config))


def _read_weights(adapter_dir: Path, findings: list[Finding]) -> SafetensorsHeader | None:
    faults = check_weights_file(adapter_dir)
    findings.extend(faults)
    if has_errors(faults):
        return None
    try:
        return read_header(adapter_dir / WEIGHTS_FILE)
    except SafetensorsError as error:
        remedy = "Save or fetch the file again; the upload was complete, so the damage is older."
        findings.append(Finding.error(error.code, str(error), where=WEIGHTS_FILE, remedy=remedy))
        return None


def _summarise(
    config: AdapterConfig,
    header: SafetensorsHeader | None,
    modules: tuple[AdapterModule, ...],
    form: TargetForm,
    forms: tuple[str, ...],
) -> AdapterSummary:
    ranks = tuple(sorted({module.rank for module in modules}))
    tensors = header.tensors if header is not None else {}
    return AdapterSummary(
        kind=config.kind.value,
        peft_type=config.peft_type,
        peft_version=config.peft_version,
        task_type=config.task_type,
        base_hint=config.base_hint,
        target_form=form.value,
        num_tensors=len(tensors),
        num_modules=len(modules),
        num_parameters=sum(module.num_parameters for module in modules),
        size_bytes=header.file_bytes if header is not None else 0,
        dtypes=tuple(sorted({tensor.dtype for tensor in tensors.values()})),
        target_modules=tuple(sorted({leaf_name(module.module) for module in modules})),
        ranks=ranks,
        scalings=tuple(sorted({module.scaling for module in modules})),
        max_lora_rank=round_up_rank(max(config.r, *config.rank_pattern.values(), ranks[-1]))
        if ranks
        else None,
        forms=forms,
    )


def _limit(findings: Iterable[Finding]) -> Iterable[Finding]:
    """Keep the first findings of each kind and count the rest: a wrong base breaks every module alike."""
    counts: Counter[str] = Counter()
    last: dict[str, Finding] = {}
    for finding in findings:
        counts[finding.code] += 1
        last[finding.code] = finding
        if counts[finding.code] <= _MAX_FINDINGS_PER_CODE:
            yield finding
    for code, count in counts.items():
        if count > _MAX_FINDINGS_PER_CODE:
            message = f"{count - _MAX_FINDINGS_PER_CODE} more findings of the kind {code}."
            yield Finding(code=code, severity=last[code].severity, message=message, remedy=last[code].remedy)
