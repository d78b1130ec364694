"""Models of this machine as the text generators that data making and the screening ask for.

Here the evaluation's engines meet the training engine's data code: neither imports the other. No engine is
loaded in this process.
"""
