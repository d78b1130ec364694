"""One machine: SQLite, an embedded Redis-protocol server and artifacts under ASSAY_HOME.

`config.stack` makes the secret key at first start and hands it over in the environment; management commands
that are run by hand read the same file.
"""

from config import env
from config.settings.base import *  # noqa: F403 - settings modules are built this way
from config.settings.base import ASSAY_HOME
from config.settings.broker import find_broker_socket
from config.settings.databases import parse_database_url
from config.settings.secrets import load_or_create_secret

SECRET_KEY = env.get_str("ASSAY_SECRET_KEY", "") or load_or_create_secret(ASSAY_HOME / "secret_key")
ALLOWED_HOSTS = env.get_list(
    # The address that `assay up` listens on is asked for, too; "0.0.0.0" matches no Host header.
    "ASSAY_ALLOWED_HOSTS",
    ("localhost", "127.0.0.1", "[::1]", env.get_str("ASSAY_HOST", "localhost")),
)
DATABASES = {
    "default": parse_database_url(env.get_str("DATABASE_URL", f"sqlite:///{ASSAY_HOME / 'assay.sqlite3'}"))
}
CELERY_BROKER_URL = env.get_str("REDIS_URL", f"redis+socket://{find_broker_socket(ASSAY_HOME)}")
