"""Draw pairs of responses to questions about pictures; labels hold by construction.

If exactly one response is right it wins. Otherwise the one that adds nothing beside its answer wins
over one that does; equals tie (TruthfulJudge, section 5 and appendix F).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random
from typing import Any

from data_prep.synthetic.charts.drawing import render
from data_prep.synthetic.charts.operations import operations_for
from data_prep.synthetic.charts.questions import QUESTION_FORMS
from data_prep.synthetic.charts.responses import Task, slots_of
from data_prep.synthetic.charts.scenes import KINDS, Scene, draw_scene
from data_prep.synthetic.charts.styles import draw_style
from data_prep.synthetic.preference_pairs.critiques import (
    Evidence,
    confidence,
    pair_critique,
    preference,
    score_of_side,
    single_critique,
)
from data_prep.synthetic.preference_pairs.responses import (
    FormSplit,
    Side,
    right_side,
    with_addition,
    wrong_side,
)
from data_prep.synthetic.preference_pairs.wordings import (
    DESCRIPTIONS,
    MADE_UP,
    MISREAD,
    MISREASONED,
    OFF_TOPIC,
    PADDED,
)
from judging.types import LabelledExample

CASES = {
    "one right": 0.52,
    "one right, padded": 0.08,
    "both right, one padded": 0.17,
    "both wrong, one padded": 0.05,
    "both right": 0.09,
    "both right, both padded": 0.03,
    "both wrong": 0.06,
}
"""Share of pairs; the last three tie."""
FAULTS = {MISREAD: 0.35, MISREASONED: 0.25, OFF_TOPIC: 0.2, MADE_UP: 0.2}
"""Why a wrong response is wrong, before some tasks refuse a fault."""
PADDINGS = {PADDED: 0.6, MADE_UP: 0.4}
DESCRIBED_SHARE = 0.1
"""Of pairs without a picture: the data stand in the question and there is no reference."""
REFERENCE_SHARE = 0.5
"""Of pairs with a picture: a reference answer makes the picture dispensable."""
PICTURE_SHARE = 0.1


@dataclass(frozen=True)
class PairRow:
    """A pair with its critique, its responses one by one, and its picture where it has one.

    Image paths are ``images/<hash>.png``.
    """

    pair: LabelledExample
    """Task ``truthful-pair``."""
    swapped: LabelledExample
    """The same pair with its responses the other way round."""
    singles: tuple[LabelledExample, LabelledExample]
    """Task ``truthful-critique-score``."""
    png: bytes | None


def generate(
    num_rows: int, seed: int, forms: FormSplit, pictures: float = PICTURE_SHARE
) -> Iterator[PairRow]:
    """Stream pairs. Row ``i`` depends on ``seed``, ``forms``, ``pictures`` and ``i`` alone.

    Args:
        num_rows: How many pairs to draw.
        seed: Any integer.
        forms: ``train`` never shows a held-out question, response or step form; ``test`` shows no
            other.
        pictures: Share of pairs that come with a picture, from 0 to 1.
    """
    for number in range(num_rows):
        key = f"pairs\x1f{seed}\x1f{forms}\x1f{pictures}\x1f{number}"
        rng = Random(int.from_bytes(hashlib.sha256(key.encode()).digest()[:8], "big"))
        yield _draw_row(rng, f"pairs-{forms}-{seed}-{number}", forms, pictures)


def _draw_row(rng: Random, row_id: str, forms: FormSplit, pictures: float) -> PairRow:
    task, scene = _draw_task(rng)
    case = _weighted(rng, CASES)
    sides = None
    while sides is None:
        sides = _draw_sides(rng, task, case, forms)
        if sides is None:
            task, scene = _draw_task(rng)
    with_picture = rng.random() < pictures
    evidence: Evidence = "reference"
    if rng.random() < ((1 - REFERENCE_SHARE) if with_picture else DESCRIBED_SHARE):
        evidence = "picture" if with_picture else "description"
    return _row(rng, row_id, task, scene, case, sides, evidence, with_picture, forms)


def _draw_task(rng: Random) -> tuple[Task, Scene]:
    """Draw a picture's data and a problem that they leave no doubt about."""
    kind = rng.choice(list(KINDS.values()))
    scene = draw_scene(rng, kind)
    operations = operations_for(kind.name)
    while True:
        column = rng.choice(scene.columns)
        view = scene.view(column)
        problem = rng.choices(list(operations), list(operations.values()))[0](rng, view)
        truth = problem.solve(view) if problem else None
        if problem and truth and truth.answers:
            return Task(kind, column, view, problem, truth), scene


