"""Admin pages of the training app."""

from training.admin import runs

__all__ = ["runs"]
