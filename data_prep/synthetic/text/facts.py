"""The facts that every world provides, whatever it is about."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random

from data_prep.synthetic.text.elements import Element
from data_prep.synthetic.text.names import Language


@dataclass(frozen=True)
class Facts:
    """The contents of a world: slots of its question, the answers, and material for responses."""

    slots: Mapping[str, str]
    answers: tuple[Element, ...]
    decoys: tuple[Element, ...]
    """Plausible elements outside the answer set."""
    steps: tuple[str, ...] = ()
    """True sentences that lead to the answer without naming it as such."""
    choices: tuple[str, ...] = ()
    tolerant: bool = False
    """All answers are numbers far enough apart that 5 % cannot confuse them."""
    ordered: bool = False
    """The answers have an order that a response must keep."""
    alternatives: tuple[str, ...] = ()
    """Right on their own (reference mode ``any``); empty where the answers form a set."""


World = Callable[[Random, Language], Facts]
