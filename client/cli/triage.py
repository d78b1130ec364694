"""`assay triage`: what a base model lacks for a task, before anything is trained.

`assay triage SAMPLES --prompt FILE` runs samples on the server; `show`, `confirm` and `close` look at the
result, say what a sample lacks, and store the verdict.
"""

import json
from pathlib import Path
from typing import Annotated, Any, ClassVar

import typer
from typer.core import TyperGroup

from client.cli.base_choice import choose_base_model
from client.cli.console import Output
from client.cli.following import follow_run
from client.cli.options import JsonOption, TimeoutOption
from client.cli.run_results import end_run
from client.cli.session import Session, session_of
from client.errors import UsageError
from client.json_fields import Fields
from client.reports.text import make_table, safe
from client.suite_folder import read_json_object
from client.triages import KINDS, Triage, TriageItem, Triages, read_prompts, read_samples

TriageArgument = Annotated[str, typer.Argument(metavar="TRIAGE", help="Id of the triage.")]


class _TriageGroup(TyperGroup):
    """Takes a first word that is no command as the samples of `run`."""

    default_command: ClassVar[str] = "run"

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args and self.get_command(ctx, args[0]) is None and not args[0].startswith("-"):
            args = [self.default_command, *args]
        return super().resolve_command(ctx, args)


triage_app = typer.Typer(
    cls=_TriageGroup,
    no_args_is_help=True,
    help="Find out what a base model lacks for a task: assay triage SAMPLES --prompt FILE --base NAME",
)


@triage_app.command("run")
def run_command(
    context: typer.Context,
    samples: Annotated[
        Path,
        typer.Argument(metavar="SAMPLES", exists=True, dir_okay=False, help="About 20 examples, JSON Lines."),
    ],
    prompt: Annotated[
        list[Path],
        typer.Option(
            exists=True,
            dir_okay=False,
            help="System prompt, or JSON with system_prompt and few_shot; repeat, and the best is taken.",
        ),
    ],
    base: Annotated[
        str | None, typer.Option(help="Registered base model; may be omitted where there is only one.")
    ] = None,
    schema: Annotated[
        Path | None, typer.Option(exists=True, dir_okay=False, help="JSON Schema of a right answer.")
    ] = None,
    max_tokens: Annotated[int, typer.Option(min=1, help="Longest answer, in tokens.")] = 512,
    name: Annotated[str | None, typer.Option(help="Name of the triage; else the file's.")] = None,
    wait: Annotated[
        bool, typer.Option("--wait/--no-wait", help="Wait until the failures are sorted.")
    ] = True,
    timeout: TimeoutOption = None,
    as_json: JsonOption = False,
) -> None:
    """Run samples on a base model under one or several prompts, and sort the failures by what they lack."""
    session = session_of(context)
    body: dict[str, object] = {
        "name": name or samples.stem,
        "samples": read_samples(samples),
        "prompts": read_prompts(prompt),
        "max_tokens": max_tokens,
    }
    if schema is not None:
        body["output_schema"] = read_json_object(schema)
    with session.open_api() as api:
        triages = Triages(api.http)
        triage = triages.create({**body, "base_model": choose_base_model(api, base)})
        session.output.notice(f"triage {triage.id}")
        if wait and not triage.run.is_final:
            follow_run(
                session,
                lambda: triages.get(triage.id).run,
                advice=f"Look at it with: assay triage show {triage.id}",
                timeout_seconds=timeout,
            )
        _end(session, triages, triages.get(triage.id), as_json=as_json)


@triage_app.command("show")
def show_command(context: typer.Context, triage_id: TriageArgument, as_json: JsonOption = False) -> None:
    """Show a triage: prompts, failures with their evidence, verdict."""
    session = session_of(context)
    with session.open_api() as api:
        triages = Triages(api.http)
        _end(session, triages, triages.get(triage_id), as_json=as_json)


