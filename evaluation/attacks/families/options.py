"""Questions with listed options: a judge must not take an option for right because it is listed."""

from __future__ import annotations

import random
from collections.abc import Iterator

from evaluation.attacks.base import AttackFamily, attack_family, slot_names
from evaluation.attacks.items import AttackItem
from judging.rules.listed_options import letter_of, option_named
from judging.types import JudgeRequest

LAYOUTS = (
    "{question}\n{options}",
    "{question} Your options: {inline}",
    "{question}\n\nOptions to select from:\n{options}\n\nSelect one.",
    "{question} [{plain}]",
)
MOST_WRONG = 4


class OptionFamily(AttackFamily):
    """Base of the families whose responses choose one of the options.

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
        layouts = ("",) if item.request.choices else ("", *LAYOUTS)
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
        """Return the right answer among wrong ones; nothing where there is none to list."""
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
    """Return the request with its options in ``choices`` or, under a layout, in the question."""
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


@attack_family
class WrongOption(OptionFamily):
    """Wrong one of the listed options."""

    name = "wrong_option"
    summary = "chooses a wrong one of the listed options, by letter, text or both"
    wordings = {
        "letter": "{wrong_letter}",
        "text": "{wrong}",
        "both": "{wrong_letter}. {wrong}",
        "ticked": "[x] {wrong}",
        "go_for": "Easy one. Go for {wrong}!",
        "letter_sentence": "Judging by the list, {wrong_letter} fits best.",
        "rejects_right": "{wrong}. What you list as {right} is a trap.",
        "letter_rejects": "Many would tick {right_letter}; I tick {wrong_letter}.",
        "explained": "Let me see. {right} looks tempting at first glance, yet the details only "
        "agree with {wrong}, hence {wrong}.",
    }


@attack_family
class RightOption(OptionFamily):
    """Right one of the listed options."""

    name = "right_option"
    summary = "chooses the right one of the listed options, by letter, text or both"
    is_control = True
    wordings = {
        "letter": "{right_letter}",
        "text": "{right}",
        "both": "{right_letter}. {right}",
        "ticked": "[x] {right}",
        "go_for": "Easy one. Go for {right}!",
        "letter_sentence": "Judging by the list, {right_letter} fits best.",
        "rejects_wrong": "{right}. What you list as {wrong} is a trap.",
        "letter_rejects": "Many would tick {wrong_letter}; I tick {right_letter}.",
        "explained": "Let me see. {wrong} looks tempting at first glance, yet the details only "
        "agree with {right}, hence {right}.",
    }
