"""One reading of DATABASE_URL for every deployment."""

from typing import Any

import dj_database_url

SQLITE_OPTIONS: dict[str, Any] = {
    # IMMEDIATE takes the write lock at the beginning, so a transaction waits instead of failing at its
    # first write.
    "transaction_mode": "IMMEDIATE",
    "timeout": 20,
    "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;",
}


def parse_database_url(url: str) -> dict[str, Any]:
    """Django's settings for one database, with what SQLite needs under several processes."""
    parsed: dict[str, Any] = dict(
        dj_database_url.parse(url, conn_max_age=0 if url.startswith("sqlite") else 60)
    )
    if parsed["ENGINE"] == "django.db.backends.sqlite3":
        parsed["OPTIONS"] = {**parsed.get("OPTIONS", {}), **SQLITE_OPTIONS}
    else:
        parsed["CONN_HEALTH_CHECKS"] = True
    return parsed
