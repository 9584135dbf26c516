"""Made training data whose labels are true by construction.

A made row depends on the arguments of its maker and its own number alone, not on how many are
made: a longer run begins with the shorter one.
"""
