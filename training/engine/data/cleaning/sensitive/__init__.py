"""Sensitive content: rules for Chinese and Western formats, and a second pass by a model (MISSION C3(5))."""

from training.engine.data.cleaning.sensitive.step import SCREEN_SENSITIVE
from training.engine.data.cleaning.step import StepKind

KINDS: tuple[StepKind, ...] = (SCREEN_SENSITIVE,)
