"""Which libraries a process loads, seen in processes of their own: DESIGN section 2, rules of dependency."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MODEL_LIBRARIES = {"torch", "transformers", "peft", "vllm", "accelerate", "tokenizers"}


def loaded_modules(program: str, tmp_path: Path) -> set[str]:
    """Returns the top-level names in `sys.modules` after a program has run in a fresh interpreter."""
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(ROOT),
        "ASSAY_HOME": str(tmp_path),
        "DJANGO_SETTINGS_MODULE": "config.settings.embedded",
    }
    script = f"{program}\nimport sys\nprint('\\n'.join({{name.partition('.')[0] for name in sys.modules}}))"
    done = subprocess.run(
        [sys.executable, "-c", script],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


ALL_URLS = "from django.urls import get_resolver; get_resolver().url_patterns"


@pytest.mark.parametrize(
    "program",
    [
        f"import config.asgi; {ALL_URLS}",
        "import django; django.setup(); import workers.tasks",
        "import django; django.setup(); import workers.scheduler",
    ],
    ids=["web", "worker", "scheduler"],
)
def test_server_processes_load_no_model_library(program: str, tmp_path: Path) -> None:
    assert loaded_modules(program, tmp_path) & MODEL_LIBRARIES == set()


@pytest.mark.parametrize(
    "program",
    [
        "import workers.job.__main__, workers.job.execution, workers.job.failures",
        "import registry.artifacts.adapter_check, registry.artifacts.stores.local",
        "import config.stack.__main__",
    ],
    ids=["job", "artifacts", "supervisor"],
)
def test_what_must_stay_light_loads_no_django_either(program: str, tmp_path: Path) -> None:
    heavy = MODEL_LIBRARIES | {"django", "rest_framework", "celery", "scipy"}
    assert loaded_modules(program, tmp_path) & heavy == set()
