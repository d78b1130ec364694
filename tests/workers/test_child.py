"""What a job process is given of the worker's environment."""

import pytest

from workers.child import child_environment


def test_secrets_and_addresses_stay_with_the_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    secret = (
        "ASSAY_SECRET_KEY",
        "DATABASE_URL",
        "REDIS_URL",
        "AWS_SECRET_ACCESS_KEY",
        "DJANGO_SETTINGS_MODULE",
    )
    for name in secret:
        monkeypatch.setenv(name, "secret")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    environment = child_environment()
    assert environment["CUDA_VISIBLE_DEVICES"] == "1"
    assert "PATH" in environment
    assert "secret" not in environment.values()
