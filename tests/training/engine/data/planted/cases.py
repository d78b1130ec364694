"""The table of planted faults, and what a preparation says of each."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from registry.artifacts.dataset_lines import check_dataset_lines
from tests.training.engine.data.planted.backgrounds import FRAGMENTS, SEED
from tests.training.engine.data.planted.material import FAULTS, Material, gather
from tests.training.engine.data.planted.writers import write_sources
from training.engine.data.cleaning.catalogue import DEFAULT_STEPS
from training.engine.data.preparation.inputs import PreparationInputs
from training.engine.data.preparation.run import PreparationResult, run_preparation
from training.engine.data.recipe import Recipe
from training.engine.errors import DataInvalid
from training.engine.progress import SilentReporter

MANIFEST = Path(__file__).parent / "manifest.json"
NUM_ROWS = 30
EVALUATION_SEEDS = {"holdout": (11, "h"), "ood": (12, "o")}
NOTHING: Mapping[str, Any] = {
    "refused": [],
    "bad": {},
    "left_out": {},
    "notices": [],
    "encoding": "utf-8",
    "done": {},
    "dropped": {},
    "becomes": {},
    "secret_in": [],
    "findings": {},
    "says": {},
    "overlaps": {},
    "leakage": "checked",
    "together": [],
    "unmet": [],
    "unverified": [],
}
"""What is found in clean data; a planted fault changes some of it and nothing else.

refused: code of the refusal, then codes of its faults.
bad: reason to planted lines, from 1.
left_out: reason to number of rows that a filter leaves out.
notices: severity and code of what reading has to say.
encoding: of the first file.
done: step and reason to the ids of examples that were changed or flagged.
dropped: step and reason to the ids of examples that were dropped.
becomes: id to question and answer in the prepared set; null where it stays.
secret_in: files of the preparation in which a secret of the case still stands.
findings: severity, code and place of warnings and errors to the first five ids, "of N" where there are more;
    in front of it the set, when that is another one.
says: code of a finding to words of its message.
overlaps: two sets to pairs of ids that ask the same.
together: ids that must be on one side of a cut.
unmet: codes of what a cut could not keep.
unverified: ids of references that nobody confirmed.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One row of the table.

    Attributes:
        name: Of the fault; its lines are in ``faults/NAME.jsonl``, those of evaluation sets in
            ``faults/NAME.SET.jsonl``.
        background: What the clean rows are.
        planted: What was planted, for people.
        num_rows: Clean rows.
        seed: Of the clean rows.
        form: Name of a writer.
        change: Name of a change of all clean rows; None for none.
        recipe: Sections of the recipe; ``clean`` holds parameters by step.
        is_decoy: Whether it only looks like a fault.
        secrets: Texts that no file of the preparation may hold.
        found: The right answer: what differs from ``NOTHING``.
    """

    name: str
    background: str
    planted: str
    num_rows: int = NUM_ROWS
    seed: int = SEED
    form: str = "jsonl"
    change: str | None = None
    recipe: Mapping[str, Any] = field(default_factory=dict)
    is_decoy: bool = False
    secrets: Sequence[str] = ()
    found: Mapping[str, Any]

    @property
    def language(self) -> str:
        """Of the rows: en or zh."""
        return self.background.split("-")[1]

    def build_recipe(self) -> Recipe:
        """Return the default recipe with what the fault needs."""
        intake: dict[str, Any] = {"reference_source": "person"}
        if self.background.startswith("tickets"):
            intake["system_prompt"] = FRAGMENTS[self.language]["system"]
        clean = [{"step": name, **self.recipe.get("clean", {}).get(name, {})} for name in DEFAULT_STEPS]
        intake |= self.recipe.get("intake", {})
        return Recipe.from_json({**self.recipe, "intake": intake, "clean": clean})


_NAMES = {
    "in": "background",
    "planted": "planted",
    "rows": "num_rows",
    "as": "form",
    "change": "change",
    "recipe": "recipe",
    "decoy": "is_decoy",
    "secrets": "secrets",
    "found": "found",
}


def read_table() -> tuple[Case, ...]:
    """Read manifest.json; a key that is not known, or stands twice, is refused."""
    table = json.loads(MANIFEST.read_text(encoding="utf-8"), object_pairs_hook=_unique)
    cases = [
        Case(name=name, **{_NAMES[key]: value for key, value in row.items()}) for name, row in table.items()
    ]
    for case in cases:
        unknown = case.found.keys() - NOTHING.keys()
        if unknown:
            raise ValueError(f"{case.name}: {unknown}")
    return tuple(cases)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    read = dict(pairs)
    if len(read) < len(pairs):
        raise ValueError(f"a key stands twice in {[key for key, _ in pairs]}")
    return read


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A case after its preparation.

    Attributes:
        observed: In the form of ``NOTHING``.
        material: What went in.
        report: Content of report.json; None when the preparation was refused.
        output: Folder of the preparation.
    """

    observed: Mapping[str, Any]
    material: Material
    report: Mapping[str, Any] | None
    output: Path


