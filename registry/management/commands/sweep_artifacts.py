"""`manage.py sweep_artifacts`: removes stored bytes that no artifact names."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand
from django.utils import timezone

from registry.services.actors import SYSTEM
from registry.services.idempotency import delete_old_answers
from registry.services.sweeping import sweep_orphans
from registry.services.uploads import expire_uploads


class Command(BaseCommand):
    """Ends overdue uploads and removes orphaned bytes; safe beside a running server."""

    help = "Removes stored bytes that no artifact and no open upload names."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declares the options."""
        parser.add_argument("--min-age-hours", type=float, default=24.0, help="Protection time; at least 1.")
        parser.add_argument("--dry-run", action="store_true", help="Count, remove nothing.")

    def handle(self, **options: Any) -> None:
        """Sweeps and says what went."""
        is_dry_run: bool = options["dry_run"]
        if not is_dry_run:
            now = timezone.now()
            num_expired = expire_uploads(now=now, actor=SYSTEM)
            num_answers = delete_old_answers(now=now)
            self.stdout.write(f"{num_expired} uploads expired, {num_answers} kept answers forgotten")
        report = sweep_orphans(min_age_seconds=options["min_age_hours"] * 3600, is_dry_run=is_dry_run)
        verb = "would remove" if is_dry_run else "removed"
        self.stdout.write(
            f"{verb} {report.num_blobs} blobs ({report.size_bytes} bytes), "
            f"{report.num_partial_uploads} partial uploads, {report.num_temporary_files} temporary files"
        )
