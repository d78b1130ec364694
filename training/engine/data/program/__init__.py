"""The data commands on files alone, without a server: `python -m training.engine.data`, which `assay dataset`
calls.
"""
