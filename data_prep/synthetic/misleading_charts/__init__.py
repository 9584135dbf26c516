"""CHARTOM-style pairs: one data set drawn honestly and so as to mislead, with questions.

``families`` makes the data, the questions and what a deceived reader answers; ``drawing`` draws
both charts; ``export`` writes them in the shape that ``custos bench`` reads.
"""
