from collections.abc import Iterator
from pathlib import Path

import pytest

from client.api import AssayApi
from client.http import AssayHttp
from client.retries import RetryPolicy
from tests.client.fake_server import TOKEN, FakeServer
from tests.client.running_server import RunningServer


@pytest.fixture
def fake() -> FakeServer:
    return FakeServer()


@pytest.fixture
def server_url(fake: FakeServer) -> Iterator[str]:
    with RunningServer(fake) as server:
        yield server.url


@pytest.fixture
def retry_policy() -> RetryPolicy:
    return RetryPolicy(max_attempts=4, sleep=lambda _: None)


@pytest.fixture
def api(server_url: str, retry_policy: RetryPolicy) -> Iterator[AssayApi]:
    with AssayHttp(server_url, TOKEN, retry_policy=retry_policy) as http:
        yield AssayApi(http)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "files"
    path.mkdir()
    return path
