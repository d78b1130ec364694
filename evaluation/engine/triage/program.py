"""The program: ``python -m evaluation.engine.triage --base DIR --samples FILE --prompt FILE``.

Exit status: 0 when the verdict is out, 3 when something was refused or failed, 130 when stopped.
"""

import argparse
import importlib.util
import json
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NoReturn

from evaluation.engine.errors import EngineError, EvaluationError, Fault
from evaluation.engine.json_text import JsonTextError, parse_json
from evaluation.engine.triage.errors import TriageInvalid
from evaluation.engine.triage.run import TriageResult, run_triage
from evaluation.engine.triage.samples import parse_samples
from evaluation.engine.triage.settings import DEFAULT_MAX_TOKENS, TriageConfig
from registry.artifacts.findings import shown

EXIT_DONE: Final = 0
EXIT_ERROR: Final = 3
EXIT_INTERRUPTED: Final = 130
MAX_FILE_BYTES: Final = 32 * 2**20
NUM_LOG_LINES: Final = 15


class _Parser(argparse.ArgumentParser):
    """Ends a usage error with 3: 2 means "inconclusive" in Assay."""

    def error(self, message: str) -> NoReturn:
        self.print_usage(sys.stderr)
        self.exit(EXIT_ERROR, f"{self.prog}: error: {message}\n")


class _Terminal:
    """Progress on standard error, one line rewritten where it is a terminal."""

    def progress(self, fraction: float, message: str) -> None:
        if sys.stderr.isatty():
            sys.stderr.write(f"\r\x1b[K{fraction:4.0%} {shown(message)}")
            sys.stderr.flush()

    def log(self, level: str, message: str) -> None:
        sys.stderr.write(f"{level}: {shown(message)}\n")

    def metric(self, step: int, values: Mapping[str, float]) -> None:
        """There are none."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program.

    Args:
        arguments: None takes those of the process.
    """
    options = _make_parser().parse_args(arguments)
    try:
        result = _run(options)
    except EvaluationError as error:
        _show_error(error)
        return EXIT_ERROR
    except OSError as error:
        sys.stderr.write(f"error file-unreadable: {shown(error)}\n")
        return EXIT_ERROR
    except KeyboardInterrupt:
        sys.stderr.write("\nStopped; nothing was written.\n")
        return EXIT_INTERRUPTED
    if options.json:
        document = {**result.summary, "items": list(result.items)}
        sys.stdout.write(json.dumps(document, ensure_ascii=False, indent=1) + "\n")
    else:
        sys.stdout.write("\n".join(describe_result(result)) + "\n")
    return EXIT_DONE


def read_prompt_file(path: Path) -> dict[str, Any]:
    """Read a prompt: ``.json`` with system_prompt and few_shot, any other file is the system prompt itself.

    Raises:
        TriageInvalid: It is no UTF-8 or no such JSON (``prompt-unreadable``).
        OSError: It cannot be read.
    """
    try:
        text = _read_bytes(path).decode("utf-8-sig")
        document = parse_json(text) if path.suffix == ".json" else {"system_prompt": text.strip()}
    except (UnicodeDecodeError, JsonTextError) as error:
        raise _unreadable("prompt-unreadable", path, error) from error
    if not isinstance(document, dict):
        raise _unreadable("prompt-unreadable", path, "an object with system_prompt is expected")
    return {"name": path.stem, **document}


def describe_result(result: TriageResult) -> list[str]:
    """Return the lines for people: prompts, failures with their evidence, verdict."""
    lines = [f"{'prompt':24} passed failed unjudged  mean score"]
    for row in result.summary["prompts"]:
        mark = "*" if row["name"] == result.summary["best_prompt"] else " "
        score = "-" if row["mean_score"] is None else f"{row['mean_score']:.3f}"
        lines.append(
            f"{mark} {shown(row['name'])[:22]:22} {row['num_passed']:6} {row['num_failed']:6} "
            f"{row['num_unjudged']:8}  {score:>10}"
        )
    lines.append("")
    for item in result.items:
        if item["outcome"] != "passed":
            lines += _describe_item(item)
    lines += [
        f"warning {warning['code']}: {shown(warning['message'])}" for warning in result.summary["warnings"]
    ]
    lines += ["", f"verdict: {result.verdict.advice}", result.verdict.summary]
    lines += [
        f"  {share.treatment} ({share.num_failures}, {share.fraction:.0%}): {share.reason}"
        for share in result.verdict.shares
    ]
    return lines


