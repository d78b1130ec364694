"""A text as a set of terms: words, and pairs of neighbouring characters where no spaces part the words."""

import re
import zlib

MAX_CHARACTERS = 8000
"""Read from one text: enough to tell what it is about."""
_CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
_RUN = re.compile(rf"[{_CJK}]+|[^\W{_CJK}]+")
_FIRST_CJK = "\u3040"


def list_terms(text: str) -> dict[str, None]:
    """Return the different terms of a text in order of appearance, in lower case."""
    terms: dict[str, None] = {}
    for match in _RUN.finditer(text[:MAX_CHARACTERS].casefold()):
        run = match.group()
        if run[0] < _FIRST_CJK or len(run) == 1:
            terms[run] = None
        else:
            terms.update((run[place : place + 2], None) for place in range(len(run) - 1))
    return terms


def hash_term(term: str, num_buckets: int) -> int:
    """Return the same bucket for a term in every process, 0 to ``num_buckets`` - 1."""
    return zlib.crc32(term.encode("utf-8", "surrogatepass")) % num_buckets
