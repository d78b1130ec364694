"""Admin pages of the training app."""

from training.admin import (
    handbook,
    incidents,
    mini_configurations,
    preparations,
    raw_data,
    reviews,
    runs,
)

__all__ = [
    "handbook",
    "incidents",
    "mini_configurations",
    "preparations",
    "raw_data",
    "reviews",
    "runs",
]
