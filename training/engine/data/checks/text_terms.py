"""A text as a set of terms: words, and pairs of neighbouring characters where no spaces part the words."""

import re
import zlib
from functools import lru_cache

MAX_CHARACTERS = 8000
"""Read from one text: enough to tell what it is about."""
_CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
_RUN = re.compile(rf"[{_CJK}]+|[^\W{_CJK}]+")
_FIRST_CJK = "\u3040"
_MAX_REMEMBERED = 1 << 16


def list_terms(text: str) -> dict[str, None]:
    """Return the different terms of a text in order of appearance, in lower case."""
    runs = _RUN.findall(text[:MAX_CHARACTERS].casefold())
    if text.isascii():
        return dict.fromkeys(runs)
    terms: dict[str, None] = {}
    for run in runs:
        if run[0] < _FIRST_CJK or len(run) == 1:
            terms[run] = None
        else:
            terms.update((run[place : place + 2], None) for place in range(len(run) - 1))
    return terms


def hash_term(term: str, num_buckets: int) -> int:
    """Return the same bucket for a term in every process, 0 to ``num_buckets`` - 1."""
    return _hash_term(term) % num_buckets


# Texts repeat their words, which are hashed for several numbers of buckets.
@lru_cache(maxsize=_MAX_REMEMBERED)
def _hash_term(term: str) -> int:
    return zlib.crc32(term.encode("utf-8", "surrogatepass"))
