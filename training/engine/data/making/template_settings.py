"""What decides a run of templates besides the template set."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

from training.engine.data.making.fault_lists import refuse_if_faulty
from training.engine.errors import ConfigInvalid, Fault
from training.engine.settings_rules import NAMES, Rule, count, number, read_section

DEFAULT_PARAPHRASE_INSTRUCTIONS: Final = (
    "Say the user's message in other words, as another person would write it. Keep its language, its meaning "
    "and every fact; add nothing and answer nothing. These words must stay exactly as they are: {keep}. "
    "Reply with the new message only.",
    "Rewrite the user's message the way somebody in a hurry would put it, in the same language. Nothing that "
    "it says may change or be left out, and nothing may be added. Use these words unchanged: {keep}. Give "
    "only the rewritten message.",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TemplateSettings:
    """Settings of a run.

    Attributes:
        num_examples: Examples to compose, 1-50,000.
        seed: Of every choice.
        max_similarity: No two inputs have this similarity or more (Jaccard of shingles, above 0 and at most
            1; MISSION C3: 0.85).
        paraphrase_fraction: Part of the examples whose input is reworded by a model, 0-1; without a model
            none is.
        paraphrase_instructions: System messages of the rewording, taken in turn; ``{keep}`` stands for the
            words that must stay.
        paraphrase_max_tokens: Longest rewording.
        paraphrase_max_similarity: A rewording of this similarity with its original is none (0.85).
        min_length_fraction: Shortest rewording by characters, as a multiple of the original.
        max_length_fraction: Longest rewording by characters, as a multiple of the original.
    """

    num_examples: int = 500
    seed: int = 0
    max_similarity: float = 0.85
    paraphrase_fraction: float = 1.0
    paraphrase_instructions: tuple[str, ...] = DEFAULT_PARAPHRASE_INSTRUCTIONS
    paraphrase_max_tokens: int = 512
    paraphrase_max_similarity: float = 0.85
    min_length_fraction: float = 0.5
    max_length_fraction: float = 2.0

    @classmethod
    def from_json(cls, raw: Any) -> "TemplateSettings":
        """Read settings; missing keys take their defaults, unknown ones are refused.

        Raises:
            ConfigInvalid: ``template-settings-invalid`` with every fault.
        """
        faults: list[Fault] = []
        values = read_section("templates", raw, _RULES, faults)
        refuse_if_faulty(
            ConfigInvalid, "template-settings-invalid", "The settings of the template run", faults
        )
        return cls(**values)

    def to_json(self) -> dict[str, Any]:
        """Return all values, defaults included; ``from_json`` of it gives equal settings."""
        return {**asdict(self), "paraphrase_instructions": list(self.paraphrase_instructions)}


_RULES: Mapping[str, Rule] = {
    "num_examples": count(1, 50_000),
    "seed": count(0, 2**32 - 1),
    "max_similarity": number(0, 1, low_open=True),
    "paraphrase_fraction": number(0, 1),
    "paraphrase_instructions": NAMES,
    "paraphrase_max_tokens": count(1, 1_000_000),
    "paraphrase_max_similarity": number(0, 1, low_open=True),
    "min_length_fraction": number(0, 1),
    "max_length_fraction": number(1, 100),
}
