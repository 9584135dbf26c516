"""Questions whose answer is one of a few texts: options, classes and short facts."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

from data_prep.synthetic.objective.forms import Form, FormSplit, Problem
from data_prep.synthetic.text.names import Language
from data_prep.synthetic.words import words_of
from judging.rules.answer_options import letter_of

_MOST_OPTIONS = 5


def _forms(kind: str, text: str, letter: str = "") -> tuple[Form, ...]:
    """Return an answer in every form of a kind, with its letter if it is an option."""
    templates: dict[str, list[str]] = words_of("objective")[kind]
    return tuple(
        Form(template, _filled(template, text, letter), held_out=split == "test")
        for split in ("train", "test")
        for template in templates[split]
    )


def _filled(template: str, text: str, letter: str) -> str:
    slots = {"@a": text, "@l": letter, "@A": text.capitalize(), "@U": text.upper()}
    for slot, value in slots.items():
        template = template.replace(slot, value)
    return template


def _draw_table(rng: Random, name: str, language: Language) -> dict[str, Any]:
    tables = [table for table in words_of("objective")[name] if table["language"] == language]
    chosen: dict[str, Any] = rng.choice(tables)
    return chosen


def _draw_fact(
    rng: Random, language: Language, split: FormSplit
) -> tuple[str, list[str], list[str]]:
    """Draw a question, the names of its answer, and the answers to its table's other questions."""
    table = _draw_table(rng, "facts", language)
    pairs: dict[str, str] = table["pairs"]["train"] | table["pairs"]["test"]
    asked = rng.choice(list(table["pairs"][split]))
    names = pairs[asked].split("=")
    others = [answer.split("=")[0] for about, answer in pairs.items() if about != asked]
    return rng.choice(table["asks"]).replace("@p", asked), names, others


def make_fact(rng: Random, language: Language, split: FormSplit) -> Problem:
    """Draw a question about the world whose answer may have several names."""
    question, names, others = _draw_fact(rng, language, split)
    right = [form for name in names for form in _forms("fact_forms", name)]
    wrong = tuple(_forms("fact_forms", other) for other in rng.sample(others, 3))
    return Problem("fact", language, question, (names[0],), tuple(right), wrong)


def make_option(rng: Random, language: Language, split: FormSplit) -> Problem:
    """Draw a question with lettered options, of which the reference is the letter or the text."""
    question, names, others = _draw_fact(rng, language, split)
    texts = [names[0], *rng.sample(others, rng.randint(2, _MOST_OPTIONS - 1))]
    rng.shuffle(texts)
    right = texts.index(names[0])
    mark = rng.choice(words_of("objective")["option_marks"])
    is_listed = rng.random() < 0.5
    between = rng.choice(("\n", "  "))
    options = between.join(
        _filled(mark, text, letter_of(index)) for index, text in enumerate(texts)
    )
    asked = rng.choice(words_of("objective")["questions"]["option"][language])
    forms = [_forms("option_forms", text, letter_of(index)) for index, text in enumerate(texts)]
    return Problem(
        "option",
        language,
        asked.replace("@p", question).replace("@o", "" if is_listed else options).strip(),
        (letter_of(right) if rng.random() < 0.6 else names[0],),
        forms[right],
        tuple(form for index, form in enumerate(forms) if index != right),
        tuple(texts) if is_listed else (),
    )


def make_class(rng: Random, language: Language, split: FormSplit) -> Problem:
    """Draw a text that one label of a few fits."""
    table = _draw_table(rng, "classes", language)
    labels = list(table["texts"][split])
    label = rng.choice(labels)
    asked = rng.choice(words_of("objective")["questions"]["class"][language])
    slots = {
        "@p": rng.choice(table["asks"]),
        "@t": rng.choice(table["texts"][split][label]),
        "@l": ", ".join(rng.sample(labels, len(labels))),
    }
    for slot, value in slots.items():
        asked = asked.replace(slot, value)
    wrong = tuple(_forms("class_forms", other) for other in labels if other != label)
    return Problem("class", language, asked, (label,), _forms("class_forms", label), wrong)


CHOICES: dict[str, Callable[[Random, Language, FormSplit], Problem]] = {
    "option": make_option,
    "class": make_class,
    "fact": make_fact,
}
"""How questions of each kind are drawn."""