@triage_app.command("confirm")
def confirm_command(
    context: typer.Context,
    triage_id: TriageArgument,
    item: Annotated[str, typer.Argument(metavar="ITEM", help="Number or id of the sample.")],
    kind: Annotated[str, typer.Option("--class", metavar="CLASS", help=f"One of {', '.join(KINDS)}.")],
    note: Annotated[str, typer.Option(help="For whoever reads the verdict.")] = "",
) -> None:
    """Say what a sample lacks, be it what the rules say or something else; "none" takes it back."""
    if kind not in (*KINDS, "none"):
        raise UsageError("class-unknown", f"'{kind}' is none of {', '.join(KINDS)}.")
    session = session_of(context)
    with session.open_api() as api:
        triages = Triages(api.http)
        found = _find_item(list(triages.iterate_items(triage_id)), item)
        triages.confirm(triage_id, found, kind="" if kind == "none" else kind, note=note)
        triage = triages.get(triage_id)
    session.output.result(safe(f"{found.position} {found.sample_id}: {kind}"))
    _show_verdict(session.output, triage)


@triage_app.command("close")
def close_command(
    context: typer.Context,
    triage_id: TriageArgument,
    allow_unconfirmed: Annotated[
        bool, typer.Option("--allow-unconfirmed", help="Leave what nobody confirmed to the rules.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Store the verdict with its reasons; nothing is confirmed after that."""
    session = session_of(context)
    with session.open_api() as api:
        triage = Triages(api.http).close(triage_id, allow_unconfirmed=allow_unconfirmed)
    if as_json:
        session.output.document(json.dumps(triage.document, indent=2) + "\n")
    else:
        _show_verdict(session.output, triage)


def _find_item(items: list[TriageItem], wanted: str) -> TriageItem:
    """The sample of an id, or else of a number."""
    by_id = [item for item in items if item.sample_id == wanted]
    by_number = [
        item for item in items if wanted.isascii() and wanted.isdigit() and item.position == int(wanted)
    ]
    for found in (by_id, by_number):
        if found:
            return found[0]
    raise UsageError("sample-unknown", f"The triage has no sample '{wanted}'; it has {len(items)} samples.")


def _end(session: Session, triages: Triages, triage: Triage, *, as_json: bool) -> None:
    """Write how a triage stands; a failed or cancelled one ends the program with an error."""
    if as_json or triage.summary is None:
        end_run(session.output, triage.run, noun="triage", as_json=as_json)
        return
    _show_prompts(session.output, triage.summary)
    _show_failures(session.output, list(triages.iterate_items(triage.id)))
    for warning in triage.summary.objects("warnings"):
        session.output.notice(warning.text("message"), "yellow")
    _show_verdict(session.output, triage)
    session.output.notice(f"page: {triage.page}")


def _show_prompts(output: Output, summary: Fields) -> None:
    numbers = ("passed", "failed", "unjudged", "mean score")
    table = make_table(("prompt", *numbers, ""), right_aligned=frozenset(numbers))
    best = summary.optional_text("best_prompt")
    for row in summary.objects("prompts"):
        score = row.optional_number("mean_score")
        table.add_row(
            safe(row.text("name")),
            *(safe(str(row.integer(f"num_{name}"))) for name in numbers[:3]),
            safe("-" if score is None else f"{score:.3f}"),
            safe("taken" if row.text("name") == best else ""),
        )
    output.result(table)


def _show_failures(output: Output, items: list[TriageItem]) -> None:
    table = make_table(("#", "sample", "rules", "person", "evidence"), right_aligned=frozenset({"#"}))
    shown = [item for item in items if item.outcome != "passed" or item.confirmed_kind]
    for item in shown:
        rules = f"{item.rule_kind} {item.confidence:.2f}" if item.rule_kind else item.outcome
        table.add_row(
            safe(str(item.position)),
            safe(item.sample_id),
            safe(rules),
            safe(item.confirmed_kind or "-"),
            safe(item.evidence),
        )
    if shown:
        output.result("")
        output.result(table)


def _show_verdict(output: Output, triage: Triage) -> None:
    verdict = triage.verdict
    if verdict is None:
        return
    word = "preliminary verdict" if verdict.boolean("is_preliminary") else "verdict"
    output.result("")
    output.result(safe(f"{word}: {verdict.text('advice')}", "bold"))
    output.result(safe(verdict.text("summary")))
    for share in verdict.objects("shares"):
        percent = 100 * (share.optional_number("fraction") or 0.0)
        output.result(
            safe(
                f"  {share.text('treatment')}: {share.integer('num_failures')} ({percent:.0f} %). "
                f"{share.text('reason')}"
            )
        )
