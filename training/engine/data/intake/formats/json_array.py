"""A JSON file that is one list of rows, at the top or under ``data``, read element by element.

The list is never held: an element is parsed where it lies in a bounded buffer. An element that is too long or
broken is passed over by following its brackets and strings, and reported.
"""

import codecs
import re
from collections.abc import Iterator
from typing import BinaryIO

from registry.artifacts.findings import shown, shown_list
from training.engine.data.intake.encodings import TextEncoding
from training.engine.data.intake.formats.text_file import TextFile
from training.engine.data.intake.rows import FileRefused, RawRow, RowFault, UnreadableRow, make_excerpt
from training.engine.data.intake.strict_json import as_row, check_decoded, decode_at, parse_row, parse_value

DATA_KEY = "data"

_BLOCK_BYTES = 1 << 18
_MAX_OTHER_KEYS = 100
_NOT_SPACE = re.compile(r"[^ \t\n\r]")
_OUTSIDE = re.compile(r'["\[\]{},]')
_INSIDE = re.compile(r'[\\"]')
_ESCAPED_BYTES = re.compile("[\udc80-\udcff]")


def read_json_array(file: TextFile) -> Iterator[RawRow | UnreadableRow]:
    """Yield the elements of the list that the file is, or that its key ``data`` holds.

    Args:
        file: With its encoding and limits; about one element of the longest allowed length is held.

    Raises:
        FileRefused: ``json-not-a-list``, ``json-broken`` (with the row after which the list breaks off),
            ``undecodable``, or the decompression fails.
        OSError: The file cannot be read.
    """
    with file.open() as raw:
        window = _Window(raw, file.encoding, file.limits.max_line_bytes)
        skipper = _KeySkipper(window, file)
        skipper.enter_list()
        yield from _iterate_elements(window, file)
        skipper.leave()


def _iterate_elements(window: "_Window", file: TextFile) -> Iterator[RawRow | UnreadableRow]:
    number = 0
    first = window.peek()
    while first != "]":
        number += 1
        yield _read_element(window, file, number)
        first = window.peek()
        if first == ",":
            window.take()
            first = window.peek()
            if first in (",", "]"):
                raise _broken(number, "a comma is not followed by an element")
        elif first != "]":
            raise _broken(
                number, "the list breaks off" if not first else f"{shown(first)!r} follows an element"
            )
    window.take()


def _read_element(window: "_Window", file: TextFile, number: int) -> RawRow | UnreadableRow:
    max_bytes, max_depth = file.limits.max_line_bytes, file.limits.max_json_depth
    found = decode_at(window.text, window.place)
    # A value that ends with the buffer may go on: a number, or a name misspelt.
    if found is not None and found[1] < len(window.text):
        value, end = found
        text = window.text[window.place : end]
        window.place = end
    else:
        value = None
        text, num_characters = window.take_value()
        if num_characters > len(text):
            return UnreadableRow(number, file.too_long(num_characters), "", make_excerpt(text))
    try:
        _check_length(text, file)
        _check_encoding(text, file.encoding)
        if value is None:
            return RawRow(number, parse_row(text, max_depth=max_depth))
        check_decoded(text, value, max_depth=max_depth)
        return RawRow(number, as_row(value))
    except RowFault as fault:
        return UnreadableRow(number, fault, "", make_excerpt(text[:max_bytes]))


def _check_length(text: str, file: TextFile) -> None:
    if 4 * len(text) > file.limits.max_line_bytes:
        num_bytes = len(text.encode("utf-8", "surrogatepass"))
        if num_bytes > file.limits.max_line_bytes:
            raise file.too_long(num_bytes)


def _check_encoding(text: str, encoding: TextEncoding) -> None:
    if text.isascii() or encoding.name.startswith("utf-16"):
        return
    if _ESCAPED_BYTES.search(text):
        encoding.decode_line(text.encode(encoding.codec, "surrogateescape"), None)
    if encoding.name == "gb18030" or encoding.is_mixed:
        encoding.check_not_other(text.encode(encoding.codec, "surrogateescape"))


def _broken(number: int, what: str) -> FileRefused:
    message = f"after row {number} {what}: the rest cannot be read as a list"
    return FileRefused("json-broken", message, remedy="Write the file again, best as JSONL.")


