"""Versions of the code behind each kind of job; part of a job's cache key.

Raise a number when a change of the engine can change a result: earlier outputs are then no longer looked up.
"""

CHECK = "check@2"
MERGE = "merge@2"
EVALUATE = "evaluate@1"
TRIAGE = "triage@1"
