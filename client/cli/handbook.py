"""`assay handbook`: symptoms of a training or its model, their usual causes, and what to do first."""

import json
from typing import Annotated

import typer
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from client.cli.options import JsonOption
from client.cli.session import session_of
from client.errors import UsageError
from client.incidents import HandbookRow, Incidents
from client.reports.text import make_table, safe
from client.safe_text import visible

LANGUAGES = ("en", "zh")


def handbook(
    context: typer.Context,
    code: Annotated[str | None, typer.Argument(metavar="[CODE]", help="Row to show in full.")] = None,
    language: Annotated[str, typer.Option(help=f"One of {', '.join(LANGUAGES)}.")] = "en",
    as_json: JsonOption = False,
) -> None:
    """Show the troubleshooting handbook, or one of its rows: symptom, usual causes, what to do first."""
    if language not in LANGUAGES:
        raise UsageError("language-unknown", f"'{language}' is none of {', '.join(LANGUAGES)}.")
    session = session_of(context)
    with session.open_api() as api:
        incidents = Incidents(api.http)
        if code is None:
            rows = list(incidents.iterate_handbook(language))
        else:
            rows = [incidents.get_handbook_row(code, language)]
    if as_json:
        documents = [row.document for row in rows]
        shown = documents if code is None else documents[0]
        session.output.document(json.dumps(shown, indent=2, ensure_ascii=False) + "\n")
    elif code is None:
        session.output.result(_list_rows(rows))
    else:
        session.output.result(_show_row(rows[0]))


def _list_rows(rows: list[HandbookRow]) -> RenderableType:
    table = make_table(
        ("row", "class", "symptom", "first treatment", "seen"), right_aligned=frozenset({"seen"})
    )
    for row in rows:
        first = row.treatment[0] if row.treatment else "-"
        cells = (row.code, row.symptom_class, row.symptom, first, str(row.num_incidents))
        table.add_row(*map(safe, cells))
    return table


def _show_row(row: HandbookRow) -> Group:
    parts: list[RenderableType] = [
        Text.assemble((visible(row.code), "bold"), f" ({visible(row.symptom_class)})"),
        safe(row.symptom),
        "",
        safe("Usual causes"),
        *(Padding(safe(f"- {cause}"), (0, 0, 0, 2)) for cause in row.causes),
        safe("What to do, in this order"),
        *(
            Padding(safe(f"{number}. {step}"), (0, 0, 0, 2))
            for number, step in enumerate(row.treatment, start=1)
        ),
        "",
        safe(f"recognised by: {', '.join(row.detectors) or 'people only'}"),
        safe(f"incidents: {row.num_incidents}"),
    ]
    if row.source:
        parts.append(safe(f"source: {row.source}"))
    if row.origin != "shipped" or row.is_edited:
        parts.append(safe("written by people of this server"))
    return Group(*parts)
