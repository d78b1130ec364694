"""Judging a training before it runs (MISSION D2): configuration, data, base model and card, by written rules.

Pure functions over `plan.TrainingPlan`; no torch here except in the program that measures rows. A new rule is
a function and a row in the table `RULES` of a module in `rules/`; `catalogue.py` collects them.
"""
