"""Runs the whole suite: everything on SQLite, then all that touches the database once more on PostgreSQL.

Test files are shared out over one process for each core; each has databases and folders of its own.

PostgreSQL comes out of a wheel and lives in a temporary folder for the second run.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.fixtures.postgres import running_postgres

ROOT = Path(__file__).resolve().parent.parent
DATABASE_TESTS = (
    "tests/registry/services",
    "tests/registry/selectors",
    "tests/registry/api",
    "tests/registry/admin",
    "tests/evaluation/services",
    "tests/evaluation/api",
    "tests/evaluation/admin",
    "tests/training/services",
    "tests/training/api",
    "tests/training/admin",
    "tests/workers",
)


PARALLEL = ("-n", str(os.cpu_count() or 1), "--dist", "loadfile")
# As many processes as cores: more threads each would only wait for one another.
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")


def run_pytest(
    arguments: list[str], *, database_url: str | None = None, options: Sequence[str] = PARALLEL
) -> int:
    """Runs pytest in a process of its own and gives its exit code."""
    with tempfile.TemporaryDirectory(prefix="assay-tests-") as home:
        threads = ONE_THREAD if options else {}
        environment = {"ASSAY_SHARED": str(ROOT.parent / "shared"), **threads, **os.environ}
        environment["ASSAY_HOME"] = home
        if database_url:
            environment["DATABASE_URL"] = database_url
        else:
            environment.pop("DATABASE_URL", None)
        command = [sys.executable, "-m", "pytest", *options, *arguments]
        return subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode


def main(arguments: list[str]) -> int:
    """Exit code 0 when all runs pass."""
    if arguments:
        return run_pytest(arguments)
    on_sqlite = run_pytest(["tests", "-m", "not e2e"])
    # It starts all servers and uses every core itself.
    whole_way = run_pytest(["tests", "-m", "e2e"], options=())
    with (
        tempfile.TemporaryDirectory(prefix="assay-postgres-") as folder,
        running_postgres(Path(folder)) as url,
    ):
        existing = [path for path in DATABASE_TESTS if (ROOT / path).exists()]
        on_postgres = run_pytest([*existing, "-m", "not engine and not e2e"], database_url=url)
    return on_sqlite or whole_way or on_postgres


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
