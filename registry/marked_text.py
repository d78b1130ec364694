"""Marks how one untrusted text differs from another, token by token, as HTML."""

import difflib
import re
from typing import Final

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from registry.visible_text import visible_text

MAX_DIFF_TOKENS: Final = 2000
"""Longer texts are shown without marks: the comparison takes time that grows with the product of the
lengths.
"""

MIN_COMMON_FRACTION: Final = 0.5
"""Below this share of common tokens marks would cover everything and explain nothing."""

_CJK: Final = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af"
_TOKEN: Final = re.compile(rf"[{_CJK}]|[^\W{_CJK}]+|\s+|[^\w\s]")


def mark_tokens(output: str, anchor: str) -> SafeString:
    """The output with the tokens that the anchor lacks in <ins>, and those that only the anchor has in <del>.

    Without marks when the two are very long or have little in common.
    """
    ours, theirs = _TOKEN.findall(output), _TOKEN.findall(anchor)
    if len(ours) > MAX_DIFF_TOKENS or len(theirs) > MAX_DIFF_TOKENS:
        return visible_text(output)
    matcher = difflib.SequenceMatcher(None, theirs, ours)
    if matcher.ratio() < MIN_COMMON_FRACTION:
        return visible_text(output)
    parts: list[SafeString] = []
    for tag, a_from, a_to, b_from, b_to in matcher.get_opcodes():
        lost, own = "".join(theirs[a_from:a_to]), "".join(ours[b_from:b_to])
        if tag == "equal":
            parts.append(visible_text(own))
            continue
        if lost:
            parts.append(format_html("<del>{}</del>", visible_text(lost)))
        if own:
            parts.append(format_html("<ins>{}</ins>", visible_text(own)))
    return format_html_join("", "{}", ((part,) for part in parts))
