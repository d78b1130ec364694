"""Versions of the code behind the training app's jobs; part of their cache key."""

TRAIN = "train@3"
PREPARE = "prepare@1"
