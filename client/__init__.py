"""Command line and HTTP client of Assay, for CI jobs and people.

Must not import Django, Celery or torch: a CI job that only submits installs this package, httpx, typer and
rich.
"""

__version__ = "0.1.0"
