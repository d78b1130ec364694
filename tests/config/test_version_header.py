"""Every answer names the version of the installed server."""

from importlib.metadata import version

from django.test import Client


def test_an_answer_names_the_version(db: None) -> None:
    assert Client().get("/health/live")["Assay-Version"] == version("assay-gate")


def test_an_answer_that_is_an_error_names_it_too(db: None) -> None:
    assert Client().get("/api/v1/whoami")["Assay-Version"] == version("assay-gate")
