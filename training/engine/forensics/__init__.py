"""Why a training hit a number that is not finite: the first bad step, what was in it, and the likely cause
(MISSION T4).
"""
