"""Merging a LoRA adapter into its base model: fp32 arithmetic, tensor by tensor, every tensor accounted for."""
