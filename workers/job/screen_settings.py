"""What a screening by a model is told: a settings file, and options of the command line that win over it."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

from evaluation.engine.backends.base import BackendConfig
from training.engine.data.cleaning.sensitive.model_pass import ModelPassSettings
from training.engine.data.cleaning.sensitive.settings import DEFAULTS, RULES, ScreenSettings
from training.engine.data.making.fault_lists import refuse_if_faulty
from training.engine.errors import ConfigInvalid, Fault
from training.engine.settings_rules import Rule, count, read_section
from workers.job.model_programs import read_backend, read_part, refuse_unknown_sections

SECTIONS: Final = ("screen", "model_pass", "backend")
NUM_EXAMPLES_PER_CALL: Final = 4096
"""Each call of the model starts its engine, so a call holds more than the 32 that suit a running one."""

_PASS_RULES: Mapping[str, Rule] = {
    "max_characters": count(1, 1_000_000),
    "overlap_characters": count(0, 1_000_000),
    "batch_size": count(1, 1_000_000),
    "max_tokens": count(1, 1_000_000),
    "max_spans": count(1, 10_000),
    "min_characters": count(1, 1000),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelScreenSettings:
    """Everything that decides a screening besides set and model.

    Attributes:
        screen: Kinds and actions, as of the cleaning step ``screen_sensitive``; ``actions`` may name the
            kinds that only the model finds.
        model_pass: How the model is asked.
        backend: Its engine.
    """

    screen: ScreenSettings
    model_pass: ModelPassSettings
    backend: BackendConfig

    @classmethod
    def from_json(cls, raw: Mapping[str, Any], *, backend: str | None = None) -> "ModelScreenSettings":
        """Reads ``{"screen", "model_pass", "backend"}``, each of which may be left out.

        Args:
            raw: A settings file.
            backend: Name of the engine; see ``model_programs.read_backend``.

        Raises:
            ConfigInvalid: ``screen-settings-invalid`` with every fault of every section.
        """
        faults: list[Fault] = []
        refuse_unknown_sections(raw, SECTIONS, faults)
        given = read_section("screen", raw.get("screen", {}), RULES, faults)
        asking = _read_model_pass(raw.get("model_pass", {}), faults)
        config = read_part(faults, lambda: read_backend(raw, backend, max_tokens=asking.max_tokens))
        refuse_if_faulty(ConfigInvalid, "screen-settings-invalid", "The configuration", faults)
        if config is None:
            raise AssertionError("a section without a value has a fault")
        return cls(screen=ScreenSettings(**{**DEFAULTS, **given}), model_pass=asking, backend=config)

    def to_json(self) -> dict[str, Any]:
        """Returns the form for reports, everything filled in."""
        return {
            "screen": asdict(self.screen),
            "model_pass": asdict(self.model_pass),
            "backend": self.backend.to_json(),
        }


def _read_model_pass(raw: Any, faults: list[Fault]) -> ModelPassSettings:
    given = read_section("model_pass", raw, _PASS_RULES, faults)
    try:
        return ModelPassSettings(**{"batch_size": NUM_EXAMPLES_PER_CALL, **given})
    except ValueError as error:
        faults.append(Fault(code="invalid-value", message=str(error), where="model_pass"))
    return ModelPassSettings()