def prepare(case: Case, folder: Path) -> Prepared:
    """Write the files of a case, run its recipe, and gather what was found."""
    material = gather(case.name, case.background, case.num_rows, change=case.change, seed=case.seed)
    scratch, output = folder / "scratch", folder / "prepared"
    scratch.mkdir()
    inputs = PreparationInputs(
        sources=write_sources(case.form, material, folder / "raw"),
        evaluation_sets=dict(_write_evaluation_sets(case, folder)),
    )
    try:
        result = run_preparation(
            inputs, case.build_recipe(), output=output, scratch=scratch, report=SilentReporter()
        )
    except DataInvalid as error:
        codes = [error.code, *(fault.code for fault in error.faults)]
        return Prepared(observed={**NOTHING, "refused": codes}, material=material, report=None, output=output)
    return Prepared(
        observed=_observe(case, material, result, output),
        material=material,
        report=result.report,
        output=output,
    )


def read_lines(path: Path) -> list[dict[str, Any]]:
    """Return the rows of a JSONL file."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line]


def _write_evaluation_sets(case: Case, folder: Path) -> Iterator[tuple[str, Path]]:
    for name, (seed, prefix) in EVALUATION_SEEDS.items():
        if (FAULTS / f"{case.name}.{name}.jsonl").is_file():
            material = gather(f"{case.name}.{name}", case.background, NUM_ROWS, seed=seed, prefix=prefix)
            path = folder / f"{name}.jsonl"
            path.write_text(material.text, encoding="utf-8")
            yield name, path


def _observe(case: Case, material: Material, result: PreparationResult, output: Path) -> dict[str, Any]:
    report, role = result.report, next(iter(result.sets))
    sets = {name: read_lines(written.path) for name, written in result.sets.items()}
    by_id = {row["id"]: row for rows in sets.values() for row in rows}
    findings = [item for item in report["findings"] if item["severity"] != "info"]
    together = case.found.get("together", [])
    sides = {name for name, rows in sets.items() if {row["id"] for row in rows} & set(together)}
    return {
        **NOTHING,
        "bad": _by_reason(read_lines(output / "bad_rows.jsonl"), material),
        "left_out": report["intake"]["left_out"],
        "notices": [f"{item['severity']} {item['code']}" for item in report["intake"]["notices"]],
        "encoding": report["intake"]["files"][0]["encoding"],
        "done": dict(_list_done(report["steps"])),
        "dropped": _list_dropped(output / "dropped.jsonl"),
        "becomes": {
            name: [
                text if right is not None else None
                for text, right in zip(_texts(by_id[name]), texts, strict=True)
            ]
            for name, texts in case.found.get("becomes", {}).items()
        },
        "secret_in": list(_find_secrets(case.secrets, output)),
        "findings": _list_findings(findings, role),
        "says": {
            code: words
            for code, words in case.found.get("says", {}).items()
            if any(words in item["message"] for item in findings if item["code"] == code)
        },
        "overlaps": {
            f"{pair['left']} {pair['right']}": [
                f"{item['left_id']} {item['right_id']} {item['kind']}" for item in pair["pairs"]
            ]
            for pair in report["leakage"]["matrix"]
            if pair["num_exact"] or pair["num_near"]
        },
        "leakage": report["leakage"]["status"],
        "together": together if len(sides) == 1 else sorted(sides),
        "unmet": [item["code"] for item in (report["split"] or {"unmet": []})["unmet"]],
        "unverified": [row["id"] for row in sets[role] if not _is_verified(row, role)],
    }


def _by_reason(bad_rows: list[dict[str, Any]], material: Material) -> dict[str, list[Any]]:
    planted = material.planted_rows
    reasons: dict[str, list[Any]] = {}
    for row in bad_rows:
        reasons.setdefault(row["code"], []).append(planted.get(row["row"], f"row {row['row']}"))
    return reasons


def _list_done(steps: list[dict[str, Any]]) -> Iterator[tuple[str, list[str]]]:
    """Yield what steps did short of dropping; reports name the first few examples of each reason."""
    for step in steps:
        kept = [item for item in step["shown"] if item["after"] is not None]
        ended = Counter(
            reason for item in step["shown"] if item["after"] is None for reason in item["reasons"]
        )
        for reason, num in step["reasons"].items():
            ids = [item["example_id"] for item in kept if reason in item["reasons"]]
            if ids or num > ended[reason]:
                more = num - len(ids) - ended[reason]
                yield f"{step['name']} {reason}", [*ids, *([f"{more} more"] if more else [])]


def _list_dropped(path: Path) -> dict[str, list[str]]:
    dropped: dict[str, list[str]] = {}
    for line in read_lines(path):
        key = " ".join((line["step"], *line["reasons"]))
        dropped.setdefault(key, []).append(line["example"]["id"])
    return dropped


def _find_secrets(secrets: Sequence[str], output: Path) -> Iterator[str]:
    for path in sorted(output.rglob("*")):
        if path.is_file() and any(secret in path.read_text(encoding="utf-8") for secret in secrets):
            yield path.relative_to(output).as_posix()


def _list_findings(findings: list[dict[str, Any]], role: str) -> dict[str, list[str]]:
    listed: dict[str, list[str]] = {}
    for item in findings:
        place = "" if item["set"] == role else f"{item['set']}: "
        key = f"{place}{item['severity']} {item['code']} {item['where']}".rstrip()
        more = [f"of {item['num_examples']}"] if item["num_examples"] != len(item["example_ids"]) else []
        listed.setdefault(key, []).extend([*item["example_ids"], *more])
    return listed


def _texts(row: Mapping[str, Any]) -> tuple[str, str]:
    *_, question, answer = (message["content"] for message in row["messages"])
    return question, answer


def _is_verified(row: Mapping[str, Any], role: str) -> bool:
    """Return whether the registry counts the reference as verified."""
    return check_dataset_lines([json.dumps(row).encode()], role=role).num_verified == 1
