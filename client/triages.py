"""Triages: the files that a person writes, the calls of the server, and its answers as frozen values."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

from client.errors import ErrorDetail, UsageError
from client.http import AssayHttp
from client.json_fields import Fields
from client.run_models import Run
from client.suite_folder import read_json_object
from registry.artifacts.findings import shown

KINDS = ("format", "style", "unknown-fact", "calculation", "missing-capability", "correct")
"""What a person may say of a sample."""

MAX_FILE_BYTES = 4 * 2**20
"""As much as a request may hold."""

_MAX_LISTED_FAULTS = 20
_SORTED_STATES = ("sorted", "closed")


@dataclass(frozen=True, slots=True, kw_only=True)
class TriageItem:
    """One sample. ``rule_kind`` and ``confirmed_kind`` are "" where there is none; ``evidence`` is what the
    surest rule says.
    """

    position: int
    sample_id: str
    outcome: str
    rule_kind: str
    confidence: float
    confirmed_kind: str
    evidence: str
    etag: str

    @classmethod
    def from_json(cls, value: object) -> "TriageItem":
        """Read one sample."""
        fields = Fields.of(value, "sample")
        sorting = fields.nested("details").optional_nested("sorting")
        signals = () if sorting is None else sorting.objects("signals")
        return cls(
            position=fields.integer("position"),
            sample_id=fields.text("sample_id"),
            outcome=fields.text("outcome"),
            rule_kind=fields.text("rule_kind"),
            confidence=fields.optional_number("confidence") or 0.0,
            confirmed_kind=fields.text("confirmed_kind"),
            evidence=signals[0].text("message") if signals else "",
            etag=fields.text("etag"),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Triage:
    """A triage. ``run`` tells it in the words of runs; ``page`` is the address of its page."""

    id: str
    state: str
    page: str
    run: Run
    verdict: Fields | None
    summary: Fields | None
    document: Mapping[str, object] = field(repr=False)

    @classmethod
    def from_json(cls, value: object) -> "Triage":
        """Read one triage."""
        fields = Fields.of(value, "triage")
        state = fields.text("state")
        words = {**fields.source, "state": "succeeded" if state in _SORTED_STATES else state}
        return cls(
            id=fields.text("id"),
            state=state,
            page=fields.nested("links").text("page"),
            run=Run.from_json(words),
            verdict=fields.optional_nested("verdict"),
            summary=fields.optional_nested("summary"),
            document=fields.source,
        )


class Triages:
    """The calls of ``/api/v1/triages``. Every method may raise the errors of ``AssayHttp.request``."""

    def __init__(self, http: AssayHttp) -> None:
        self._http = http

    def create(self, body: Mapping[str, object]) -> Triage:
        """Begin a triage."""
        return Triage.from_json(self._http.post_json("triages", body))

    def get(self, triage_id: str) -> Triage:
        """Return a triage."""
        return Triage.from_json(self._http.get_json(f"triages/{_segment(triage_id)}"))

    def iterate_items(self, triage_id: str) -> Iterator[TriageItem]:
        """Yield the samples in their order; none before they are sorted."""
        pages = self._http.iterate_pages(f"triages/{_segment(triage_id)}/items")
        return (TriageItem.from_json(item) for item in pages)

    def confirm(self, triage_id: str, item: TriageItem, *, kind: str, note: str) -> None:
        """Say what a sample lacks, if it is still as it was seen."""
        self._http.request(
            "PUT",
            f"triages/{_segment(triage_id)}/items/{item.position}",
            body={"kind": kind, "note": note},
            headers={"If-Match": f'"{item.etag}"'},
        )

    def close(self, triage_id: str, *, allow_unconfirmed: bool) -> Triage:
        """Store the verdict."""
        body = {"allow_unconfirmed": allow_unconfirmed}
        return Triage.from_json(self._http.post_json(f"triages/{_segment(triage_id)}/close", body))


def read_samples(path: Path) -> list[object]:
    """Return the JSON values of a JSON Lines file; what they mean is checked by the server.

    Raises:
        UsageError: The file cannot be read, or lines are no JSON; all of them are named.
    """
    samples: list[object] = []
    faults: list[ErrorDetail] = []
    for number, line in enumerate(_read_text(path).split("\n"), start=1):
        if not line.strip():
            continue
        try:
            samples.append(json.loads(line))
        except (ValueError, RecursionError) as error:
            where = f"{path.name} line {number}"
            faults.append(ErrorDetail(code="not-json", message=f"is no JSON value: {error}", where=where))
    if faults:
        raise UsageError(
            "samples-invalid",
            f"{shown(path)} has {len(faults)} lines that are no JSON.",
            details=tuple(faults[:_MAX_LISTED_FAULTS]),
        )
    return samples


def read_prompts(paths: Sequence[Path]) -> list[dict[str, object]]:
    """Return the prompts of files: ``.json`` with system_prompt and few_shot, else the system prompt itself.

    A prompt is called as its file without the ending.

    Raises:
        UsageError: A file cannot be read or holds no JSON object.
    """
    return [
        {"name": path.stem, **read_json_object(path)}
        if path.suffix == ".json"
        else {"name": path.stem, "system_prompt": _read_text(path).strip()}
        for path in paths
    ]


def _read_text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            content = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise UsageError(
            "file-unreadable", f"{shown(path)} cannot be read: {error.strerror or error}."
        ) from error
    if len(content) > MAX_FILE_BYTES:
        raise UsageError("file-too-large", f"{shown(path)} has more than {MAX_FILE_BYTES} bytes.")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError("file-not-utf-8", f"{shown(path)} is not UTF-8.") from error


def _segment(text: str) -> str:
    """Quote one path segment."""
    return quote(text, safe="")
