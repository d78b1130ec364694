"""A preparation: raw files in; clean, divided, documented sets out (MISSION C)."""