def _describe_item(item: Mapping[str, Any]) -> list[str]:
    sorting = item["sorting"]
    kind = sorting["kind"] or item["outcome"]
    lines = [f"{item['position']:3} {shown(item['sample_id'])}: {kind}"]
    if sorting["kind"] is not None:
        lines[0] += f" ({sorting['confidence']:.2f})"
    surest: dict[str, Mapping[str, Any]] = {}
    for signal in sorting["signals"]:
        surest.setdefault(signal["kind"], signal)
    lines += [f"      {kind}: {shown(signal['message'])}" for kind, signal in list(surest.items())[:2]]
    return lines


def _run(options: argparse.Namespace) -> TriageResult:
    with options.samples.open("rb") as file:
        samples = parse_samples(file, options.samples.name)
    config = TriageConfig.from_json(
        {
            "prompts": [read_prompt_file(path) for path in options.prompt],
            "output_schema": None if options.schema is None else _read_json(options.schema),
            "max_tokens": options.max_tokens,
            "backend": {
                "name": options.backend or _installed_backend(),
                "max_model_len": options.max_model_len,
            },
        }
    )
    terminal = _Terminal()
    if options.out is not None and options.out.exists() and any(options.out.iterdir()):
        raise TriageInvalid("output-not-empty", f"{shown(options.out)} is not empty; name a new folder")
    with tempfile.TemporaryDirectory(prefix="assay-triage-") as name:
        scratch = Path(name)
        result = run_triage(
            base_model=options.base,
            samples=samples,
            config=config,
            workdir=scratch,
            output=options.out or scratch / "report",
            report=terminal,
        )
    if sys.stderr.isatty():
        sys.stderr.write("\r\x1b[K")
    return result


def _installed_backend() -> str:
    return "vllm" if importlib.util.find_spec("vllm") else "transformers"


def _read_json(path: Path) -> Any:
    try:
        return parse_json(_read_bytes(path).decode("utf-8"))
    except (UnicodeDecodeError, JsonTextError) as error:
        raise _unreadable("schema-unreadable", path, error) from error


def _read_bytes(path: Path) -> bytes:
    with path.open("rb") as file:
        content = file.read(MAX_FILE_BYTES + 1)
    if len(content) > MAX_FILE_BYTES:
        raise _unreadable("file-too-large", path, f"more than {MAX_FILE_BYTES} bytes")
    return content


def _unreadable(code: str, path: Path, reason: object) -> TriageInvalid:
    fault = Fault(code, shown(reason), shown(path))
    return TriageInvalid(code, f"{shown(path)} cannot be used: {shown(reason)}", faults=[fault])


def _show_error(error: EvaluationError) -> None:
    if isinstance(error, EngineError):
        for line in error.log_tail.splitlines()[-NUM_LOG_LINES:]:
            sys.stderr.write(f"  {shown(line)}\n")
    sys.stderr.write(f"error {error.code}: {shown(error.message)}\n")
    for fault in error.faults:
        remedy = f" ({fault.remedy})" if fault.remedy else ""
        sys.stderr.write(f"  {fault.where}: {fault.code}: {shown(fault.message)}{remedy}\n")


def _make_parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="python -m evaluation.engine.triage", description=__doc__)
    parser.add_argument("--base", type=_folder, required=True, metavar="DIR", help="the base model")
    parser.add_argument(
        "--samples", type=_file, required=True, metavar="FILE", help="JSON Lines, about 20 examples"
    )
    parser.add_argument(
        "--prompt",
        type=_file,
        action="append",
        required=True,
        metavar="FILE",
        help="a system prompt, or JSON with system_prompt and few_shot; repeat, and the best is taken",
    )
    parser.add_argument("--schema", type=_file, metavar="FILE", help="JSON Schema of a right answer")
    parser.add_argument("--max-tokens", type=int, default=DEFAULT_MAX_TOKENS, help="longest answer")
    parser.add_argument("--max-model-len", type=int, default=2048, help="longest prompt and answer together")
    parser.add_argument("--backend", choices=("vllm", "transformers"), help="what is installed, by default")
    parser.add_argument("--out", type=Path, metavar="DIR", help="new folder for triage.json and items.jsonl")
    parser.add_argument("--json", action="store_true", help="print everything as JSON")
    return parser


def _folder(text: str) -> Path:
    path = Path(text)
    if not path.is_dir():
        raise argparse.ArgumentTypeError(f"{shown(text)} is no folder")
    return path


def _file(text: str) -> Path:
    path = Path(text)
    if not path.is_file():
        raise argparse.ArgumentTypeError(f"{shown(text)} is no file")
    return path
