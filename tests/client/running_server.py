"""Puts the fake server behind a real socket."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

from tests.client.fake_server import Answer, DropConnection, FakeServer, Refusal, Request


class RunningServer:
    """The fake server behind a real socket, for the time of a test."""

    def __init__(self, fake: FakeServer) -> None:
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), _make_handler(fake))
        self._http.daemon_threads = True
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True)
        self.url = f"http://127.0.0.1:{self._http.server_port}"

    def __enter__(self) -> "RunningServer":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._http.shutdown()
        self._http.server_close()


def _make_handler(fake: FakeServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        # Head and body are sent separately; without this each answer waits 40 ms for an acknowledgement.
        disable_nagle_algorithm = True

        def _serve(self) -> None:
            raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            parts = urlsplit(self.path)
            query = {key: values[0] for key, values in parse_qs(parts.query).items()}
            request = Request(self.command, parts.path, query, self.headers, raw)
            try:
                answer = fake.handle(request)
            except Refusal as refusal:
                answer = Answer(refusal.document, refusal.status)
            except DropConnection:
                self.close_connection = True
                return
            self._write(answer)

        def _write(self, answer: Answer) -> None:
            is_file = isinstance(answer.body, bytes)
            content = answer.body if is_file else json.dumps(answer.body).encode()
            self.send_response(answer.status)
            self.send_header("Content-Length", str(len(content)))
            self.send_header("Content-Type", "application/octet-stream" if is_file else "application/json")
            for name, value in {**fake.response_headers, **answer.headers}.items():
                self.send_header(name, value)
            self.end_headers()
            if is_file and fake.download_limit:
                content = content[: fake.download_limit.pop(0)]
                self.close_connection = True
            self.wfile.write(content)

        do_GET = do_POST = do_PUT = do_HEAD = _serve

        def log_message(self, format: str, *args: object) -> None:
            pass

    return Handler
