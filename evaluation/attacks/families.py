"""Families of attacks and of controls; a family is added in ``words.yaml``, which has the words."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from string import Formatter
from typing import Any

import yaml

from evaluation.attacks.items import AttackItem
from judging.errors import CustosError
from judging.files.yaml_text import load_yaml
from judging.rules.answer_options import letter_of, option_named
from judging.types import JudgeRequest

PADDING_WORDS = 150
"""Fewest words of both parts of the padding together."""
MOST_WRONG = 4
"""Wrong options that are listed beside the right answer of a question without options."""


@cache
def attack_words() -> dict[str, Any]:
    """Read ``words.yaml``: families, wordings, layouts, padding and suffixes."""
    text = Path(__file__).with_name("words.yaml").read_text(encoding="utf-8")
    content: dict[str, Any] = load_yaml(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    return content


@dataclass(frozen=True)
class AttackFamily:
    """Wordings of one way to fool a judge, or of one kind of right response (a control)."""

    name: str
    summary: str
    """Description of the responses in one line."""
    wordings: Mapping[str, str]
    """Names of the wordings to the wordings."""
    is_control: bool = False
    """True if its responses are right. A response of any other family is not Correct."""
    mentions_reference: bool = False
    """True if a response may hold a reference. In families that do not mention one, a response
    that happens to hold one is left out: it may be right."""
    needs_short_reference: bool = False
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
        """Yield names of wordings and the responses that they make of an item.

        There are at most ``num_wordings``. What is drawn depends on the seed, the family and the
        item alone. A wording is left out where the item cannot fill its slots.
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


@dataclass(frozen=True)
class OptionFamily(AttackFamily):
    """Family whose responses choose one of the options.

    The options are the item's own, or its right answer among wrong ones, in ``choices`` or in the
    question. References name the right one by text, by letter or by both.
    """

    def requests(
        self, item: AttackItem, seed: int, num_wordings: int
    ) -> Iterator[tuple[str, JudgeRequest]]:
        """Yield names of wordings and requests; none where one right option cannot be told."""
        draw = random.Random(f"{seed}/{self.name}/{item.key}")
        choices = item.request.choices or self._made_options(item, draw)
        named = {option_named(reference, choices) for reference in item.references}
        rights = [index for index in named if index is not None]
        if len(rights) != 1 or len(choices) < 2:
            return
        [right] = rights
        layouts = ("",) if item.request.choices else ("", *attack_words()["layouts"])
        for name in draw.sample(sorted(self.wordings), min(num_wordings, len(self.wordings))):
            wording = self.wordings[name]
            by_letter = "letter" in " ".join(slot_names(wording))
            layout = draw.choice([each for each in layouts if not (by_letter and "plain" in each)])
            wrong = draw.choice([index for index in range(len(choices)) if index != right])
            response = wording.format(
                right=choices[right],
                right_letter=letter_of(right),
                wrong=choices[wrong],
                wrong_letter=letter_of(wrong),
            )
            yield name, _listed(item.request, response, choices, layout, draw, right)

    def _made_options(self, item: AttackItem, draw: random.Random) -> tuple[str, ...]:
        """List the right answer among wrong ones; nothing where there is none to list."""
        if item.request.reference_mode == "all" and len(item.references) > 1:
            return ()
        right = draw.choice(item.references)
        wrong = draw.sample(item.wrong_answers, min(MOST_WRONG, len(item.wrong_answers)))
        if not wrong or not item.is_short(right):
            return ()
        options = [right, *wrong]
        draw.shuffle(options)
        return tuple(options)


def _listed(
    request: JudgeRequest,
    response: str,
    choices: tuple[str, ...],
    layout: str,
    draw: random.Random,
    right: int,
) -> JudgeRequest:
    """List a request's options in ``choices`` or, under a layout, in the question."""
    lettered = [f"{letter_of(index)}. {text}" for index, text in enumerate(choices)]
    references = request.references
    if not request.choices and "{plain}" not in layout:
        references = draw.choice((references, (letter_of(right),), (lettered[right],)))
    question = request.question
    if layout:
        question = layout.format(
            question=question,
            options="\n".join(lettered),
            inline="  ".join(lettered),
            plain=" | ".join(choices),
        )
    changes = {"question": question, "choices": () if layout else choices}
    return request.model_copy(
        update={**changes, "references": references, "responses": (response,)}
    )


@cache
def families() -> dict[str, AttackFamily]:
    """List all families by name, in alphabetical order."""
    words = attack_words()
    plain = {name: AttackFamily(name, **each) for name, each in words["families"].items()}
    choosing = {name: OptionFamily(name, **each) for name, each in words["option_families"].items()}
    return dict(sorted({**plain, **choosing}.items()))


def family_of(name: str) -> AttackFamily:
    """Look up a family by name; the error for an unknown one lists the known names."""
    if name not in families():
        raise CustosError(f"attack family '{name}' is not one of {', '.join(families())}")
    return families()[name]


def slot_names(wording: str) -> set[str]:
    """Name a wording's slots."""
    return {name for _, name, _, _ in Formatter().parse(wording) if name}


def padding(draw: random.Random) -> tuple[str, str]:
    """Draw two parts of a padding, together ``PADDING_WORDS`` words, that share no sentence."""
    written: list[str] = attack_words()["padding"].splitlines()
    sentences = draw.sample(written, len(written))
    parts = []
    for _ in range(2):
        part: list[str] = []
        while sum(len(sentence.split()) for sentence in part) < PADDING_WORDS / 2:
            part.append(sentences.pop())
        parts.append(" ".join(part))
    first, second = parts
    return first, second
