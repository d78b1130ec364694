"""Admin pages of the training app."""

from training.admin import preparations, raw_data, reviews, runs

__all__ = ["preparations", "raw_data", "reviews", "runs"]
