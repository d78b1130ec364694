"""An Assay server in memory: the parts of the REST contract that the client uses, and ways
to misbehave.
"""

import hashlib
import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from email.message import Message
from typing import Any
from urllib.parse import unquote

from registry.artifacts.manifest import ArtifactManifest
from tests.client.documents import decided, rule, submission_document

TOKEN = "assay_test_secret"
CHUNK_BYTES = 1000


class Refusal(Exception):
    """Ends a request with a problem document."""

    def __init__(self, status: int, code: str, detail: str = "", **extra: object) -> None:
        super().__init__(code)
        self.status = status
        self.document = {"title": code, "status": status, "detail": detail, "code": code, **extra}


class DropConnection(Exception):
    """Ends a request without an answer."""


@dataclass
class Answer:
    body: Any
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)


@dataclass
class Request:
    method: str
    path: str
    query: dict[str, str]
    headers: Message
    raw: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.raw or b"{}")


class FakeServer:
    """State and behaviour of the server; a test changes both as it needs."""

    def __init__(self) -> None:
        self.blobs: dict[str, bytes] = {}
        self.partial: dict[tuple[str, str], bytearray] = {}
        self.uploads: dict[str, dict[str, Any]] = {}
        self.artifacts: dict[str, dict[str, Any]] = {}
        self.requests: list[Request] = []
        self.base_models = ["tiny"]
        self.suites: dict[str, dict[str, Any]] = {"tickets": {"name": "tickets", "reference": "tickets@1"}}
        # The states that successive looks at a submission or run find; the last one stays.
        self.submission_states: list[dict[str, Any]] = [decided("passed", rule("ood_ratio", "passed"))]
        self.run_states: list[dict[str, Any]] = []
        self.training_documents: dict[str, Any] = {}
        self.training_curves: dict[str, Any] = {}
        self.comparison: dict[str, Any] = {}
        self.channels: dict[str, dict[str, Any]] = {}
        self.manifests: dict[str, dict[str, Any]] = {}
        self.jobs: dict[str, dict[str, Any]] = {}
        self.events: list[dict[str, Any]] = []
        self.ready: dict[str, Any] = {"status": "ready", "checks": {"database": {"ok": True, "detail": ""}}}
        self.response_headers: dict[str, str] = {}
        # Called with each request before it is served; raises to misbehave.
        self.before: Callable[[Request], None] = lambda _: None
        self.download_limit: list[int] = []
        self.ignores_range = False
        self.corrupts_downloads = 0

    def store(self, files: dict[str, bytes], kind: str = "adapter") -> str:
        """Put an artifact into the store and return its digest."""
        listed = []
        for path, content in files.items():
            sha256 = hashlib.sha256(content).hexdigest()
            self.blobs[sha256] = content
            listed.append({"path": path, "size_bytes": len(content), "sha256": sha256})
        return self._record(kind, listed)

    def _record(self, kind: str, files: list[dict[str, Any]]) -> str:
        manifest = ArtifactManifest.from_json(files)
        document: dict[str, Any] = {"digest": manifest.digest, "kind": kind, "files": manifest.to_json()}
        document |= {"num_files": manifest.num_files, "size_bytes": manifest.size_bytes}
        self.artifacts[manifest.digest] = document
        return manifest.digest

    def promote_to(self, channel: str, digest: str, *, form: str = "merged", version: int = 3) -> None:
        """Let a channel serve an artifact."""
        current = {"adapter": "tickets", "version": version, "promotion_id": 7}
        current |= {"promoted_at": "2026-01-02T03:04:05+00:00", "promoted_by": "ada"}
        self.channels[channel] = {
            "name": channel,
            "form": form,
            "etag": f'"{channel}-{version}"',
            "current": current,
            "history_url": "",
        }
        self.manifests[channel] = {
            "channel": channel,
            "etag": f'"{channel}-{version}"',
            "form": form,
            "base_model": {"name": "tiny", "artifact": "b" * 64},
            "adapter": "tickets",
            "version": version,
            "artifact": digest,
            "files": [file | {"url": "http://elsewhere/x"} for file in self.artifacts[digest]["files"]],
            "decision": {"id": "d", "verdict": "passed"},
            "promoted_at": current["promoted_at"],
        }

    def sent(self, method: str, path_part: str) -> list[Request]:
        """The requests so far of a method whose path contains something."""
        return [item for item in self.requests if item.method == method and path_part in item.path]

    def handle(self, request: Request) -> Answer:
        """Serve a request."""
        self.requests.append(request)
        self.before(request)
        if request.path == "/health/ready":
            return Answer(self.ready, 200 if self.ready["status"] == "ready" else 503)
        if request.headers.get("Authorization") != f"Bearer {TOKEN}":
            raise Refusal(401, "not-authenticated", "The token is not valid.")
        path = request.path.removeprefix("/api/v1/")
        for method, pattern, handler in _ROUTES:
            match = re.fullmatch(pattern, path)
            if match and method == request.method:
                return handler(self, request, *map(unquote, match.groups()))
        raise Refusal(404, "not-found", f"There is nothing at {request.path}.")

    def whoami(self, _: Request) -> Answer:
        scopes = ["read", "submit", "promote", "pull"]
        return Answer(
            {"token_name": "ci", "user": "ada", "scopes": scopes, "adapters": None, "expires_at": None}
        )

    def list_base_models(self, _: Request) -> Answer:
        results = [{"name": name, "artifact": "b" * 64} for name in self.base_models]
        return Answer({"next": None, "previous": None, "results": results})

    def create_base_model(self, request: Request) -> Answer:
        self.base_models.append(request.json["name"])
        return Answer(request.json | {"architecture": "LlamaForCausalLM", "num_parameters": 1234}, 201)

    def create_upload(self, request: Request) -> Answer:
        upload_id = f"upload-{len(self.uploads) + 1}"
        self.uploads[upload_id] = {"id": upload_id, "state": "open", "artifact": None, **request.json}
        return Answer(self._upload_document(upload_id), 201)

    def _upload_document(self, upload_id: str) -> dict[str, Any]:
        upload = self.uploads[upload_id]
        files = []
        for file in upload["files"]:
            is_complete = file["sha256"] in self.blobs
            received = self.partial.get((upload_id, file["sha256"]), b"")
            received_bytes = file["size_bytes"] if is_complete else len(received)
            files.append(file | {"received_bytes": received_bytes, "is_complete": is_complete})
        return upload | {"files": files, "chunk_size_bytes": CHUNK_BYTES, "expires_at": None}

    def get_upload(self, _: Request, upload_id: str) -> Answer:
        if upload_id not in self.uploads:
            raise Refusal(404, "upload-not-found")
        return Answer(self._upload_document(upload_id))

    def put_blob(self, request: Request, upload_id: str, sha256: str) -> Answer:
        size_bytes = next(
            file["size_bytes"] for file in self.uploads[upload_id]["files"] if file["sha256"] == sha256
        )
        part = self.partial.setdefault((upload_id, sha256), bytearray())
        content_range = request.headers.get("Content-Range")
        start, total = 0, len(request.raw)
        if content_range:
            start, last, total = map(int, re.findall(r"\d+", content_range))
            assert last - start + 1 == len(request.raw) <= CHUNK_BYTES
        assert total == size_bytes
        if start != len(part):
            raise Refusal(409, "upload-offset-mismatch", received_bytes=len(part))
        part += request.raw
        if len(part) == total:
            content = bytes(part)
            part.clear()
            if hashlib.sha256(content).hexdigest() != sha256:
                raise Refusal(422, "blob-hash-mismatch", received_bytes=0)
            self.blobs[sha256] = content
        is_complete = sha256 in self.blobs
        received_bytes = total if is_complete else len(part)
        return Answer({"sha256": sha256, "received_bytes": received_bytes, "is_complete": is_complete})

    def commit_upload(self, _: Request, upload_id: str) -> Answer:
        upload = self.uploads[upload_id]
        missing = [file for file in upload["files"] if file["sha256"] not in self.blobs]
        if missing:
            raise Refusal(409, "upload-incomplete")
        upload["artifact"], upload["state"] = self._record(upload["kind"], upload["files"]), "committed"
        return Answer({"artifact": upload["artifact"], "num_files": 1, "size_bytes": 1}, 201)

    def get_artifact(self, _: Request, digest: str) -> Answer:
        if digest not in self.artifacts:
            raise Refusal(404, "artifact-not-found")
        return Answer(self.artifacts[digest])

    def get_artifact_file(self, request: Request, digest: str, path: str) -> Answer:
        file = next(file for file in self.artifacts[digest]["files"] if file["path"] == path)
        content = self.blobs[file["sha256"]]
        if self.corrupts_downloads:
            self.corrupts_downloads -= 1
            content = b"x" * len(content)
        if (wanted := request.headers.get("Range")) and not self.ignores_range:
            start = int(re.findall(r"\d+", wanted)[0])
            headers = {"Content-Range": f"bytes {start}-{len(content) - 1}/{len(content)}"}
            return Answer(content[start:], 206, headers)
        return Answer(content)

    def create_dataset_version(self, request: Request, name: str) -> Answer:
        body = request.json
        content = self.blobs[self.artifacts[body["artifact"]]["files"][0]["sha256"]]
        answer = {"dataset": name, "number": 1, "reference": f"{name}@1", "is_verified": True, **body}
        return Answer(answer | {"num_examples": content.count(b"\n")}, 201)

    def get_suite(self, _: Request, name: str) -> Answer:
        if name not in self.suites:
            raise Refusal(404, "suite-not-found", f"There is no suite '{name}'.")
        return Answer(self.suites[name])

    def create_suite(self, request: Request) -> Answer:
        name = request.json["definition"]["name"]
        self.suites[name] = {"name": name, "number": 1, "reference": f"{name}@1", **request.json}
        return Answer(self.suites[name], 201)

    def create_submission(self, request: Request) -> Answer:
        return Answer(submission_document() | {"artifact": request.json["artifact"]}, 201)

    def list_submissions(self, _: Request) -> Answer:
        return Answer({"next": None, "previous": None, "results": self.submission_states[-1:]})

    def get_submission(self, _: Request, __: str) -> Answer:
        return Answer(_next_state(self.submission_states))

    def list_examples(self, _: Request, __: str) -> Answer:
        row = {"example_id": "t-1", "role": "ood", "form": "merged", "score": 0.0, "reference": "{}"}
        row |= {"messages": [{"role": "user", "content": "hi"}], "output": "[red]\x1b[2Jbad[/red]"}
        return Answer({"next": None, "previous": None, "results": [row]})

    def act(self, _: Request, *__: str) -> Answer:
        return Answer({}, 202)

    def create_run(self, _: Request) -> Answer:
        return Answer(self.run_states[0], 201)

    def get_run(self, _: Request, __: str) -> Answer:
        return Answer(_next_state(self.run_states))

    def list_runs(self, _: Request) -> Answer:
        return Answer({"next": None, "previous": None, "results": self.run_states[-1:]})

    def vary_run(self, _: Request, __: str) -> Answer:
        return Answer(self.run_states[0], 201)

    def list_training_documents(self, _: Request, __: str) -> Answer:
        return Answer({"results": self.training_documents})

    def list_training_curves(self, _: Request, __: str) -> Answer:
        return Answer({"results": self.training_curves})

    def compare_run(self, _: Request, __: str) -> Answer:
        return Answer(self.comparison)

    def list_channels(self, _: Request) -> Answer:
        return Answer({"next": None, "previous": None, "results": list(self.channels.values())})

    def get_channel(self, _: Request, name: str) -> Answer:
        if name not in self.channels:
            raise Refusal(404, "channel-not-found")
        channel = self.channels[name]
        return Answer(channel, headers={"ETag": channel["etag"]})

    def create_channel(self, request: Request) -> Answer:
        channel = request.json | {"etag": '"new"', "current": None, "history_url": ""}
        self.channels[channel["name"]] = channel
        return Answer(channel, 201)

    def change_channel(self, request: Request, name: str, _: str) -> Answer:
        channel = self.channels[name]
        if request.headers.get("If-Match") is None:
            raise Refusal(428, "precondition-required")
        if request.headers["If-Match"] != channel["etag"]:
            raise Refusal(412, "channel-changed", "The channel has changed.")
        version = request.json.get("version", 2)
        if version == 666 and not request.json.get("override"):
            raise Refusal(409, "version-not-passed", "tickets@666 was rejected.")
        current = {"adapter": "tickets", "version": version, "promotion_id": 8}
        return Answer(channel | {"current": current, "etag": '"changed"'})

    def get_history(self, _: Request, name: str) -> Answer:
        row = {
            "id": 7,
            "kind": "promote",
            "adapter": "tickets",
            "version": 3,
            "reason": "good",
            "channel": name,
        }
        return Answer({"next": None, "previous": None, "results": [row]})

    def get_manifest(self, _: Request, name: str) -> Answer:
        if name not in self.manifests:
            raise Refusal(404, "channel-empty", f"Nothing is promoted to {name}.")
        return Answer(self.manifests[name])

    def list_jobs(self, request: Request) -> Answer:
        jobs = list(self.jobs.values())
        if "cursor" not in request.query and len(jobs) > 1:
            # Another host than the one asked, as behind a proxy.
            return Answer({"next": "http://internal:1/api/v1/jobs?cursor=2", "results": jobs[:1]})
        return Answer({"next": None, "results": jobs[1:] if "cursor" in request.query else jobs})

    def get_job(self, _: Request, job_id: str) -> Answer:
        return Answer(self.jobs[job_id])

    def list_events(self, request: Request, _: str) -> Answer:
        after = int(request.query["after"])
        return Answer({"results": [event for event in self.events if event["sequence"] > after][:2]})


