"""Settings of the test suite: SQLite unless DATABASE_URL names another server; nothing is sent to a broker."""

import tempfile
from pathlib import Path

from config import env
from config.settings.base import *  # noqa: F403 - settings modules are built this way
from config.settings.databases import parse_database_url

ASSAY_HOME = env.get_path("ASSAY_HOME", Path(tempfile.gettempdir()) / "assay-tests")
SECRET_KEY = "only for tests"  # noqa: S105 - no deployment reads this module
ALLOWED_HOSTS = ["testserver", "localhost", "127.0.0.1"]
DATABASES = {"default": parse_database_url(env.get_str("DATABASE_URL", f"sqlite:///{ASSAY_HOME / 'test.sqlite3'}"))}
CELERY_BROKER_URL = env.get_str("REDIS_URL", "memory://")
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
}
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
