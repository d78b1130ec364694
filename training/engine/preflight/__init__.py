"""What is tried out before the first step, in the handbook's order (MISSION T1): the data made visible, a few
examples learnt by heart, the first real step.
"""
