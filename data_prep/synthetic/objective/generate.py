"""Draw responses of reasoning models to questions with objective answers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random
from typing import Literal

from data_prep.synthetic.objective.choices import CHOICES
from data_prep.synthetic.objective.forms import Form, FormSplit, Problem
from data_prep.synthetic.objective.mathematics import KINDS, make_problem
from data_prep.synthetic.seeds import seeded_rng
from data_prep.synthetic.text.names import Language
from data_prep.synthetic.words import words_of
from judging.tasks.hieval_qs import CORRECT, WRONG
from judging.types import LabelledExample

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
