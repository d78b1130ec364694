"""Version of the code behind training jobs; part of their cache key."""

TRAIN = "train@1"