def _draw_sides(rng: Random, task: Task, case: str, forms: FormSplit) -> tuple[Side, Side] | None:
    """Two different responses of a case, in random order."""

    def right() -> Side:
        return right_side(rng, task, forms)

    def wrong(*faults: str) -> Side | None:
        return wrong_side(rng, task, _weighted(rng, {f: FAULTS[f] for f in faults}), forms)

    if case in ("one right", "one right, padded"):
        sides = [right(), wrong(*FAULTS)]
    elif case.startswith("both right"):
        sides = [right(), right()]
    else:  # a response without an answer is not as wrong as one with a false answer
        sides = [wrong(MISREAD, MISREASONED), wrong(MISREAD, MISREASONED)]
    if None in sides:
        return None
    first, second = (side for side in sides if side)
    if case.endswith("padded"):
        tag = _weighted(rng, PADDINGS)
        first = with_addition(rng, first, tag, task, forms)
        if case.endswith("both padded"):
            second = with_addition(rng, second, tag, task, forms)
    if first.text == second.text:
        return None
    return (first, second) if rng.random() < 0.5 else (second, first)


def _row(
    rng: Random,
    row_id: str,
    task: Task,
    scene: Scene,
    case: str,
    sides: tuple[Side, Side],
    evidence: Evidence,
    with_picture: bool,
    forms: FormSplit,
) -> PairRow:
    form = rng.choice(
        [
            form
            for form in QUESTION_FORMS
            if form.operation == task.problem.operation
            and form.kind in ("", task.kind.name)
            and form.held_out == (forms == "test")
        ]
    )
    question = form.template.format(**slots_of(task))
    truth = task.truth.answers
    if len(truth) > 1:  # names, told in the picture's order whatever their ranks
        truth = tuple(sorted(truth, key=list(task.view).index))
    asked = question
    if evidence == "description":
        told = rng.choice([d for d in DESCRIPTIONS if d.held_out == (forms == "test")])
        asked = told.template.format(data=scene.describe(), question=question)
    png = render(scene, draw_style(rng)) if with_picture else None
    images = (f"images/{hashlib.sha256(png).hexdigest()[:16]}.png",) if png else ()
    shared: dict[str, Any] = {
        "mode": "critique",
        "question": asked,
        "references": truth if evidence == "reference" else (),
        "images": images,
        "group": row_id,
        "source": "pairs",
    }
    about = {
        "case": case,
        "evidence": evidence,
        "needs_picture": evidence == "picture",
        "kind": scene.kind,
        "operation": task.problem.operation,
        "question_form": form.id,
        "asked": question,
        "readings": scene.readings(),
    }
    sure = confidence(rng, sides, evidence)

    def pair(pair_id: str, sides: tuple[Side, Side]) -> LabelledExample:
        return LabelledExample(
            id=pair_id,
            task="truthful-pair",
            responses=tuple(side.text for side in sides),
            label=preference(*sides),
            critique=pair_critique(sides, truth, evidence),
            confidence=sure,
            tags=tuple(dict.fromkeys(tag for side in sides for tag in side.tags)),
            metadata=about
            | {"faults": [list(side.tags) for side in sides]}
            | {"forms": [list(side.forms) for side in sides]},
            **shared,
        )

    a, b = (
        LabelledExample(
            id=f"{row_id}-{name}",
            task="truthful-critique-score",
            responses=(side.text,),
            label=str(score_of_side(side)),
            critique=single_critique(side, truth, evidence),
            tags=side.tags,
            metadata=about | {"forms": list(side.forms)},
            **shared,
        )
        for name, side in zip("ab", sides, strict=True)
    )
    turned = pair(f"{row_id}-swapped", sides[::-1])
    return PairRow(pair(row_id, sides), turned, (a, b), png)


def _weighted(rng: Random, shares: dict[str, float]) -> str:
    return rng.choices(list(shares), list(shares.values()))[0]
