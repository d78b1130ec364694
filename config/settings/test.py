"""Settings of the test suite: SQLite unless DATABASE_URL names a server; nothing is sent to a broker."""

import os
import tempfile
from pathlib import Path

from config import env
from config.settings.base import *  # noqa: F403 - settings modules are built this way
from config.settings.databases import parse_database_url

ASSAY_HOME = env.get_path("ASSAY_HOME", Path(tempfile.gettempdir()) / "assay-tests")
ARTIFACT_STORE = f"file://{ASSAY_HOME / 'artifacts'}"
ARTIFACT_CACHE = ASSAY_HOME / "cache"
WORK_ROOT = ASSAY_HOME / "work"
STATIC_ROOT = ASSAY_HOME / "static"
ASSAY_HOME.mkdir(parents=True, exist_ok=True)
SECRET_KEY = "only for tests"  # noqa: S105 - no deployment reads this module
ALLOWED_HOSTS = ["testserver", "localhost", "127.0.0.1"]
DATABASES = {
    "default": parse_database_url(env.get_str("DATABASE_URL", f"sqlite:///{ASSAY_HOME / 'test.sqlite3'}"))
}
CELERY_BROKER_URL = env.get_str("REDIS_URL", "memory://")
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
}
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
if DATABASES["default"]["ENGINE"] == "django.db.backends.sqlite3":
    # A file, as in a deployment: SQLite's databases in memory lock in another way and ignore the timeout.
    # Its name is this process's own, so that several test runs do not share it.
    DATABASES["default"]["TEST"] = {"NAME": str(ASSAY_HOME / f"test-{os.getpid()}.sqlite3")}
LOGGING = {**LOGGING, "root": {"handlers": ["console"], "level": "WARNING"}}  # noqa: F405
