"""Jobs of kind "check" on tiny hand-written models: quick, and with no model library."""

from pathlib import Path
from typing import Any

from registry.models import Job
from registry.services.actors import SYSTEM
from registry.services.artifacts import ingest_folder
from registry.services.jobs import enqueue_job
from tests.registry.artifacts.builders import make_adapter, make_base
from workers.job.spec import JobSpec, write_spec


def make_check_folder(folder: Path, **adapter: Any) -> Path:
    """Writes the work folder of a check job by hand."""
    inputs = folder / "inputs"
    inputs.mkdir(parents=True)
    make_base(inputs / "base_model")
    make_adapter(inputs / "adapter", **adapter)
    spec = JobSpec(
        job_id="by-hand",
        kind="check",
        code_version="check@1",
        inputs={name: f"inputs/{name}" for name in ("adapter", "base_model")},
        config={"target_form": "merged"},
    )
    write_spec(folder, spec)
    return folder


def enqueue_check(folder: Path, *, adapter: dict[str, Any] | None = None, **options: Any) -> Job:
    """Stores a tiny base model and adapter and asks for their check."""
    base = ingest_folder(folder=make_base(folder / "base"), kind="base_model", actor=SYSTEM)
    made = ingest_folder(
        folder=make_adapter(folder / "adapter", **adapter or {}), kind="adapter", actor=SYSTEM
    )
    request: dict[str, Any] = {
        "kind": "check",
        "inputs": {"adapter": {"artifact": made.digest}, "base_model": {"artifact": base.digest}},
        "config": {"target_form": "merged"},
        "code_version": "check@1",
        "subject": "tickets@1",
        "actor": SYSTEM,
    }
    return enqueue_job(**request | options)
