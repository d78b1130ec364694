"""The gate: a policy and the evidence in, a decision out. No model, no database; the web process runs it."""
