"""Which of many texts differ enough from all that were kept before them."""

from collections.abc import Sequence

import numpy as np

from training.engine.data.near_duplicates import FirstsFinder, collect_sets


def find_distinct(texts: Sequence[str], *, threshold: float) -> list[bool]:
    """Return for each text whether no kept text before it has this similarity or more.

    So no two kept texts are similar, and texts that are known to be distinct are all kept when they come
    first.

    Args:
        texts: In the order of their right to stay.
        threshold: Jaccard similarity of shingles, above 0 and at most 1.
    """
    numbers = np.arange(len(texts), dtype=np.int64)
    labels = np.zeros(len(texts), dtype=np.int64)
    firsts = FirstsFinder([collect_sets(texts)], threshold=threshold, labels=labels).find(numbers)
    return [bool(kept) for kept in firsts.first == numbers]
