"""`python -m workers.job WORKDIR`: does a job, or repeats a finished one by hand and compares.

Exit status: 0 when the job succeeded (or the repetition agrees), 1 when it failed (or differs), 2 for wrong
usage.
"""

import argparse
import logging
import sys
from collections.abc import Sequence
from pathlib import Path

from workers.job.comparison import find_differences
from workers.job.environment import die_with_parent, leave_standard_input, prepare_environment
from workers.job.errors import JobFolderError
from workers.job.execution import run_job
from workers.job.result import JobResult, read_result
from workers.job.spec import JobSpec, read_spec

EXIT_OK, EXIT_FAILED, EXIT_USAGE = 0, 1, 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Reads the command line and does what it says; returns the exit status."""
    options = _parser().parse_args(arguments)
    workdir: Path = options.workdir.resolve()
    if options.watch_stdin:
        die_with_parent()
    else:
        leave_standard_input()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    try:
        spec, stored = read_spec(workdir), read_result(workdir)
    except JobFolderError as error:
        sys.stderr.write(f"{error.message}\n")
        return EXIT_USAGE
    prepare_environment(num_threads=spec.num_threads)
    if stored is None:
        kept = None if options.kept is None else options.kept.resolve()
        result = run_job(spec=spec, workdir=workdir, target=workdir, kept=kept)
        return EXIT_OK if result.failure is None else EXIT_FAILED
    return _replay(spec, stored, workdir, is_in_place=options.in_place)


def _replay(spec: JobSpec, stored: JobResult, workdir: Path, *, is_in_place: bool) -> int:
    target = workdir if is_in_place else _make_replay_folder(workdir)
    fresh = run_job(spec=spec, workdir=workdir, target=target)
    differences = find_differences(stored, fresh)
    word = "differs from" if differences else "agrees with"
    sys.stdout.write(f"The result in {target} {word} the stored one ({fresh.status}).\n")
    for line in differences:
        sys.stdout.write(f"  {line}\n")
    return EXIT_FAILED if differences else EXIT_OK


def _make_replay_folder(workdir: Path) -> Path:
    number = 1
    while (workdir / f"replay-{number}").exists():
        number += 1
    folder = workdir / f"replay-{number}"
    folder.mkdir()
    return folder


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m workers.job", description=__doc__)
    parser.add_argument("workdir", type=Path, help="folder with spec.json and inputs/")
    parser.add_argument(
        "--in-place",
        action="store_true",
        help="repeat a finished job in its own folder instead of a new replay-<n> inside it",
    )
    parser.add_argument(
        "--kept",
        type=Path,
        help="folder that outlives attempts at the job (set by the worker); else an empty one is made. "
        "A repetition never sees it",
    )
    parser.add_argument(
        "--watch-stdin",
        action="store_true",
        help="end with all processes of the group when standard input closes (set by the worker)",
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
