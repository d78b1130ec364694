"""Cutting a holdout set from training data so that nothing leaks (MISSION C6, F1). No torch here."""

from training.engine.data.splitting.report import SplitReport, StratumCount, Unmet
from training.engine.data.splitting.split import Split, SplitPlan, plan_split, split_examples

__all__ = ["Split", "SplitPlan", "SplitReport", "StratumCount", "Unmet", "plan_split", "split_examples"]
