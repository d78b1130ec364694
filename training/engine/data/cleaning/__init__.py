"""Cleaning of examples: small steps, each with a typed report (MISSION C3). No torch here."""
