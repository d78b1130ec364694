import os
import subprocess
import sys
from pathlib import Path

import pytest


def run(code: str, **environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        cwd=Path(__file__).parents[3],
        env={**os.environ, **environ},
    )


def test_the_client_loads_nothing_of_the_server() -> None:
    """The base install has only httpx, typer, rich and platformdirs; a CI job must start in a moment."""
    code = (
        "import sys, client.cli, client.__main__\n"
        "heavy = ['django', 'rest_framework', 'celery', 'redis', 'torch', 'transformers', 'peft', 'vllm',"
        " 'numpy', 'scipy', 'jsonschema', 'safetensors', 'config', 'evaluation', 'training', 'workers']\n"
        "print([name for name in heavy if name in sys.modules])"
    )
    result = run(code)
    assert result.stderr == ""
    assert result.stdout == "[]\n"


@pytest.mark.parametrize(("environ", "has_color"), [({"NO_COLOR": "1"}, False), ({"NO_COLOR": ""}, True)])
def test_no_color_is_obeyed(environ: dict[str, str], has_color: bool) -> None:
    code = (
        "import os\n"
        "from client.cli.console import make_output\n"
        "from rich.text import Text\n"
        "make_output(os.environ).out.print(Text('x', style='red'))"
    )
    result = run(code, FORCE_COLOR="1", TERM="xterm", **environ)
    assert ("\x1b[31m" in result.stdout) is has_color, result


def test_an_encoding_without_the_character_does_not_end_the_program() -> None:
    code = (
        "from client.cli.console import make_output, make_streams_tolerant\n"
        "make_streams_tolerant()\n"
        "make_output({}).out.print('工单 …')"
    )
    result = run(code, PYTHONIOENCODING="ascii", PYTHONUTF8="0")
    assert result.returncode == 0, result.stderr
    assert "\\u5de5\\u5355" in result.stdout


def test_a_closed_pipe_is_no_traceback() -> None:
    result = subprocess.run(
        ["/bin/sh", "-c", f"'{sys.executable}' -m client --help | true"],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        cwd=Path(__file__).parents[3],
    )
    assert "Traceback" not in result.stderr
