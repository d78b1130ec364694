"""Leakage: what stands in several sets that must not share anything (MISSION C6). No torch here."""

from training.engine.data.leakage.answers import AnswerReport, MemorisableAnswer, SetAnswers
from training.engine.data.leakage.overlaps import LeakageMatrix, Overlap, OverlapPair
from training.engine.data.leakage.report import (
    EVALUATION_ROLES,
    LeakageReport,
    LeakedPair,
    check_leakage,
    find_leakage,
)
from training.engine.data.near_duplicates import NEAR_DUPLICATE_SIMILARITY

__all__ = [
    "EVALUATION_ROLES",
    "NEAR_DUPLICATE_SIMILARITY",
    "AnswerReport",
    "LeakageMatrix",
    "LeakageReport",
    "LeakedPair",
    "MemorisableAnswer",
    "Overlap",
    "OverlapPair",
    "SetAnswers",
    "check_leakage",
    "find_leakage",
]
