"""All pairs by comparing everything with everything, over the definition of shingles as texts."""

from collections.abc import Sequence

import numpy as np
from scipy import sparse

from training.engine.data.shingles import make_shingles, normalise


def find_all_pairs(texts: Sequence[str], threshold: float) -> list[tuple[int, int, float]]:
    if not texts:
        return []
    sets = [make_shingles(normalise(text)) for text in texts]
    numbers: dict[str, int] = {}
    columns = [numbers.setdefault(shingle, len(numbers)) for item in sets for shingle in item]
    sizes = np.array([len(item) for item in sets], dtype=np.int64)
    rows = np.repeat(np.arange(len(sets)), sizes)
    ones = np.ones(len(columns), dtype=np.int64)
    matrix = sparse.csr_matrix((ones, (rows, columns)), shape=(len(sets), max(len(numbers), 1)))
    shared = sparse.triu(matrix @ matrix.T, k=1).tocoo()
    similarity = shared.data / (sizes[shared.row] + sizes[shared.col] - shared.data)
    chosen = similarity >= threshold
    return sorted(
        zip(
            shared.row[chosen].tolist(),
            shared.col[chosen].tolist(),
            similarity[chosen].tolist(),
            strict=True,
        )
    )
