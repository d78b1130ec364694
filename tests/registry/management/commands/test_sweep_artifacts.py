"""`manage.py sweep_artifacts`; what is swept is tested with the service."""

from io import StringIO

import pytest
from django.core.management import call_command

from tests.fixtures.registry import store_files


@pytest.mark.django_db
def test_says_what_went() -> None:
    store_files({"a": b"x"}, kind="other")
    out = StringIO()
    call_command("sweep_artifacts", "--dry-run", stdout=out)
    assert out.getvalue().startswith("would remove 0 blobs (0 bytes)")
    out = StringIO()
    call_command("sweep_artifacts", stdout=out)
    assert "removed 0 blobs (0 bytes), 0 partial uploads, 0 temporary files" in out.getvalue()
