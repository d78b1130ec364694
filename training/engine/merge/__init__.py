"""Merging a LoRA adapter into its base model: fp32, tensor by tensor, every tensor accounted for."""
