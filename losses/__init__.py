"""Loss modules: tensors in, scalar out."""

from losses.class_weights import class_weights
from losses.focal import FocalLoss
from losses.sequence import normalised_logprob, token_logprobs
from losses.unlikelihood import UnlikelihoodLoss

__all__ = [
    "FocalLoss",
    "UnlikelihoodLoss",
    "class_weights",
    "normalised_logprob",
    "token_logprobs",
]
