"""Admin pages of the registry."""

from registry.admin import access, adapters, artifacts, channels, datasets, jobs, users

__all__ = ["access", "adapters", "artifacts", "channels", "datasets", "jobs", "users"]
