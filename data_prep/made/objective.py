"""Questions whose answer is one of a few texts: options, classes and short facts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Any, Literal

from data_prep.made.mathematics import KINDS, Form, FormSplit, Problem, make_problem
from data_prep.made.words.names import Language
from data_prep.made.words.wordings import seeded_rng, words_of
from judging.rules.listed_options import letter_of
from judging.tasks.hieval_qs import CORRECT, WRONG
from judging.types import LabelledExample

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


Ending = Literal["right", "wrong", "cut", "two"]
LABELS: dict[Ending, str] = {"right": CORRECT, "wrong": WRONG, "cut": WRONG, "two": WRONG}
SHARES: dict[Ending, int] = {"right": 50, "wrong": 40, "cut": 5, "two": 5}
"""Share of rows by what the response ends with, in percent: one answer, none, or a right and a
wrong one."""
KIND_SHARES = {**dict.fromkeys(KINDS, 5), "option": 14, "class": 12, "fact": 14}
ROWS_PER_QUESTION = 4
CHINESE_SHARE = 0.3
MOST_STEPS = 16
"""Sentences of reasoning; a third of the responses has none."""


def generate_objective(num_rows: int, seed: int, *, held_out: bool) -> Iterator[LabelledExample]:
    """Stream examples of task ``hieval-qs``, mode ``any``: ``Correct`` or ``Wrong`` for certain.

    Every four consecutive rows answer the same question. Row ``i`` depends on ``seed``,
    ``held_out`` and ``i`` alone.

    Args:
        num_rows: How many examples to draw.
        seed: Any integer.
        held_out: Write answers in the forms, layouts and sentences that training data never show,
            and only in those.
    """
    split: FormSplit = "test" if held_out else "train"
    name = f"objective-{split}-{seed}"
    for index in range(num_rows):
        number = index // ROWS_PER_QUESTION
        problem = _draw_problem(seeded_rng(name, number), split)
        writer = _Writer(seeded_rng(name, "response", index), problem, split)
        response, label, described = writer.write()
        yield LabelledExample(
            id=f"{name}-{index}",
            task="hieval-qs",
            question=problem.question,
            choices=problem.choices,
            references=problem.references,
            reference_mode="any",
            responses=(response,),
            label=label,
            metadata={"kind": problem.kind, "language": problem.language, **described},
            group=problem.question,  # another drawing may ask the same
            source="objective",
        )


def _draw_problem(rng: Random, split: FormSplit) -> Problem:
    kind = rng.choices(list(KIND_SHARES), list(KIND_SHARES.values()))[0]
    language: Language = "zh" if rng.random() < CHINESE_SHARE else "en"
    if kind in CHOICES:
        return CHOICES[kind](rng, language, split)
    return make_problem(rng, kind, language)


class _Writer:
    """Puts one response to a problem into words."""

    def __init__(self, rng: Random, problem: Problem, split: FormSplit) -> None:
        self._rng = rng
        self._problem = problem
        self._split = split

    def write(self) -> tuple[str, str, dict[str, str]]:
        """Return the response, its label, and what the row's metadata say of it."""
        rng, problem = self._rng, self._problem
        ending = rng.choices(list(SHARES), list(SHARES.values()))[0]
        right, wrong = self._form(problem.right), self._form(rng.choice(problem.wrong))
        final = wrong if ending == "wrong" else right
        layout = self._wording("finals")
        has_draft = rng.random() < 0.5 or ending == "cut"
        draft = self._form(rng.choice(problem.wrong)) if ending != "wrong" else right
        steps = self._steps()
        if has_draft:
            text = self._fill(self._wording("drafts"), draft)
            steps.insert(rng.randint(0, len(steps)), text)
        is_thought = bool(steps) and rng.random() < 0.4
        if ending == "cut":
            steps.append(self._rng.choice(self._value_steps).replace("@v", right.shown))
            return self._joined([*steps, self._wording("cut")]), LABELS[ending], {
                "ending": ending, "form": right.name, "layout": "cut",
            }  # fmt: skip
        last = self._fill(layout, final)
        if ending == "two":
            last = self._joined([last, self._fill(self._wording("second"), wrong)])
        if is_thought:
            opening, closing = rng.choice(words_of("objective")["thoughts"][self._split])
            response = f"{opening}{self._joined(steps)}{closing}{last}"
        else:
            is_sentence = layout[0].isalpha() and "\n" not in layout
            gap = " " if is_sentence and rng.random() < 0.4 else "\n\n"
            response = gap.join(filter(None, [self._joined(steps), last]))
        described = {"ending": ending, "form": final.name, "layout": layout}
        return response, LABELS[ending], described

    def _form(self, forms: Sequence[Form]) -> Form:
        is_test = self._split == "test"
        return self._rng.choice([form for form in forms if form.held_out == is_test])

    def _wording(self, name: str) -> str:
        return self._rng.choice(self._wordings(name))

    def _wordings(self, name: str) -> list[str]:
        found: list[str] = words_of("objective")[name][self._problem.language][self._split]
        return found

    def _steps(self) -> list[str]:
        """Draw sentences of reasoning, with values on the way that are no answers."""
        num_steps = self._rng.choice((0, self._rng.randint(1, 4), self._rng.randint(5, MOST_STEPS)))
        sentences = self._wordings("steps")
        drawn = self._rng.sample(sentences, min(num_steps, len(sentences)))
        drawn += self._rng.choices(self._value_steps, k=num_steps - len(drawn))
        self._rng.shuffle(drawn)
        return [text.replace("@v", str(self._rng.randint(2, 400))) for text in drawn]

    @property
    def _value_steps(self) -> list[str]:
        return [text for text in self._wordings("steps") if "@v" in text]

    def _fill(self, template: str, form: Form) -> str:
        return (
            template.replace("@m", form.shown).replace("@a", form.shown).replace("@b", form.boxed)
        )

    def _joined(self, sentences: Sequence[str]) -> str:
        zh = self._problem.language == "zh"
        between = self._rng.choice(("\n", "\n\n", "" if zh else " "))
        return between.join(sentences)
