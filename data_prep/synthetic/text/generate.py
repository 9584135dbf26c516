"""Draw synthetic quick-score examples whose labels hold by construction."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import Literal, TypeVar

from data_prep.synthetic.text import names
from data_prep.synthetic.text.behaviours import BEHAVIOURS, Behaviour, Content, Scene
from data_prep.synthetic.text.facts import Facts
from data_prep.synthetic.text.names import Language
from data_prep.synthetic.text.open_worlds import OPEN_WORLDS
from data_prep.synthetic.text.questions import QUESTION_FORMS, QuestionForm
from data_prep.synthetic.text.wordings import FORMS, Form, Join
from data_prep.synthetic.text.worlds import SET_WORLDS
from judging.types import LabelledExample

FormSplit = Literal["train", "test", "all"]
WorldSet = Literal["all", "open"]
T = TypeVar("T")

LABEL_SHARES: dict[str, dict[str, float]] = {
    "any": {"Correct": 60, "Wrong": 40},
    "single": {"Correct": 55, "Wrong": 45},
    "several": {"Correct": 37, "Partial": 35, "Wrong": 28},
}
"""Label mix by kind of answer set; "all" comes to about 45 Correct, 20 Partial, 35 Wrong."""
ROWS_PER_WORLD = 4
OPEN_SHARE = 0.35
CHINESE_SHARE = 0.3
TOLERANCE_SHARE = 0.5
"""Share of worlds with purely numeric answers that are asked with the 5 % tolerance."""


@dataclass(frozen=True)
class Instance:
    """One world instance with its wording."""

    group: str
    world: str
    scene: Scene
    question: QuestionForm


def generate(
    num_rows: int, seed: int, forms: FormSplit, worlds: WorldSet = "all"
) -> Iterator[LabelledExample]:
    """Stream labelled examples for the task ``hieval-qs``.

    Every four consecutive rows answer the same question, in four ways. Row ``i`` depends on
    ``seed``, ``forms``, ``worlds`` and ``i`` alone, so a longer run starts with the shorter one.
    Ids do not name ``worlds``: rows of two sets with one seed are not to be mixed.

    Args:
        num_rows: How many examples to draw.
        seed: Any integer.
        forms: ``train`` never shows a held-out response or question form; ``test`` words its
            responses in held-out forms only; ``all`` uses every form.
        worlds: ``open`` keeps to open questions in English with one answer (``Correct`` or
            ``Wrong``), which a small backbone learns first.
    """
    for index in range(num_rows):
        instance = draw_instance(seed, forms, index // ROWS_PER_WORLD, worlds)
        yield _draw_example(instance, seed, forms, index)


def draw_instance(seed: int, forms: FormSplit, number: int, worlds: WorldSet = "all") -> Instance:
    """Draw a world, its facts and the wording of its question."""
    rng = _rng(seed, forms, "world", number)
    language: Language = "zh" if rng.random() < CHINESE_SHARE and worlds == "all" else "en"
    drawn = OPEN_WORLDS if rng.random() < OPEN_SHARE or worlds == "open" else SET_WORLDS
    world = rng.choices([w for w, _ in drawn], [weight for _, weight in drawn])[0]
    facts = world(rng, language)
    wordings = [
        form
        for form in QUESTION_FORMS
        if (form.language, form.world) == (language, world.__name__)
        and not (forms == "train" and form.held_out)
    ]
    return Instance(
        group=f"synthetic-{forms}-{seed}-{number}",
        world=world.__name__,
        scene=Scene(facts, language, facts.tolerant and rng.random() < TOLERANCE_SHARE),
        question=rng.choice(wordings),
    )


def _draw_example(instance: Instance, seed: int, forms: FormSplit, index: int) -> LabelledExample:
    rng = _rng(seed, forms, "response", index)
    scene, facts = instance.scene, instance.scene.facts
    slots = _response_slots(rng, instance)
    pool = _usable_forms(forms, scene.language, slots)
    label = _draw_label(rng, facts)
    behaviour, content = _draw_behaviour(rng, label, scene, pool)
    form = rng.choice([form for form in pool if form.family in behaviour.families])
    return LabelledExample(
        id=f"synthetic-{forms}-{seed}-{index}",
        task="hieval-qs",
        variant="tolerance" if scene.tolerance else "plain",
        question=instance.question.template.format(**facts.slots),
        choices=facts.choices,
        references=facts.alternatives or tuple(answer.text for answer in facts.answers),
        reference_mode="any" if facts.alternatives else "all",
        responses=(_word(form, content, slots),),
        label=label,
        metadata={
            "form": form.id,
            "question_form": instance.question.id,
            "world": instance.world,
            "behaviour": behaviour.name,
            "language": scene.language,
        },
        group=instance.group,
        source="synthetic",
    )


def _rng(*key: object) -> Random:
    """A generator of its own for every world and every response."""
    digest = hashlib.sha256("\x1f".join(map(str, key)).encode()).digest()
    return Random(int.from_bytes(digest[:8], "big"))


def _draw_label(rng: Random, facts: Facts) -> str:
    kind = "any" if facts.alternatives else "several" if len(facts.answers) > 1 else "single"
    shares = LABEL_SHARES[kind]
    return rng.choices(list(shares), list(shares.values()))[0]


def _draw_behaviour(
    rng: Random, label: str, scene: Scene, pool: Sequence[Form]
) -> tuple[Behaviour, Content]:
    """Draw a behaviour that earns ``label`` until the scene allows it."""
    families = {form.family for form in pool}
    candidates = [b for b in BEHAVIOURS if b.label == label and families & set(b.families)]
    while True:
        behaviour = rng.choices(candidates, [b.weight for b in candidates])[0]
        content = behaviour.choose(rng, scene)
        if content is not None:
            return behaviour, content


def _response_slots(rng: Random, instance: Instance) -> dict[str, str]:
    """Everything a response form may draw on besides items and foil."""
    language, facts, question = instance.scene.language, instance.scene.facts, instance.question
    subject = question.subject.format(**facts.slots)
    slots = {"subject": subject, "Subject": subject[:1].upper() + subject[1:], "be": question.be}
    if question.deed:
        slots["deed"] = question.deed.format(**facts.slots)
    if question.clause:
        slots["clause"] = question.clause.format(**facts.slots, items="{items}")
        slots["Clause"] = slots["clause"][:1].upper() + slots["clause"][1:]
    if facts.steps:
        slots["steps"] = ("" if language == "zh" else " ").join(facts.steps)
    if facts.alternatives:
        given, _, surname = names.person(rng, language)
        slots["other"] = surname + given if language == "zh" else f"{given} {surname}"
        slots["town"] = names.place(rng, language)
        slots["year"] = str(rng.randint(1500, 2020))
    return slots


def _usable_forms(forms: FormSplit, language: Language, slots: dict[str, str]) -> list[Form]:
    available = {*slots, "items", "foil"}
    return [
        form
        for form in FORMS
        if form.language == language
        and form.slots <= available
        and (forms == "all" or form.held_out == (forms == "test"))
    ]


def _word(form: Form, content: Content, slots: dict[str, str]) -> str:
    items = _joined(content.items, form.join, form.language)
    foil = _joined(content.foil, "and", form.language)
    filled = {name: text.replace("{items}", items) for name, text in slots.items()}
    return form.template.format(**filled, items=items, foil=foil)


def _joined(items: Sequence[str], join: Join, language: Language) -> str:
    """Write a list of elements in the manner a form asks for."""
    if join == "lines":
        return "\n".join(items)
    if join == "bullets":
        return "\n".join(f"- {item}" for item in items)
    if join == "numbered":
        return "\n".join(f"{number}. {item}" for number, item in enumerate(items, 1))
    if join == "semicolon":
        return "; ".join(items)
    if language == "zh":
        return ("、" if join == "and" else "，").join(items)
    if join == "and" and len(items) > 1:
        return f"{', '.join(items[:-1])} and {items[-1]}"
    return ", ".join(items)
