"""What is mixed into a task's training data: general data, unchanged examples, rare values (MISSION C4, C7).

Mixing comes last: repeats made before a split or before duplicates are dropped would be in both sets, or
gone. No torch here.
"""

from training.engine.data.mixing.amounts import MixAmounts, compute_amounts
from training.engine.data.mixing.mix import Mix, MixReport, Shortfall, mix_examples, mix_files
from training.engine.data.mixing.repeats import RepeatPlan, ValueRepeats
from training.engine.data.mixing.unchanged import is_unchanged

__all__ = [
    "Mix",
    "MixAmounts",
    "MixReport",
    "RepeatPlan",
    "Shortfall",
    "ValueRepeats",
    "compute_amounts",
    "is_unchanged",
    "mix_examples",
    "mix_files",
]
