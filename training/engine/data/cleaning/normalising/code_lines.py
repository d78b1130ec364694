"""Lines of code, markup and tables that stand in prose without a fence around them."""

import re

_CODE = re.compile(r"""[{}<>\\=|]|["']\s*:|["']\s*,\s*["']|[(\[]\s*["']""")


def looks_like_code(line: str) -> bool:
    """Return whether a line has signs that prose hardly has: braces, ``=``, ``|``, quoted keys, SQL."""
    return bool(_CODE.search(line)) or ("SELECT " in line and " FROM " in line)
