"""The minimal reproducible experiment (MISSION D6): 200 examples, 200 steps, ten minutes."""
