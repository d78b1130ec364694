"""The ASGI entry point of the web process."""

import os

from django.conf import settings
from django.core.asgi import get_asgi_application

from config.body_limit import BodyLimit

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings.embedded")

# A chunk of an upload, or a JSON or form body, with room for the form's own framing.
application = BodyLimit(get_asgi_application(), max_bytes=settings.UPLOAD_CHUNK_BYTES + 64 * 1024)
