"""Shapes of rows: how columns become a conversation, and which shape a file has."""
