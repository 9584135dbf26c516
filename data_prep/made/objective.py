"""Responses of reasoning models to questions with objective answers.

Problems of mathematics are in ``mathematics``; here are those whose answer is one of a few texts:
options, classes and short facts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Any, Literal

from data_prep.made.mathematics import KINDS, Form, Problem, make_problem
from data_prep.made.words.names import Language
from data_prep.made.words.wordings import WordSplit, draw_weighted, seeded_rng, words_of
from judging.rules.answer_options import letter_of
from judging.tasks.hieval_qs import CORRECT, WRONG
from judging.types import LabelledExample

Ending = Literal["right", "wrong", "cut", "two"]
SHARES: dict[Ending, int] = {"right": 50, "wrong": 40, "cut": 5, "two": 5}
"""Share of rows by what the response ends with, in percent: one answer, none, or a right and a
wrong one. Only the first is Correct."""
KIND_SHARES = {**dict.fromkeys(KINDS, 5), "option": 14, "class": 12, "fact": 14}
ROWS_PER_QUESTION = 4
CHINESE_SHARE = 0.3
MOST_STEPS = 16
"""Sentences of reasoning; a third of the responses has none."""
MOST_OPTIONS = 5


def generate_objective(num_rows: int, seed: int, split: WordSplit) -> Iterator[LabelledExample]:
    """Stream examples of task ``hieval-qs``, mode ``any``: ``Correct`` or ``Wrong`` for certain.

    Every four consecutive rows answer the same question.
    """
    name = f"objective-{split}-{seed}"
    for index in range(num_rows):
        problem = _draw_problem(seeded_rng(name, index // ROWS_PER_QUESTION), split)
        writer = _Writer(seeded_rng(name, "response", index), problem, split)
        response, ending, described = writer.write()
        yield LabelledExample(
            id=f"{name}-{index}",
            task="hieval-qs",
            question=problem.question,
            choices=problem.choices,
            references=problem.references,
            reference_mode="any",
            responses=(response,),
            label=CORRECT if ending == "right" else WRONG,
            metadata={
                "kind": problem.kind,
                "language": problem.language,
                "ending": ending,
                **described,
            },
            group=problem.question,  # another drawing may ask the same
            source="objective",
        )


def _draw_problem(rng: Random, split: WordSplit) -> Problem:
    kind = draw_weighted(rng, KIND_SHARES)
    language: Language = "zh" if rng.random() < CHINESE_SHARE else "en"
    if kind in _CHOICES:
        return _CHOICES[kind](rng, language, split)
    return make_problem(rng, kind, language)


def _forms(kind: str, text: str, letter: str = "") -> tuple[Form, ...]:
    """Write an answer in every form of a kind, with its letter if it is an option."""
    slots = {"@a": text, "@l": letter, "@A": text.capitalize(), "@U": text.upper()}
    return tuple(
        Form(template, _filled(template, slots), held_out=split == "test")
        for split in ("train", "test")
        for template in words_of("objective")[kind][split]
    )


def _filled(template: str, slots: dict[str, str]) -> str:
    for slot, value in slots.items():
        template = template.replace(slot, value)
    return template


def _draw_table(rng: Random, name: str, language: Language) -> dict[str, Any]:
    tables = [table for table in words_of("objective")[name] if table["language"] == language]
    chosen: dict[str, Any] = rng.choice(tables)
    return chosen


def _draw_fact(
    rng: Random, language: Language, split: WordSplit
) -> tuple[str, list[str], list[str]]:
    """Draw a question, the names of its answer, and the answers to its table's other questions."""
    table = _draw_table(rng, "facts", language)
    pairs: dict[str, str] = table["pairs"]["train"] | table["pairs"]["test"]
    asked = rng.choice(list(table["pairs"][split]))
    others = [answer.split("=")[0] for about, answer in pairs.items() if about != asked]
    return rng.choice(table["asks"]).replace("@p", asked), pairs[asked].split("="), others


def _make_fact(rng: Random, language: Language, split: WordSplit) -> Problem:
    """Draw a question about the world whose answer may have several names."""
    question, names, others = _draw_fact(rng, language, split)
    right = tuple(form for name in names for form in _forms("fact_forms", name))
    wrong = tuple(_forms("fact_forms", other) for other in rng.sample(others, 3))
    return Problem("fact", language, question, (names[0],), right, wrong)


