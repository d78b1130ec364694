"""Readers of file formats: each gives raw rows, one after the other, and names the rows it cannot read."""
