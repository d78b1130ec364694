"""Texts as sets of shingles, and a search for similar sets that misses none. No torch here.

Similarity is Jaccard's: shared shingles over all shingles of both texts (Broder, "On the resemblance and
containment of documents", 1997).
"""

import math
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

WORDS_PER_SHINGLE = 3
CHARACTERS_PER_SHINGLE = 5
MIN_CJK_FRACTION = 0.2
"""From this part of its letters on, a text counts as written without spaces between words."""

_WORD = re.compile(r"\w+")
_CJK = re.compile(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff]")


def normalise(text: str) -> str:
    """Return the text for comparison: full width folded (NFKC), case folded, white space collapsed."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def make_shingles(text: str) -> frozenset[str]:
    """Return the shingles of a normalised text: runs of 3 words, or of 5 characters for Chinese, Japanese,
    Korean.

    A text that is shorter than one shingle is one shingle; an empty text has none. The first character tells
    the two kinds apart, so that they never match each other.
    """
    words = _WORD.findall(text)
    letters = "".join(words)
    if not letters:
        return frozenset({f"c{text}"}) if text else frozenset()
    if len(_CJK.findall(letters)) >= MIN_CJK_FRACTION * len(letters):
        last = max(1, len(letters) - CHARACTERS_PER_SHINGLE + 1)
        return frozenset(f"c{letters[i : i + CHARACTERS_PER_SHINGLE]}" for i in range(last))
    last = max(1, len(words) - WORDS_PER_SHINGLE + 1)
    return frozenset(f"w{' '.join(words[i : i + WORDS_PER_SHINGLE])}" for i in range(last))


def jaccard(left: frozenset[str], right: frozenset[str]) -> float:
    """Return the similarity of two sets, 0-1; 0 when both are empty."""
    union = len(left | right)
    return len(left & right) / union if union else 0.0


class SimilarSetIndex:
    """Finds all sets of a collection that are similar to a given one.

    Uses prefix filtering (Chaudhuri et al., 2006; Bayardo et al., "Scaling up all pairs similarity search",
    2007): with shingles in one fixed order, two sets of similarity t share a shingle among their first
    n - ceil(t n) + 1, so only these are indexed, rare ones first. Every candidate is verified; none is
    missed.
    """

    def __init__(self, sets: Sequence[frozenset[str]], *, threshold: float) -> None:
        """Index the sets.

        Args:
            sets: The collection.
            threshold: Smallest similarity of interest, above 0 and at most 1.
        """
        self._sets = sets
        self._threshold = threshold
        self._frequency = Counter(shingle for item in sets for shingle in item)
        self._postings: defaultdict[str, list[int]] = defaultdict(list)
        for number, item in enumerate(sets):
            for shingle in self._prefix(item):
                self._postings[shingle].append(number)

    def find(self, query: frozenset[str]) -> Iterator[tuple[int, float]]:
        """Yield (number of the set, similarity) of each similar set, in order of the numbers."""
        candidates = {number for shingle in self._prefix(query) for number in self._postings.get(shingle, ())}
        for number in sorted(candidates):
            similarity = jaccard(query, self._sets[number])
            if similarity >= self._threshold:
                yield number, similarity

    def _prefix(self, item: frozenset[str]) -> list[str]:
        """Return the shingles that a similar set must share at least one of."""
        # The small number keeps 0.85 * 20 = 17.000000000000004 from being rounded up to 18.
        num_shared = math.ceil(self._threshold * len(item) - 1e-9)
        ordered = sorted(item, key=lambda shingle: (self._frequency[shingle], shingle))
        return ordered[: len(item) - num_shared + 1]
