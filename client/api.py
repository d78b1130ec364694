"""The REST contract as methods: one per call that the client makes, frozen values in and out.

No retries (``client.http``), no files (``client.uploads``, ``client.downloads``), nothing printed.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from urllib.parse import quote

from client.http import AssayHttp, QueryValue, read_json
from client.json_fields import Fields
from client.models import Artifact, BaseModel, DatasetVersion, Identity, Submission, Upload, UploadedBlob
from client.run_models import Channel, Job, JobEvent, Manifest, Run
from client.training_models import Comparison, Curve, TrainingRun, read_curves
from registry.artifacts.manifest import ArtifactManifest

JsonObject = Mapping[str, object]


def _segment(text: str) -> str:
    """Quote one path segment; a name from a user must not become two segments or a query."""
    return quote(text, safe="")


class AssayApi:
    """The calls of ``/api/v1``. Every method may raise the errors of ``AssayHttp.request``."""

    def __init__(self, http: AssayHttp) -> None:
        self.http = http

    def get_identity(self) -> Identity:
        """Return whom the token stands for."""
        return Identity.from_json(self.http.get_json("whoami"))

    # Uploads and artifacts

    def declare_upload(self, kind: str, manifest: ArtifactManifest) -> Upload:
        """Announce files; the answer says what the server has of them."""
        return Upload.from_json(self.http.post_json("uploads", {"kind": kind, "files": manifest.to_json()}))

    def get_upload(self, upload_id: str) -> Upload:
        """Return the state of an upload."""
        return Upload.from_json(self.http.get_json(f"uploads/{_segment(upload_id)}"))

    def put_chunk(
        self, upload_id: str, sha256: str, chunk: bytes, *, offset_bytes: int, size_bytes: int
    ) -> UploadedBlob:
        """Send the bytes of a file from ``offset_bytes`` on; ``size_bytes`` is the whole file's."""
        last = offset_bytes + len(chunk) - 1
        # An empty range cannot be written as Content-Range; the empty file is sent whole, without the header.
        headers = {"Content-Range": f"bytes {offset_bytes}-{last}/{size_bytes}"} if chunk else {}
        path = f"uploads/{_segment(upload_id)}/blobs/{_segment(sha256)}"
        response = self.http.request("PUT", path, content=chunk, headers=headers)
        return UploadedBlob.from_fields(Fields.of(read_json(response), "blob"))

    def commit_upload(self, upload_id: str) -> str:
        """Finish an upload and return the artifact's digest."""
        answer = self.http.post_json(f"uploads/{_segment(upload_id)}/commit")
        return Fields.of(answer, "committed upload").text("artifact")

    def get_artifact(self, digest: str) -> Artifact:
        """Return an artifact's list of files."""
        return Artifact.from_json(self.http.get_json(f"artifacts/{_segment(digest)}"))

    # Base models, datasets, suites

    def list_base_models(self) -> tuple[BaseModel, ...]:
        """Return all registered base models."""
        return tuple(BaseModel.from_json(item) for item in self.http.iterate_pages("base-models"))

    def create_base_model(self, *, name: str, artifact: str, source: str | None) -> BaseModel:
        """Register an uploaded base model. ``source``: where it came from, or None."""
        body = {"name": name, "artifact": artifact}
        if source is not None:
            body["source"] = source
        return BaseModel.from_json(self.http.post_json("base-models", body))

    def create_dataset_version(self, *, name: str, artifact: str, role: str) -> DatasetVersion:
        """Register uploaded examples as a dataset's next version; the same bytes give the existing one."""
        body = {"artifact": artifact, "role": role}
        return DatasetVersion.from_json(self.http.post_json(f"datasets/{_segment(name)}/versions", body))

    def get_suite(self, reference: str) -> JsonObject:
        """Return a suite by "name" (latest) or "name@number"."""
        name, _, number = reference.partition("@")
        answer = self.http.get_json(f"suites/{_segment(name)}", {"number": number or None})
        return Fields.of(answer, "suite").source

    def create_suite(self, *, definition: JsonObject, datasets: Mapping[str, str]) -> JsonObject:
        """Register a suite. ``datasets``: role to "name@number"."""
        answer = self.http.post_json("suites", {"definition": definition, "datasets": dict(datasets)})
        return Fields.of(answer, "suite").source

    # Runs

    def create_baseline(self, *, suite: str, base_model: str) -> Run:
        """Start (or find) the baseline of a base model on a suite."""
        return Run.from_json(self.http.post_json("baselines", {"suite": suite, "base_model": base_model}))

    def get_baseline(self, run_id: str) -> Run:
        """Return a baseline run."""
        return Run.from_json(self.http.get_json(f"baselines/{_segment(run_id)}"))

    def create_training_run(
        self,
        *,
        name: str,
        base_model: str,
        datasets: Sequence[str],
        holdout: str | None,
        config: JsonObject,
        purpose: str = "training",
        parent: str | None = None,
        note: str = "",
        allow_lint_errors: bool = False,
    ) -> TrainingRun:
        """Start a training run.

        Args:
            name: For people.
            base_model: Name of a registered one.
            datasets: "name@number" of training and general data.
            holdout: Dataset for the held-out loss, or None.
            config: Training configuration.
            purpose: training, mini or preflight.
            parent: Id of the run that this one repeats or changes, or None.
            note: For people.
            allow_lint_errors: Start even when the server's rules find errors.
        """
        body: dict[str, object] = {
            "name": name,
            "base_model": base_model,
            "datasets": list(datasets),
            "config": config,
        }
        options: dict[str, object | None] = {
            "holdout": holdout,
            "purpose": purpose if purpose != "training" else None,
            "parent": parent,
            "note": note or None,
            "allow_lint_errors": allow_lint_errors or None,
        }
        body |= {key: value for key, value in options.items() if value is not None}
        return TrainingRun.from_json(self.http.post_json("training-runs", body))

    def get_training_run(self, run_id: str) -> TrainingRun:
        """Return a training run."""
        return TrainingRun.from_json(self.http.get_json(f"training-runs/{_segment(run_id)}"))

    def list_training_runs(
        self, *, state: str | None, purpose: str | None, limit: int
    ) -> tuple[TrainingRun, ...]:
        """Return at most ``limit`` training runs, newest first."""
        pages = self.http.iterate_pages("training-runs", {"state": state, "purpose": purpose})
        return tuple(TrainingRun.from_json(item) for item in islice(pages, limit))

    def vary_training_run(
        self,
        run_id: str,
        *,
        remedy: str,
        general_dataset: str | None,
        name: str | None,
        note: str,
        allow_lint_errors: bool,
    ) -> TrainingRun:
        """Start a variation of a training run. None leaves a choice to the server."""
        options: dict[str, object | None] = {
            "general_dataset": general_dataset,
            "name": name,
            "note": note or None,
            "allow_lint_errors": allow_lint_errors or None,
        }
        body = {"remedy": remedy} | {key: value for key, value in options.items() if value is not None}
        path = f"training-runs/{_segment(run_id)}/variations"
        return TrainingRun.from_json(self.http.post_json(path, body))

    def compare_training_run(self, run_id: str) -> tuple[JsonObject, Comparison]:
        """Return the server's answer, and what it says of a run and its relatives."""
        answer = self.http.get_json(f"training-runs/{_segment(run_id)}/comparison")
        return Fields.of(answer, "comparison").source, Comparison.from_json(answer)

    def get_training_curves(self, run_id: str) -> Mapping[str, Curve]:
        """Return a run's curves by name."""
        return read_curves(self.http.get_json(f"training-runs/{_segment(run_id)}/metrics"))

    def get_training_documents(self, run_id: str) -> JsonObject:
        """Return what a run reported, by name, such as "preflight"."""
        answer = self.http.get_json(f"training-runs/{_segment(run_id)}/documents")
        return Fields.of(answer, "documents").nested("results").source

    # Submissions

    def create_submission(
        self,
        *,
        adapter: str,
        artifact: str,
        base_model: str,
        suite: str,
        policy: str | None,
        training_datasets: Sequence[str],
        notes: str | None,
    ) -> Submission:
        """Submit an uploaded adapter. ``policy``: None for the server's default."""
        body: dict[str, object] = {
            "adapter": adapter,
            "artifact": artifact,
            "base_model": base_model,
            "suite": suite,
        }
        if policy is not None:
            body["policy"] = policy
        if training_datasets:
            body["training_dataset"] = list(training_datasets)
        if notes is not None:
            body["notes"] = notes
        return Submission.from_json(self.http.post_json("submissions", body))

    def get_submission(self, submission_id: str) -> Submission:
        """Return a submission."""
        return Submission.from_json(self.http.get_json(f"submissions/{_segment(submission_id)}"))

    def iterate_submissions(
        self, *, adapter: str | None = None, state: str | None = None
    ) -> Iterator[Submission]:
        """Yield submissions in the server's order (newest first)."""
        params: dict[str, QueryValue] = {"adapter": adapter, "state": state}
        return (Submission.from_json(item) for item in self.http.iterate_pages("submissions", params))

    def cancel_submission(self, submission_id: str) -> None:
        """Ask for the end of a submission's pipeline."""
        self.http.post_json(f"submissions/{_segment(submission_id)}/cancel")

    def retry_submission(self, submission_id: str) -> None:
        """Start a failed submission's pipeline again."""
        self.http.post_json(f"submissions/{_segment(submission_id)}/retry")

    # Data preparation

    def create_raw_data(self, *, name: str, artifact: str) -> str:
        """Give uploaded raw files a name; return their id."""
        answer = self.http.post_json("raw-data", {"name": name, "artifact": artifact})
        return Fields.of(answer, "raw data").text("id")

    def create_preparation(
        self,
        *,
        name: str,
        raw_data: str,
        recipe: Mapping[str, object],
        general: str | None,
        evaluation_sets: Sequence[str],
        base_model: str | None,
    ) -> Run:
        """Let the server prepare raw data.

        Args:
            name: Dataset of the main set.
            raw_data: Id of raw data.
            recipe: As in the documentation; {} for all defaults.
            general: Dataset version to mix in, or None.
            evaluation_sets: Dataset versions to look for leaks into.
            base_model: Whose tokenizer measures lengths, or None.
        """
        body: dict[str, object] = {
            "name": name,
            "raw_data": raw_data,
            "recipe": dict(recipe),
            "general": general,
            "evaluation_sets": list(evaluation_sets),
            "base_model": base_model,
        }
        return Run.from_json(self.http.post_json("preparations", body))

    def get_preparation(self, preparation_id: str) -> Run:
        """Return a data preparation."""
        return Run.from_json(self.http.get_json(f"preparations/{_segment(preparation_id)}"))

    def create_review(self, dataset_version: str, *, num_examples: int | None) -> str:
        """Ask for a review of a dataset version; return the address of its page. None reviews all."""
        body = {"dataset_version": dataset_version, "num_examples": num_examples}
        answer = Fields.of(self.http.post_json("reviews", body), "review")
        links = answer.nested("links")
        return links.text("page")

    # Channels

    def list_channels(self) -> tuple[Channel, ...]:
        """Return all channels."""
        return tuple(Channel.from_json(item) for item in self.http.iterate_pages("channels"))

    def get_channel(self, name: str) -> Channel:
        """Return a channel; its ``etag`` is the ETag header's where there is one, as If-Match wants it."""
        response = self.http.request("GET", f"channels/{_segment(name)}")
        channel = Channel.from_json(read_json(response))
        return replace(channel, etag=response.headers.get("ETag", channel.etag))

    def create_channel(self, *, name: str, form: str, policy: str | None) -> Channel:
        """Create a channel that ships in the given form. ``policy``: None for the server's default."""
        body = {"name": name, "form": form}
        if policy is not None:
            body["policy"] = policy
        return Channel.from_json(self.http.post_json("channels", body))

    def promote(
        self, *, channel: str, etag: str, adapter: str, version: int, reason: str, is_override: bool
    ) -> Channel:
        """Let a channel serve an adapter version, if the channel is still in the state ``etag``."""
        body: dict[str, object] = {"adapter": adapter, "version": version, "reason": reason}
        if is_override:
            body["override"] = True
        path = f"channels/{_segment(channel)}/promote"
        return Channel.from_json(self.http.post_json(path, body, if_match=etag))

    def roll_back(self, *, channel: str, etag: str, reason: str, to_promotion: int | None) -> Channel:
        """Let a channel serve what it served before. ``to_promotion``: which; None for the last one."""
        body: dict[str, object] = {"reason": reason}
        if to_promotion is not None:
            body["to_promotion"] = to_promotion
        path = f"channels/{_segment(channel)}/rollback"
        return Channel.from_json(self.http.post_json(path, body, if_match=etag))

    def list_channel_history(self, name: str, *, limit: int) -> tuple[JsonObject, ...]:
        """Return at most ``limit`` changes of a channel, newest first."""
        return tuple(islice(self.http.iterate_pages(f"channels/{_segment(name)}/history"), limit))

    def get_manifest(self, channel: str) -> Manifest:
        """Return what a channel ships at the moment."""
        return Manifest.from_json(self.http.get_json(f"channels/{_segment(channel)}/manifest"))

    # Jobs

    def list_jobs(self, *, kind: str | None, state: str | None, limit: int) -> tuple[Job, ...]:
        """Return at most ``limit`` jobs, newest first."""
        pages = self.http.iterate_pages("jobs", {"kind": kind, "state": state})
        return tuple(Job.from_json(item) for item in islice(pages, limit))

    def get_job(self, job_id: str) -> Job:
        """Return a job."""
        return Job.from_json(self.http.get_json(f"jobs/{_segment(job_id)}"))

    def cancel_job(self, job_id: str) -> None:
        """Ask for a job's end."""
        self.http.post_json(f"jobs/{_segment(job_id)}/cancel")

    def list_job_events(self, job_id: str, *, after: int) -> tuple[JobEvent, ...]:
        """Return the events that follow number ``after``; the answer may hold only the first of them."""
        answer = self.http.get_json(f"jobs/{_segment(job_id)}/events", {"after": after})
        return tuple(JobEvent.from_fields(item) for item in Fields.of(answer, "events").objects("results"))