class _KeySkipper:
    """Finds the list: at the top, or under ``data`` of a top object, whose other keys are passed over."""

    def __init__(self, window: "_Window", file: TextFile) -> None:
        self._window = window
        self._file = file
        self._is_object = False
        self._keys: list[str] = []

    def enter_list(self) -> None:
        first = self._window.peek()
        if first == "[":
            self._window.take()
            return
        if first != "{":
            raise self._not_a_list("is neither a list nor an object")
        self._window.take()
        self._is_object = True
        if not self._pass_keys(wanted=DATA_KEY):
            raise self._not_a_list(f'is one object without a list under "{DATA_KEY}"')

    def leave(self) -> None:
        """Read on to the end, so that a cut or continued file is noticed."""
        if self._is_object:
            if self._window.peek() == ",":
                self._window.take()
                self._pass_keys(wanted=None)
            elif self._window.take() != "}":
                raise self._not_a_list("breaks off after its list")
        if self._window.peek():
            raise self._not_a_list("goes on after its end")

    def _pass_keys(self, *, wanted: str | None) -> bool:
        """Pass over keys and values; stop inside the wanted list (True) or after the object (False)."""
        window = self._window
        if window.peek() == "}":
            window.take()
            return False
        while len(self._keys) <= _MAX_OTHER_KEYS:
            key = self._read_key()
            if key == wanted and window.peek() == "[":
                window.take()
                return True
            self._keys.append(key)
            window.take_value()
            after = window.peek()
            window.take()
            if after == "}":
                return False
            if after != ",":
                raise self._not_a_list("breaks off between its keys")
        raise self._not_a_list(f"has more than {_MAX_OTHER_KEYS} keys")

    def _read_key(self) -> str:
        if self._window.peek() != '"':
            raise self._not_a_list("has something else than a key where a key must be")
        text, num_characters = self._window.take_value()
        try:
            key = parse_value(text, max_depth=1) if num_characters == len(text) else None
        except RowFault as fault:
            raise self._not_a_list(f"has a key that is {fault.message}") from fault
        if not isinstance(key, str) or self._window.peek() != ":":
            raise self._not_a_list("has a key without a value")
        self._window.take()
        return key

    def _not_a_list(self, what: str) -> FileRefused:
        seen = f"; keys seen: {shown_list(self._keys)}" if self._keys else ""
        remedy = f'Write one list of objects, or {{"{DATA_KEY}": [...]}}, or JSONL.'
        return FileRefused("json-not-a-list", f"{what}{seen}", remedy=remedy)


class _Window:
    """A bounded part of the file's text, from ``place`` on not yet used."""

    def __init__(self, file: BinaryIO, encoding: TextEncoding, max_characters: int) -> None:
        file.read(encoding.num_bom_bytes)
        errors = "surrogatepass" if encoding.name.startswith("utf-16") else "surrogateescape"
        self._decoder = codecs.getincrementaldecoder(encoding.codec)(errors)
        self._name = encoding.name
        self._file = file
        self._max_characters = max_characters
        self._is_finished = False
        self.text = ""
        self.place = 0

    def peek(self) -> str:
        """Return the next character that is no white space, "" at the end."""
        while True:
            found = _NOT_SPACE.search(self.text, self.place)
            if found:
                self.place = found.start()
                return found[0]
            self.place = len(self.text)
            if not self._read_more():
                return ""

    def take(self) -> str:
        """Pass over the next character and return it."""
        self.place += 1
        return self.text[self.place - 1 : self.place]

    def take_value(self) -> tuple[str, int]:
        """Pass over one value by its brackets and strings, whatever is wrong inside.

        Returns:
            Its text, cut when it is longer than allowed, and its whole length in characters.
        """
        scan = _ValueScan()
        head, num_dropped, searched = "", 0, self.place
        while True:
            searched, is_over = scan.advance(self.text, searched)
            if is_over:
                break
            if searched - self.place > self._max_characters:
                head = head or self.text[self.place : self.place + self._max_characters]
                num_dropped += searched - self.place
                self.place = searched
            searched -= self.place
            if not self._read_more():
                searched = len(self.text)
                break
        text, length = self.text[self.place : searched], num_dropped + searched - self.place
        self.place = searched
        return (head if num_dropped else text), length

    def _read_more(self) -> bool:
        """Read the next part of the file behind what is not yet used; the used part is forgotten."""
        if self._is_finished:
            self.text, self.place = self.text[self.place :], 0
            return False
        block = self._file.read(_BLOCK_BYTES)
        self._is_finished = not block
        try:
            more = self._decoder.decode(block, final=self._is_finished)
        except UnicodeDecodeError as error:
            message = f"cannot be decoded as {self._name}: {error.reason}"
            raise FileRefused("undecodable", message, remedy="State the encoding, or write JSONL.") from error
        self.text, self.place = self.text[self.place :] + more, 0
        return not self._is_finished or bool(more)


class _ValueScan:
    """Follows brackets and strings to the end of one value, over several parts of a text."""

    def __init__(self) -> None:
        self._depth = 0
        self._is_string = False

    def advance(self, text: str, start: int) -> tuple[int, bool]:
        """Return (place up to which the text was followed, whether the value ends there)."""
        while True:
            found = (_INSIDE if self._is_string else _OUTSIDE).search(text, start)
            if found is None:
                return len(text), False
            mark, start = found[0], found.end()
            if mark == "\\":
                if start == len(text):
                    return found.start(), False
                start += 1
            elif mark == '"':
                self._is_string = not self._is_string
                if not self._is_string and self._depth == 0:
                    return start, True
            elif mark in "[{":
                self._depth += 1
            elif self._depth == 0:
                return found.start(), True
            elif mark != ",":
                self._depth -= 1
                if self._depth == 0:
                    return start, True