def _make_option(rng: Random, language: Language, split: WordSplit) -> Problem:
    """Draw a question with lettered options, of which the reference is the letter or the text."""
    question, names, others = _draw_fact(rng, language, split)
    texts = [names[0], *rng.sample(others, rng.randint(2, MOST_OPTIONS - 1))]
    rng.shuffle(texts)
    right = texts.index(names[0])
    mark = rng.choice(words_of("objective")["option_marks"])
    is_listed = rng.random() < 0.5
    between = rng.choice(("\n", "  "))
    options = between.join(
        _filled(mark, {"@a": text, "@l": letter_of(index)}) for index, text in enumerate(texts)
    )
    asked = rng.choice(words_of("objective")["questions"]["option"][language])
    forms = [_forms("option_forms", text, letter_of(index)) for index, text in enumerate(texts)]
    return Problem(
        "option",
        language,
        asked.replace("@p", question).replace("@o", "" if is_listed else options).strip(),
        (letter_of(right) if rng.random() < 0.6 else names[0],),
        forms.pop(right),
        tuple(forms),
        tuple(texts) if is_listed else (),
    )


def _make_class(rng: Random, language: Language, split: WordSplit) -> Problem:
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
    wrong = tuple(_forms("class_forms", other) for other in labels if other != label)
    question = _filled(asked, slots)
    return Problem("class", language, question, (label,), _forms("class_forms", label), wrong)


_CHOICES: dict[str, Callable[[Random, Language, WordSplit], Problem]] = {
    "option": _make_option,
    "class": _make_class,
    "fact": _make_fact,
}
"""How questions of each kind are drawn."""


class _Writer:
    """Puts one response to a problem into words."""

    def __init__(self, rng: Random, problem: Problem, split: WordSplit) -> None:
        self.rng, self.problem, self.split = rng, problem, split

    def write(self) -> tuple[str, Ending, dict[str, str]]:
        """Write the response; give also how it ends, and the form and layout of its answer."""
        rng, problem = self.rng, self.problem
        ending = draw_weighted(rng, SHARES)
        right, wrong = self._form(problem.right), self._form(rng.choice(problem.wrong))
        final = wrong if ending == "wrong" else right
        layout = rng.choice(self._wordings("finals"))
        has_draft = rng.random() < 0.5 or ending == "cut"
        draft = self._form(rng.choice(problem.wrong)) if ending != "wrong" else right
        steps = self._steps()
        if has_draft:
            text = self._fill(rng.choice(self._wordings("drafts")), draft)
            steps.insert(rng.randint(0, len(steps)), text)
        is_thought = bool(steps) and rng.random() < 0.4
        if ending == "cut":
            steps.append(rng.choice(self._value_steps()).replace("@v", right.shown))
            steps.append(rng.choice(self._wordings("cut")))
            return self._joined(steps), ending, {"form": right.name, "layout": "cut"}
        last = self._fill(layout, final)
        if ending == "two":
            last = self._joined([last, self._fill(rng.choice(self._wordings("second")), wrong)])
        if is_thought:
            opening, closing = rng.choice(words_of("objective")["thoughts"][self.split])
            response = f"{opening}{self._joined(steps)}{closing}{last}"
        else:
            is_sentence = layout[0].isalpha() and "\n" not in layout
            gap = " " if is_sentence and rng.random() < 0.4 else "\n\n"
            response = gap.join(filter(None, [self._joined(steps), last]))
        return response, ending, {"form": final.name, "layout": layout}

    def _form(self, forms: Sequence[Form]) -> Form:
        is_test = self.split == "test"
        return self.rng.choice([form for form in forms if form.held_out == is_test])

    def _wordings(self, name: str) -> list[str]:
        found: list[str] = words_of("objective")[name][self.problem.language][self.split]
        return found

    def _steps(self) -> list[str]:
        """Draw sentences of reasoning, with values on the way that are no answers."""
        rng = self.rng
        num_steps = rng.choice((0, rng.randint(1, 4), rng.randint(5, MOST_STEPS)))
        sentences = self._wordings("steps")
        drawn = rng.sample(sentences, min(num_steps, len(sentences)))
        drawn += rng.choices(self._value_steps(), k=num_steps - len(drawn))
        rng.shuffle(drawn)
        return [text.replace("@v", str(rng.randint(2, 400))) for text in drawn]

    def _value_steps(self) -> list[str]:
        return [text for text in self._wordings("steps") if "@v" in text]

    def _fill(self, template: str, form: Form) -> str:
        return _filled(template, {"@m": form.shown, "@a": form.shown, "@b": form.boxed})

    def _joined(self, sentences: Sequence[str]) -> str:
        space = "" if self.problem.language == "zh" else " "
        return self.rng.choice(("\n", "\n\n", space)).join(sentences)
