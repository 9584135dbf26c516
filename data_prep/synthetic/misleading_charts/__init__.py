"""CHARTOM-style pairs: one data set drawn honestly and misleadingly, with questions.

``families`` makes the data, the questions and what a misled reader answers, family by family;
``drawing`` draws both charts; ``export`` writes pairs in the shape that ``custos bench`` reads.
"""
