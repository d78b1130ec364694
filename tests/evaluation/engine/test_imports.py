"""The web process uses the engine's pure parts; a subprocess proves that they load nothing heavy."""

import subprocess
import sys

HEAVY = ("torch", "transformers", "peft", "vllm", "json_repair", "regex", "django", "celery")

SCRIPT = f"""
import importlib, pkgutil, sys
import evaluation.engine
for module in pkgutil.walk_packages(evaluation.engine.__path__, "evaluation.engine."):
    loads_engine = module.name.startswith("evaluation.engine.backends.")
    if not loads_engine or module.name.endswith((".base", ".tokenizer", ".lora_rank")):
        importlib.import_module(module.name)
print(sorted(set({HEAVY!r}) & set(sys.modules)))
"""


def test_everything_outside_the_backends_imports_without_engines() -> None:
    result = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=120, check=False
    )
    assert (result.stdout.strip(), result.returncode) == ("[]", 0), result.stderr
