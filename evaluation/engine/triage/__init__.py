"""Triage: should this task be fine-tuned at all (MISSION A1)?

About twenty hand-written samples run on the base model under the best prompt; every failure is sorted by what
it lacks, people confirm it, and the verdict says what helps: fine-tuning, retrieval, code, or another base.
"""
