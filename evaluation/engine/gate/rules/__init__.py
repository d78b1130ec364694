"""The rules, one small function each: settings and evidence in, a finding out.

A missing number, too few examples, unverified references or an unknown leakage check make a rule
inconclusive, never passed (DESIGN section 5, G1).
"""
