"""Near duplicates among many texts, found exactly (MISSION C3(1), C6). No torch here."""

from typing import Final

from training.engine.data.near_duplicates.components import Components, unite_near_duplicates
from training.engine.data.near_duplicates.firsts import Firsts, FirstsFinder
from training.engine.data.near_duplicates.pairs import Pair, SimilarTextIndex, find_near_duplicate_pairs
from training.engine.data.near_duplicates.shingle_sets import SetCollector, ShingleSets, collect_sets

NEAR_DUPLICATE_SIMILARITY: Final = 0.85
"""MISSION C3: similarity from which two examples are near duplicates."""

__all__ = [
    "NEAR_DUPLICATE_SIMILARITY",
    "Components",
    "Firsts",
    "FirstsFinder",
    "Pair",
    "SetCollector",
    "ShingleSets",
    "SimilarTextIndex",
    "collect_sets",
    "find_near_duplicate_pairs",
    "unite_near_duplicates",
]
