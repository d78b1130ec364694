"""Recognises the handbook's symptoms in a running training and in the results of an evaluation (MISSION D3,
T5).

Rules look at plain numbers; nothing here imports torch or changes the training.
"""
