"""Losses and the log-probabilities that they are made of: tensors in, tensors out."""

from losses.bradley_terry import BradleyTerryLoss
from losses.chunked import chunked_token_logprobs
from losses.class_weights import class_weights
from losses.focal import FocalLoss
from losses.liger import projected_token_logprobs
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
