"""Checks of examples that change nothing and say what a person should look at (MISSION C2, C7)."""
