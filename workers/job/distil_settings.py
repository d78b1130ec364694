"""What a distillation on files is told: a settings file, and options of the command line that win over it."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final

from evaluation.engine.backends.base import BackendConfig
from registry.artifacts.findings import shown
from training.engine.data.intake.settings import IntakeSettings
from training.engine.data.making.distillation_settings import DistillationSettings
from training.engine.data.making.fault_lists import refuse_if_faulty
from training.engine.data.making.generator import TeacherSettings, read_teachers
from training.engine.errors import ConfigInvalid, Fault
from workers.job.model_programs import read_backend, read_part, refuse_unknown_sections

SECTIONS: Final = ("distillation", "teachers", "judge", "backend", "intake")
DEFAULT_VARIANTS: Final = ("{system}",)
"""Instruction of a teacher that only the command line names: the input's own system message, or none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DistilSettings:
    """Everything that decides a distillation besides its inputs.

    Attributes:
        distillation: See there.
        teachers: Whose ``model`` is a model's folder.
        judge: A model's folder; None without a judge.
        backend: The engine of all models.
        intake: How the inputs are read.
    """

    distillation: DistillationSettings
    teachers: tuple[TeacherSettings, ...]
    judge: str | None
    backend: BackendConfig
    intake: IntakeSettings

    @classmethod
    def from_json(cls, raw: Mapping[str, Any], *, backend: str | None = None) -> "DistilSettings":
        """Reads ``{"distillation", "teachers", "judge", "backend", "intake"}``; all but teachers may be left
        out.

        Args:
            raw: A settings file with the options of the command line in it.
            backend: Name of the engine; see ``read_backend``.

        Raises:
            ConfigInvalid: ``distil-settings-invalid`` with every fault of every section.
        """
        faults: list[Fault] = []
        refuse_unknown_sections(raw, SECTIONS, faults)
        distillation = read_part(faults, lambda: DistillationSettings.from_json(raw.get("distillation", {})))
        teachers = read_part(faults, lambda: read_teachers(raw.get("teachers", ())))
        max_tokens = None if distillation is None else distillation.max_tokens
        config = read_part(faults, lambda: read_backend(raw, backend, max_tokens=max_tokens))
        intake = read_part(faults, lambda: _read_intake(raw.get("intake", {})))
        judge = raw.get("judge")
        faults += _check_folders(teachers or (), judge)
        if distillation is not None and teachers is not None:
            faults += _check_num_sources(teachers, distillation.num_candidates)
        refuse_if_faulty(ConfigInvalid, "distil-settings-invalid", "The configuration", faults)
        if distillation is None or teachers is None or config is None or intake is None:
            raise AssertionError("a section without a value has a fault")
        return cls(distillation=distillation, teachers=teachers, judge=judge, backend=config, intake=intake)

    def to_json(self) -> dict[str, Any]:
        """Returns the form for reports: everything filled in, models by the names of their folders."""
        teachers = [replace(teacher, model=name_of(teacher.model)) for teacher in self.teachers]
        return {
            "distillation": self.distillation.to_json(),
            "teachers": [asdict(teacher) for teacher in teachers],
            "judge": None if self.judge is None else name_of(self.judge),
            "backend": self.backend.to_json(),
            "intake": self.intake.to_json(),
        }


def name_of(folder: str) -> str:
    """Returns a model folder's name, without where it lies on this machine."""
    return Path(folder).absolute().name


def with_teachers(
    raw: Mapping[str, Any], pairs: Sequence[str], *, relative_to: Path | None
) -> dict[str, Any]:
    """Returns settings in which the teachers have their models.

    Args:
        raw: From a settings file.
        pairs: ``NAME=MODEL_FOLDER`` of the command line, relative to the current folder. A teacher that the
            file does not name is added with ``DEFAULT_VARIANTS``.
        relative_to: Folder of the settings file, to which its own model folders are relative; None without
            a file.

    Raises:
        ConfigInvalid: ``teacher-option-invalid`` for a pair without name or folder, or a name given twice.
    """
    given = _read_pairs(pairs)
    listed = raw.get("teachers", [])
    merged = {**raw}
    if relative_to is not None and isinstance(raw.get("judge"), str):
        merged["judge"] = str(relative_to / raw["judge"])
    if not isinstance(listed, list) or not all(isinstance(item, Mapping) for item in listed):
        return merged
    teachers = []
    for item in listed:
        model = given.pop(str(item.get("name")), None)
        if model is None and relative_to is not None and isinstance(item.get("model"), str):
            model = str(relative_to / item["model"])
        teachers.append({**item, **({} if model is None else {"model": model})})
    teachers += [
        {"name": name, "model": model, "instruction_variants": list(DEFAULT_VARIANTS)}
        for name, model in given.items()
    ]
    return {**merged, "teachers": teachers}


def _read_pairs(pairs: Sequence[str]) -> dict[str, str]:
    named: dict[str, str] = {}
    for pair in pairs:
        name, _, folder = pair.partition("=")
        if not name or not folder or name in named:
            message = f"--teacher takes NAME=MODEL_FOLDER, each name once; not {shown(pair)!r}"
            raise ConfigInvalid("teacher-option-invalid", message)
        named[name] = folder
    return named


def _read_intake(raw: Any) -> IntakeSettings:
    if not isinstance(raw, Mapping):
        fault = Fault(code="wrong-type", message="must be an object", where="intake")
        raise ConfigInvalid("intake-settings-invalid", "intake must be an object", faults=[fault])
    return IntakeSettings.from_json(raw)


def _check_folders(teachers: Sequence[TeacherSettings], judge: Any) -> list[Fault]:
    named = [(f"teachers.{number}.model", teacher.model) for number, teacher in enumerate(teachers)]
    named += [] if judge is None else [("judge", judge)]
    return [
        Fault(code="model-missing", message=f"{shown(folder)} is no folder on this machine", where=where)
        for where, folder in named
        if not isinstance(folder, str) or not Path(folder).is_dir()
    ]


def _check_num_sources(teachers: Sequence[TeacherSettings], num_candidates: int) -> list[Fault]:
    """Known before an engine starts; ``plan_sources`` looks more closely, with models at hand."""
    num_sources = sum(len(teacher.instruction_variants) for teacher in teachers)
    if num_sources >= num_candidates:
        return []
    message = f"{num_sources} pairs of teacher and instruction for {num_candidates} candidates"
    remedy = (
        "Add instruction variants or teachers, or ask for fewer candidates (distillation.num_candidates)."
    )
    return [Fault(code="too-few-sources", message=message, where="teachers", remedy=remedy)]
