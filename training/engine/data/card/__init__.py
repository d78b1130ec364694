"""The dataset card: what a dataset holds, in numbers, findings and lineage. No torch here."""
