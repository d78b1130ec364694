"""Many machines: everything that matters must be stated in the environment."""

from config import env
from config.settings.base import *  # noqa: F403 - settings modules are built this way
from config.settings.databases import parse_database_url

SECRET_KEY = env.get_str("ASSAY_SECRET_KEY")
ALLOWED_HOSTS = env.get_list("ASSAY_ALLOWED_HOSTS")
DATABASES = {"default": parse_database_url(env.get_str("DATABASE_URL"))}
CELERY_BROKER_URL = env.get_str("REDIS_URL")
CSRF_TRUSTED_ORIGINS = env.get_list("ASSAY_CSRF_TRUSTED_ORIGINS")
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
SECURE_SSL_REDIRECT = env.get_bool("ASSAY_SSL_REDIRECT", True)
SECURE_HSTS_SECONDS = env.get_int("ASSAY_HSTS_SECONDS", 3600, minimum=0)
SESSION_COOKIE_SECURE = True
CSRF_COOKIE_SECURE = True
