"""Comparing ready sets that lie in files."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from training.engine.data.preparation.judging import find_leakage_among, iterate_ready


def compare_files(files: Mapping[str, Path], *, threshold: float) -> dict[str, Any]:
    """Compare all pairs of ready sets.

    Args:
        files: JSONL file or folder by name; ``train`` is the training data, if there is one.
        threshold: Smallest similarity (0-1) of a near duplicate.

    Returns:
        The form of a leakage report; its ``matrix`` lists every pair.

    Raises:
        DataInvalid: A file cannot be read.
    """
    sets = {name: iterate_ready(path) for name, path in files.items()}
    return find_leakage_among(sets, {}, threshold=threshold).to_json()
