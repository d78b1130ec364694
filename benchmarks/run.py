"""Runs all benchmarks, one after the other: `make bench`."""

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent


def main() -> int:
    """Exit code 0 when every benchmark ran."""
    scripts = sorted(path for path in HERE.glob("*.py") if path.name != "run.py")
    codes = [
        subprocess.run([sys.executable, str(script)], cwd=HERE.parent, check=False).returncode
        for script in scripts
    ]
    return max(codes)


if __name__ == "__main__":
    sys.exit(main())
