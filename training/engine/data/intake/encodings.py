"""Which encoding a text file is in, found out by strict decoding, and the decoding of its lines.

What is stated wins. Else a byte order mark decides, then the pattern of zero bytes (UTF-16), then whether the
whole file is UTF-8, then whether the whole file is GB18030 and reads like Chinese. A file that is none of
these is refused with the byte where each candidate fails; it is never decoded by the next best guess. A file
of two encodings is read in the one that nearly all lines are in, and the other lines are bad rows.
"""

import codecs
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import BinaryIO

from training.engine.data.intake.rows import FileRefused, RowFault
from training.engine.data.intake.streams import iterate_raw_lines

ENCODING_NAMES = ("utf-8", "utf-16-le", "utf-16-be", "gb18030", "big5", "windows-1252")
"""Encodings that may be stated; only the first four are ever found out."""

MIN_MAIN_FRACTION = 0.9
"""Part of the lines with other than ASCII that must be in one encoding, for a file that mixes two."""
MIN_GB2312_FRACTION = 0.8
"""Chinese in GB18030 is nearly all of GB2312; other encodings misread as GB18030 hit the rare rest."""
MIN_FREQUENT_FRACTION = 0.1
"""The characters listed below are 29 to 53 % of Chinese dialogues and articles (measured), and 3 to 7 % of
Korean and Japanese texts that are misread as GB18030."""
MIN_JUDGED_CHARACTERS = 30

