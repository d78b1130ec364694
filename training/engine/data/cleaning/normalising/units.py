"""Units behind numbers: one spelling, one space."""

import re

_SPELLINGS: dict[str, tuple[str, ...]] = {
    "kg": ("kg", "KG", "Kg"),
    "mg": ("mg",),
    "km": ("km", "KM", "Km"),
    "cm": ("cm", "CM", "Cm"),
    "mm": ("mm",),
    "ml": ("ml", "mL", "ML"),
    "kW": ("kW", "KW", "kw"),
    "kWh": ("kWh", "KWH", "kwh", "KWh"),
    "mAh": ("mAh", "mah", "MAH", "mAH"),
    "kHz": ("kHz", "KHz", "khz", "KHZ"),
    "MHz": ("MHz", "Mhz", "mhz", "MHZ"),
    "GHz": ("GHz", "Ghz", "ghz", "GHZ"),
    "KB": ("KB", "kb", "kB"),
    "MB": ("MB", "mb"),
    "GB": ("GB", "gb"),
    "TB": ("TB", "tb"),
}
# Left out because they mean something else in another spelling or context: g, m, l, G, M, Mb, MM, Mg.
_CANONICAL = {spelling: unit for unit, spellings in _SPELLINGS.items() for spelling in spellings}
_NUMBER = r"[0-9]++(?:\.[0-9]++)?"
# Behind letters or a hyphen it is part of a name, such as RTX4090-24GB.
_QUANTITY = re.compile(
    rf"(?<![A-Za-z0-9_.,/~-])(?P<number>(?:{_NUMBER} ?[-~] ?)?{_NUMBER}) ?"
    rf"(?P<unit>{'|'.join(sorted(_CANONICAL, key=len, reverse=True))})(?![A-Za-z0-9_])"
)
# What the pattern above begins with, tried only where a digit stands.
_ANY = re.compile(rf"[0-9] ?[{''.join(sorted({spelling[0] for spelling in _CANONICAL}))}]")


def unify_units(text: str) -> str:
    """Return the text with ``10KG`` and ``10kg`` as ``10 kg``, for units that have one meaning only."""
    if not _ANY.search(text):
        return text
    return _QUANTITY.sub(lambda found: f"{found['number']} {_CANONICAL[found['unit']]}", text)
