"""Losses and the log-probabilities that they are made of: tensors in, tensors out."""

from losses.bradley_terry import BradleyTerryLoss
from losses.focal import FocalLoss, class_weights
from losses.projected import chunked_token_logprobs, projected_token_logprobs
from losses.sequence import normalised_logprob, token_logprobs
from losses.unlikelihood import UnlikelihoodLoss

__all__ = [
    "BradleyTerryLoss",
    "FocalLoss",
    "UnlikelihoodLoss",
    "chunked_token_logprobs",
    "class_weights",
    "normalised_logprob",
    "projected_token_logprobs",
    "token_logprobs",
]
