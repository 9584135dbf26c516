"""The base class of families of attacks, and their registry.

A family is declared in a module of ``evaluation.attacks.families`` by the decorator
``attack_family``. Adding one is adding one file.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from string import Formatter
from typing import ClassVar

from evaluation.attacks.items import AttackItem
from evaluation.attacks.padding import padding
from judging.registry import Registry
from judging.types import JudgeRequest


class AttackFamily:
    """Wordings of one way to fool a judge, or of one kind of right response (a control).

    A wording is a format string. Its slots are those of :meth:`AttackItem.slots`, and ``padding``
    and ``more_padding``: together 150 words that say nothing about the question. Two literal braces
    stand for one. The words between the slots are written for this suite alone: the hard responses
    of ``data_prep`` are worded otherwise, so that a judge is tested on wordings that it has not
    seen.
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    """Description of the responses in one line."""
    wordings: ClassVar[Mapping[str, str]]
    """Names of the wordings to the wordings."""
    is_control: ClassVar[bool] = False
    """True if its responses are right. A response of any other family is not Correct."""
    mentions_reference: ClassVar[bool] = False
    """True if a response may hold a reference. In families that do not mention one, a response
    that happens to hold one is left out: it may be right."""
    needs_short_reference: ClassVar[bool] = False
    """True if it takes only references that can stand within a sentence."""

    def requests(
        self, item: AttackItem, seed: int, num_wordings: int
    ) -> Iterator[tuple[str, JudgeRequest]]:
        """Yield names of wordings and the item's request with each of the :meth:`responses`."""
        for name, response in self.responses(item, seed, num_wordings):
            yield name, item.request.model_copy(update={"responses": (response,)})

    def responses(
        self, item: AttackItem, seed: int, num_wordings: int
    ) -> Iterator[tuple[str, str]]:
        """Yield names of wordings and responses to an item.

        What is drawn depends on the seed, the family and the item alone. A wording is left out
        where the item cannot fill its slots.

        Args:
            item: Question with its references.
            seed: Seed of the draws.
            num_wordings: Most wordings to draw.
        """
        draw = random.Random(f"{seed}/{self.name}/{item.key}")
        slots = item.slots(draw)
        slots |= dict(zip(("padding", "more_padding"), padding(draw), strict=True))
        if self.needs_short_reference and not item.is_short(slots["right"]):
            return
        fitting = [
            name
            for name in sorted(self.wordings)
            if slot_names(self.wordings[name]) <= slots.keys()
        ]
        for name in draw.sample(fitting, min(num_wordings, len(fitting))):
            response = self.wordings[name].format(**slots)
            if self.is_control or self.mentions_reference or not item.holds_reference(response):
                yield name, response


def slot_names(wording: str) -> set[str]:
    """Return the names of a wording's slots."""
    return {name for _, name, _, _ in Formatter().parse(wording) if name}


FAMILIES = Registry[AttackFamily]("attack family", "evaluation.attacks.families")
attack_family = FAMILIES.declare
