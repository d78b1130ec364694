"""Scoring of single outputs: strict JSON, declared fields, schema validity, regression rules, behaviour."""
