"""Pairs of responses to questions about pictures of known data, with critiques of what differs."""

from data_prep.synthetic.preference_pairs.generate import PairRow, generate
from data_prep.synthetic.preference_pairs.responses import FormSplit

__all__ = ["FormSplit", "PairRow", "generate"]