def _next_state(states: list[dict[str, Any]]) -> dict[str, Any]:
    return states.pop(0) if len(states) > 1 else states[0]


_ROUTES: list[tuple[str, str, Callable[..., Answer]]] = [
    ("GET", "whoami", FakeServer.whoami),
    ("GET", "base-models", FakeServer.list_base_models),
    ("POST", "base-models", FakeServer.create_base_model),
    ("POST", "uploads", FakeServer.create_upload),
    ("GET", "uploads/([^/]+)", FakeServer.get_upload),
    ("PUT", "uploads/([^/]+)/blobs/([^/]+)", FakeServer.put_blob),
    ("POST", "uploads/([^/]+)/commit", FakeServer.commit_upload),
    ("GET", "artifacts/([^/]+)", FakeServer.get_artifact),
    ("GET", "artifacts/([^/]+)/files/(.+)", FakeServer.get_artifact_file),
    ("POST", "datasets/([^/]+)/versions", FakeServer.create_dataset_version),
    ("GET", "suites/([^/]+)", FakeServer.get_suite),
    ("POST", "suites", FakeServer.create_suite),
    ("POST", "submissions", FakeServer.create_submission),
    ("GET", "submissions", FakeServer.list_submissions),
    ("GET", "submissions/([^/]+)", FakeServer.get_submission),
    ("GET", "submissions/([^/]+)/examples", FakeServer.list_examples),
    ("POST", "submissions/([^/]+)/(cancel|retry)", FakeServer.act),
    ("POST", "baselines", FakeServer.create_run),
    ("GET", "baselines/([^/]+)", FakeServer.get_run),
    ("POST", "training-runs", FakeServer.create_run),
    ("GET", "training-runs", FakeServer.list_runs),
    ("GET", "training-runs/([^/]+)", FakeServer.get_run),
    ("GET", "training-runs/([^/]+)/documents", FakeServer.list_training_documents),
    ("GET", "training-runs/([^/]+)/metrics", FakeServer.list_training_curves),
    ("GET", "training-runs/([^/]+)/comparison", FakeServer.compare_run),
    ("POST", "training-runs/([^/]+)/variations", FakeServer.vary_run),
    ("GET", "channels", FakeServer.list_channels),
    ("POST", "channels", FakeServer.create_channel),
    ("GET", "channels/([^/]+)", FakeServer.get_channel),
    ("POST", "channels/([^/]+)/(promote|rollback)", FakeServer.change_channel),
    ("GET", "channels/([^/]+)/history", FakeServer.get_history),
    ("GET", "channels/([^/]+)/manifest", FakeServer.get_manifest),
    ("GET", "jobs", FakeServer.list_jobs),
    ("GET", "jobs/([^/]+)", FakeServer.get_job),
    ("GET", "jobs/([^/]+)/events", FakeServer.list_events),
    ("POST", "jobs/([^/]+)/cancel", FakeServer.act),
]