_BLOCK_BYTES = 1 << 20
_SAMPLE_BYTES = 1 << 16
_BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_UTF32_MARKS = (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)
_STATE_IT = (
    f"Save the file as UTF-8, or state its encoding (one of {', '.join(ENCODING_NAMES)}): "
    "rows that are not in it are then bad rows."
)
# A lead byte of three or four: what Chinese, Japanese and Korean need in UTF-8.
_WIDE_UTF8 = re.compile(rb"[\xe0-\xf4]")
_FREQUENT = frozenset(
    "的一是不了在人有我他这个们中来上大为和国地到以说时要就出会可也你对生能而子那得于着下自之年过发后作里"
    "用道行所然家种事成方多经么去法学如都同现当没动面起看定天分还进好小部其些主样理心她本前开但因只从想实"
    "请订单号退款您谢吗\u3001\u3002\uff01\uff0c\uff1a\uff1f"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TextEncoding:
    """How the bytes of one file become text.

    Attributes:
        name: One of ``ENCODING_NAMES``.
        confidence: "stated", "sure" or "likely".
        reason: Why, in one sentence.
        num_bom_bytes: Length of the byte order mark, which is left out.
        is_mixed: Whether some lines are in another encoding; these are bad rows.
    """

    name: str
    confidence: str
    reason: str
    num_bom_bytes: int = 0
    is_mixed: bool = False

    @property
    def codec(self) -> str:
        """Python's name of the encoding."""
        return {"windows-1252": "cp1252", "big5": "cp950"}.get(self.name, self.name)

    @property
    def line_end(self) -> bytes:
        """The line feed as bytes."""
        return "\n".encode(self.codec)

    def decode_line(self, data: bytes, offset: int | None) -> str:
        """Decode one line strictly.

        Args:
            data: The bytes.
            offset: Where they begin in the file, for the message; None when that is not known.

        Raises:
            RowFault: ``undecodable``, or ``mixed-encoding`` when the line is in another encoding than the
                file.
        """
        if data.isascii() and not self.name.startswith("utf-16"):
            return data.decode("ascii")
        try:
            text = data.decode(self.codec)
        except UnicodeDecodeError as error:
            raise self._undecodable(data, error, offset) from error
        self.check_not_other(data)
        return text

    def check_not_other(self, data: bytes) -> None:
        """Refuse a line that decodes by accident, though it is in another encoding.

        Raises:
            RowFault: ``mixed-encoding``.
        """
        # Nearly every line of Chinese in GB18030 fails as UTF-8 within its first characters.
        if self.name == "gb18030" and _is_whole(data, "utf-8") and classify_line(data) == "utf-8":
            message = "is UTF-8 in a file of GB18030; save the whole file in one encoding"
            raise RowFault("mixed-encoding", message)
        if self.name == "utf-8" and self.is_mixed and classify_line(data) == "either":
            message = "could be UTF-8 or GB18030 in a file of both; save the whole file in one encoding"
            raise RowFault("mixed-encoding", message)

    def _undecodable(self, data: bytes, error: UnicodeDecodeError, offset: int | None) -> RowFault:
        other = {"utf-8": "gb18030", "gb18030": "utf-8"}.get(self.name)
        start = error.start
        where = f"{start} of the row" if offset is None else f"{offset + start} of the file"
        what = f"byte 0x{data[start]:02x} at byte {where} is not {self.name}"
        if other and classify_line(data) == other:
            message = f"{what}; the row is in {other}: save the whole file in one encoding"
            return RowFault("mixed-encoding", message)
        return RowFault("undecodable", f"{what}; mend the row at its source")


def classify_line(data: bytes) -> str:
    """Return which of UTF-8 and GB18030 a line can be in.

    Returns:
        "ascii", "utf-8", "gb18030", "either" or "neither". A line that decodes as both is "utf-8" when it
        has sequences of three or four bytes, which real GB18030 hardly ever forms by accident.
    """
    if data.isascii():
        return "ascii"
    is_utf8, is_gb18030 = _is_whole(data, "utf-8"), _is_whole(data, "gb18030")
    if is_utf8 and is_gb18030:
        return "utf-8" if _WIDE_UTF8.search(data) else "either"
    if is_utf8:
        return "utf-8"
    return "gb18030" if is_gb18030 else "neither"


def detect_encoding(
    open_file: Callable[[], BinaryIO],
    *,
    stated: str | None,
    max_line_bytes: int,
    max_bytes: int | None = None,
) -> TextEncoding:
    """Find out the encoding of a file.

    Args:
        open_file: Opens the file's bytes from the beginning; called up to four times.
        stated: Encoding that a person stated; None to find out.
        max_line_bytes: Longer lines take no part in the counting of mixed files.
        max_bytes: Bytes to look at; None looks at all.

    Raises:
        FileRefused: ``encoding-unknown``, ``encoding-unsure``, ``encoding-mixed`` or ``encoding-unread``.
    """
    with open_file() as file:
        head = file.read(_SAMPLE_BYTES)
    marked = _read_mark(head)
    if stated is not None:
        num_bom_bytes = marked.num_bom_bytes if marked and marked.name == stated else 0
        return TextEncoding(name=stated, confidence="stated", reason="stated", num_bom_bytes=num_bom_bytes)
    if head.startswith(_UTF32_MARKS[0]) or head.startswith(_UTF32_MARKS[1]):
        raise FileRefused("encoding-unread", "is UTF-32, which is not read", remedy="Save the file as UTF-8.")
    found = marked or _read_zero_pattern(head)
    if found is not None and found.name != "utf-8":
        return found
    return _survey(open_file, marked, max_line_bytes=max_line_bytes, max_bytes=max_bytes)


def _read_mark(head: bytes) -> TextEncoding | None:
    for mark, name in _BYTE_ORDER_MARKS:
        if head.startswith(mark) and not head.startswith(_UTF32_MARKS[0]):
            reason = f"begins with the byte order mark of {name}"
            return TextEncoding(name=name, confidence="sure", reason=reason, num_bom_bytes=len(mark))
    return None


def _read_zero_pattern(head: bytes) -> TextEncoding | None:
    """Recognise UTF-16 without a mark: ASCII characters put zero bytes at even or at odd places only, other
    characters rarely put one at the other places.
    """
    num_even, num_odd = head[0::2].count(0), head[1::2].count(0)
    num_pairs = len(head) // 2
    if not max(num_even, num_odd) or max(num_even, num_odd) < 5 * min(num_even, num_odd):
        return None
    name = "utf-16-be" if num_even > num_odd else "utf-16-le"
    fraction = max(num_even, num_odd) / num_pairs
    # ASCII in UTF-16 is also UTF-8 with a zero in nearly every pair; a stray NUL character is far rarer.
    min_fraction = 0.5 if _decodes(head, "utf-8") else 0.1 if _decodes(head, "gb18030") else 0.02
    if fraction < min_fraction or not _decodes(head[: 2 * num_pairs], name):
        return None
    reason = f"no byte order mark, but every other byte is zero in {fraction:.0%} of the pairs"
    return TextEncoding(name=name, confidence="likely", reason=reason)


def _survey(
    open_file: Callable[[], BinaryIO],
    marked: TextEncoding | None,
    *,
    max_line_bytes: int,
    max_bytes: int | None,
) -> TextEncoding:
    num_bom_bytes = marked.num_bom_bytes if marked else 0
    extent = "the whole file" if max_bytes is None else "the part looked at"
    utf8_fault, is_ascii = _find_fault(open_file, "utf-8", max_bytes)
    if utf8_fault is None:
        reason = marked.reason if marked else f"{extent} is {'ASCII' if is_ascii else 'valid UTF-8'}"
        return TextEncoding(name="utf-8", confidence="sure", reason=reason, num_bom_bytes=num_bom_bytes)
    tally = _tally_lines(open_file, max_line_bytes, max_bytes)
    if marked:
        reason = f"{marked.reason}, but byte {utf8_fault} is not UTF-8"
        return _utf8_with_bad_lines(tally, reason, num_bom_bytes)
    gb_fault, _ = _find_fault(open_file, "gb18030", max_bytes)
    return _choose_main(tally, utf8_fault, gb_fault, extent)


@dataclass(slots=True)
class _Tally:
    """Lines by what they can be decoded as, and the first characters of those that are only GB18030."""

    ascii: int = 0
    utf8: int = 0
    gb18030: int = 0
    either: int = 0
    neither: int = 0
    chinese: str = ""

    def add(self, data: bytes) -> None:
        kind = classify_line(data)
        name = kind.replace("-", "")
        setattr(self, name, getattr(self, name) + 1)
        if kind == "gb18030" and len(self.chinese) < _SAMPLE_BYTES:
            text = data.decode("gb18030")
            self.chinese += "".join(character for character in text if not character.isascii())

    def __str__(self) -> str:
        return f"{self.utf8} lines are UTF-8, {self.gb18030} GB18030, {self.neither} neither"


def _utf8_with_bad_lines(tally: _Tally, reason: str, num_bom_bytes: int = 0) -> TextEncoding:
    return TextEncoding(
        name="utf-8",
        confidence="likely",
        reason=reason,
        num_bom_bytes=num_bom_bytes,
        is_mixed=tally.gb18030 > 0,
    )


def _choose_main(tally: _Tally, utf8_fault: int, gb_fault: int | None, extent: str) -> TextEncoding:
    """Choose the encoding of nearly all lines, or refuse."""
    total = tally.utf8 + tally.gb18030 + tally.either + tally.neither
    # Where no line is in a second encoding, half is enough: the others are damaged, not misread.
    min_fraction = MIN_MAIN_FRACTION if tally.gb18030 else 0.5
    if tally.utf8 and tally.utf8 + tally.either >= min_fraction * total:
        return _utf8_with_bad_lines(tally, f"nearly all of it: {tally}; first fault at byte {utf8_fault}")
    doubt = doubt_chinese(tally.chinese)
    if not doubt and tally.gb18030 + tally.either >= MIN_MAIN_FRACTION * total:
        all_of_it = f"{extent} is valid GB18030 and reads like Chinese"
        reason = f"nearly all of it: {tally}" if gb_fault is not None else all_of_it
        reason = f"not UTF-8 from byte {utf8_fault} on; {reason}"
        return TextEncoding(name="gb18030", confidence="likely", reason=reason)
    if tally.utf8 and tally.gb18030 and not doubt:
        raise FileRefused("encoding-mixed", f"holds several encodings: {tally}", remedy=_STATE_IT)
    if gb_fault is None:
        message = f"is not UTF-8 (byte {utf8_fault}); it decodes as GB18030, but {doubt}"
        raise FileRefused("encoding-unsure", message, remedy=_STATE_IT)
    message = f"is not UTF-8 (byte {utf8_fault}) and not GB18030 (byte {gb_fault})"
    raise FileRefused("encoding-unknown", message, remedy=_STATE_IT)


def doubt_chinese(text: str) -> str:
    """Return why a text decoded as GB18030 does not read like Chinese; "" when it does."""
    characters = [character for character in text if not character.isascii()]
    if not characters:
        return "no line is only GB18030"
    num_gb2312 = len("".join(characters).encode("gb2312", "ignore")) // 2
    if num_gb2312 < MIN_GB2312_FRACTION * len(characters):
        return f"only {num_gb2312} of {len(characters)} characters are common in Chinese"
    num_frequent = sum(character in _FREQUENT for character in characters)
    if len(characters) >= MIN_JUDGED_CHARACTERS and num_frequent < MIN_FREQUENT_FRACTION * len(characters):
        return f"only {num_frequent} of {len(characters)} characters are among the most frequent of Chinese"
    return ""


def _is_whole(data: bytes, name: str) -> bool:
    """Return whether bytes decode to their end."""
    try:
        data.decode(name)
    except UnicodeDecodeError:
        return False
    return True


def _decodes(data: bytes, name: str) -> bool:
    """Return whether bytes decode that may end inside a character."""
    try:
        codecs.getincrementaldecoder(name)().decode(data)
    except UnicodeDecodeError:
        return False
    return True


def _find_fault(
    open_file: Callable[[], BinaryIO], name: str, max_bytes: int | None
) -> tuple[int | None, bool]:
    """Return (byte where the strict decoding fails or None, whether all of it is ASCII)."""
    decoder = codecs.getincrementaldecoder(name)()
    position, is_ascii = 0, True
    with open_file() as file:
        while max_bytes is None or position < max_bytes:
            block = file.read(_BLOCK_BYTES)
            num_waiting = len(decoder.getstate()[0])
            is_ascii = is_ascii and block.isascii()
            try:
                decoder.decode(block, final=not block)
            except UnicodeDecodeError as error:
                return position - num_waiting + error.start, False
            if not block:
                break
            position += len(block)
    return None, is_ascii


def _tally_lines(open_file: Callable[[], BinaryIO], max_line_bytes: int, max_bytes: int | None) -> _Tally:
    """Classify the lines, and of lines that are too long their beginnings."""
    tally = _Tally()
    with open_file() as file:
        for line in iterate_raw_lines(file, max_bytes=max_line_bytes):
            if max_bytes is not None and line.offset >= max_bytes:
                break
            tally.add(line.data if line.data is not None else _whole_characters(line.head))
    return tally


def _whole_characters(head: bytes) -> bytes:
    """Return the beginning of a line up to its last ASCII character, which ends inside none."""
    end = max(head.rfind(character) for character in (b'"', b" ", b","))
    return head[: end + 1]
