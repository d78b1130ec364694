"""The handbook and the incident register: the calls of the server, and its answers as frozen values."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from urllib.parse import quote

from client.errors import UnexpectedAnswerError
from client.http import AssayHttp
from client.json_fields import Fields


@dataclass(frozen=True, slots=True, kw_only=True)
class HandbookRow:
    """A row of the handbook in one language; lists begin with what comes first."""

    code: str
    symptom_class: str
    symptom: str
    causes: tuple[str, ...]
    treatment: tuple[str, ...]
    detectors: tuple[str, ...]
    source: str
    origin: str
    is_edited: bool
    num_incidents: int
    document: Mapping[str, object] = field(repr=False)

    @classmethod
    def from_json(cls, value: object) -> "HandbookRow":
        """Read one row."""
        fields = Fields.of(value, "handbook row")
        return cls(
            code=fields.text("code"),
            symptom_class=fields.text("symptom_class"),
            symptom=fields.text("symptom"),
            causes=fields.texts("causes"),
            treatment=fields.texts("treatment"),
            detectors=fields.texts("detectors"),
            source=fields.text("source"),
            origin=fields.text("origin"),
            is_edited=fields.boolean("is_edited"),
            num_incidents=fields.integer("num_incidents"),
            document=fields.source,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Incident:
    """An incident. ``check_question`` is None when nothing is asked, or in a list; ``page`` is an address."""

    number: int
    title: str
    state: str
    symptom: str | None
    opened_by: str
    training_run: str | None
    evaluation_run: str
    first_step: int | None
    fingerprint: str
    found: str
    cause: str
    fix: str
    opened_at: str
    closed_at: str | None
    asks_for_check: bool
    check_answer: str
    check_text: str
    check_question: str | None
    etag: str
    page: str
    document: Mapping[str, object] = field(repr=False)

    @classmethod
    def from_json(cls, value: object) -> "Incident":
        """Read one incident."""
        fields = Fields.of(value, "incident")
        return cls(
            number=fields.integer("number"),
            title=fields.text("title"),
            state=fields.text("state"),
            symptom=fields.optional_text("symptom"),
            opened_by=fields.text("opened_by"),
            training_run=fields.optional_text("training_run"),
            evaluation_run=fields.text("evaluation_run"),
            first_step=fields.optional_integer("first_step"),
            fingerprint=fields.text("fingerprint"),
            found=fields.text("found"),
            cause=fields.text("cause"),
            fix=fields.text("fix"),
            opened_at=fields.text("opened_at"),
            closed_at=fields.optional_text("closed_at"),
            asks_for_check=fields.boolean("asks_for_check"),
            check_answer=fields.text("check_answer"),
            check_text=fields.text("check_text"),
            check_question=fields.optional_text("check_question"),
            etag=fields.text("etag"),
            page=fields.nested("links").text("page"),
            document=fields.source,
        )

    @property
    def waits_for_check(self) -> bool:
        """Whether the question for a check has no answer yet."""
        return self.asks_for_check and not self.check_answer


@dataclass(frozen=True, slots=True, kw_only=True)
class IncidentEntry:
    """A line in the log of an incident. ``detector`` is "" for what people wrote."""

    at: str
    actor: str
    kind: str
    detector: str
    text: str

    @classmethod
    def from_json(cls, value: object) -> "IncidentEntry":
        """Read one line."""
        fields = Fields.of(value, "line of the log")
        return cls(
            at=fields.text("at"),
            actor=fields.text("actor"),
            kind=fields.text("kind"),
            detector=fields.text("detector"),
            text=fields.text("text"),
        )


class Incidents:
    """The calls of ``/api/v1/handbook`` and ``/api/v1/incidents``.

    Every method may raise the errors of ``AssayHttp.request``.
    """

    def __init__(self, http: AssayHttp) -> None:
        self._http = http

    def iterate_handbook(self, language: str) -> Iterator[HandbookRow]:
        """Yield the rows of the handbook in their order."""
        pages = self._http.iterate_pages("handbook", {"language": language})
        return (HandbookRow.from_json(row) for row in pages)

    def get_handbook_row(self, code: str, language: str) -> HandbookRow:
        """Return one row of the handbook."""
        path = f"handbook/{quote(code, safe='')}"
        return HandbookRow.from_json(self._http.get_json(path, {"language": language}))

    def open(self, body: Mapping[str, object]) -> Incident:
        """Open an incident."""
        return Incident.from_json(self._http.post_json("incidents", body))

    def get(self, number: int) -> Incident:
        """Return an incident."""
        return Incident.from_json(self._http.get_json(f"incidents/{number}"))

    def list(
        self, *, state: str | None, symptom: str | None, asks_for_check: bool | None, limit: int
    ) -> list[Incident]:
        """Return incidents, the newest first."""
        query = {"state": state, "symptom": symptom, "asks_for_check": asks_for_check}
        return [
            Incident.from_json(row) for row in islice(self._http.iterate_pages("incidents", query), limit)
        ]

    def iterate_entries(self, number: int) -> Iterator[IncidentEntry]:
        """Yield the log of an incident, the oldest line first."""
        pages = self._http.iterate_pages(f"incidents/{number}/entries")
        return (IncidentEntry.from_json(entry) for entry in pages)

    def note(self, number: int, text: str) -> None:
        """Note a step that was taken."""
        self._http.post_json(f"incidents/{number}/entries", {"text": text})

    def change(self, incident: Incident, action: str, body: Mapping[str, object]) -> Incident:
        """Change an incident, if it is still as it was seen.

        Args:
            incident: As it was seen.
            action: "investigate", "resolve", "dismiss" or "check".
            body: Of the action.
        """
        path = f"incidents/{incident.number}/{action}"
        return Incident.from_json(self._http.post_json(path, body, if_match=f'"{incident.etag}"'))

    def review_quarter(self, quarter: str | None) -> object:
        """Return the review of a quarter (None: of the present one) as JSON."""
        return self._http.get_json("incidents/quarterly", {"quarter": quarter})

    def report_quarter(self, quarter: str | None) -> str:
        """Return the review of a quarter as Markdown.

        Raises:
            UnexpectedAnswerError: The answer is no text.
        """
        response = self._http.request("GET", "incidents/quarterly/report", params={"quarter": quarter})
        try:
            return response.content.decode("utf-8")
        except UnicodeDecodeError as error:
            raise UnexpectedAnswerError("unexpected-answer", "The server's report is not UTF-8.") from error
