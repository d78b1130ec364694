"""The evaluation engine: prompts, backends, scoring, metrics, statistics, parity and the gate.

PURE: no Django, no Celery, no settings, no environment. Everything outside ``backends`` imports without
torch, transformers or vLLM, because the web process uses the example parser, the suite checks and the gate.
"""
