"""Engines that generate: vLLM, and transformers for machines without it. Only here may they be imported."""
