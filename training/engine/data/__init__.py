"""Training data: reading, leakage against evaluation sets, mixing. No torch here."""
