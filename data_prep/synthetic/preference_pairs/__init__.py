"""Pairs of responses to questions about pictures of known data, with critiques of what differs."""

from data_prep.synthetic.preference_pairs.factory import PairRow, generate
from data_prep.synthetic.preference_pairs.sides import FormSplit

__all__ = ["FormSplit", "PairRow", "generate"]
