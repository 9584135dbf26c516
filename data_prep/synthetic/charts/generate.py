"""Draw labelled examples about pictures; labels hold by construction."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Collection, Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from random import Random
from typing import Literal

from data_prep.synthetic.charts import wordings as wordings
from data_prep.synthetic.charts.drawing import Places, render, render_with_places
from data_prep.synthetic.charts.operations import operations_for, twin_operations_for
from data_prep.synthetic.charts.problems import Operation
from data_prep.synthetic.charts.questions import QUESTION_FORMS, QuestionForm
from data_prep.synthetic.charts.responses import (
    ERROR_TYPES,
    Response,
    Task,
    Wording,
    respond,
    slots_of,
    word,
)
from data_prep.synthetic.charts.scenes import KINDS, Kind, Scene, draw_scene
from data_prep.synthetic.charts.styles import Style, draw_style
from data_prep.synthetic.charts.twins import Pair, Relation, find_pair
from data_prep.synthetic.charts.wordings import CALC_JOINTS, Form, Step
from judging.types import LabelledExample

FormSplit = Literal["train", "test", "all"]

TYPE_SHARES: dict[str | None, float] = {None: 0.40, **dict.fromkeys(ERROR_TYPES, 0.12)}
"""Share of each error type over all rows; ``None`` is Correct."""
PARTIAL_SHARE = 0.25
"""Share of each type's errors that get part of the answer, pairs included, which never do."""
MAX_PARTIAL = 0.5
"""Of the errors outside pairs."""
ROWS_PER_UNIT = 4
TWIN_SHARE = 0.2
"""Share of units whose first two rows are a twin."""
CONTRAST_SHARE = 0.08
FORCED: dict[Relation, tuple[str | None, str]] = {
    "twin": ("Reasoning Error", "Image Misunderstanding"),
    "contrast": (None, "Image Misunderstanding"),
}
"""Error type of a pair's response on its first and on its second picture."""


@dataclass(frozen=True)
class PlannedRow:
    """An example that lacks only its picture."""

    example: LabelledExample
    scene: Scene
    style: Style


@dataclass(frozen=True)
class ChartRow:
    """An example and the picture that its one image path, ``images/<hash>.png``, names."""

    example: LabelledExample
    png: bytes | None
    """``None`` where the question tells what the picture shows; the example has no image then."""


@dataclass(frozen=True)
class Deck:
    """Everything that fixes a stream of rows."""

    name: str
    seed: int
    forms: FormSplit
    twins: float

    def rng(self, *key: object) -> Random:
        """A generator of its own for every unit and every row."""
        return _rng(self.name, self.seed, self.forms, *key)


@dataclass(frozen=True)
class Unit:
    """Four rows' pictures: one, or two of one style with a pair of rows that share all text."""

    group: str
    kind: Kind
    style: Style
    scenes: tuple[Scene, ...]
    relation: Relation | None = None
    rows: tuple[LabelledExample, ...] = ()
    """The pair; empty without one."""


def generate(
    num_rows: int, seed: int, forms: FormSplit, twins: float = TWIN_SHARE, name: str = "charts"
) -> Iterator[ChartRow]:
    """Stream labelled examples for the task ``hieval-ea`` with their pictures.

    Row ``i`` depends on the other arguments and ``i`` alone. Every four consecutive rows
    are a group: they ask about one picture, or about two that a twin or contrast sets side by side.

    Args:
        num_rows: How many examples to draw.
        seed: Any integer.
        forms: ``train`` never shows a held-out response, step or question form; ``test`` words its
            responses in held-out forms only; ``all`` uses every form.
        twins: Share of groups, from 0 to 1, that begin with a twin.
        name: Begins every id; other names give other rows.
    """
    return draw(plan(num_rows, seed, forms, twins, name))


def draw(planned: Iterable[PlannedRow]) -> Iterator[ChartRow]:
    """Add the pictures; neighbouring rows about one picture share a drawing."""
    render_once = lru_cache(maxsize=2)(render)
    for row in planned:
        png = render_once(row.scene, row.style)
        name = f"images/{hashlib.sha256(png).hexdigest()[:16]}.png"
        yield ChartRow(row.example.model_copy(update={"images": (name,)}), png)


def tell(planned: Iterable[PlannedRow]) -> Iterator[ChartRow]:
    """Put what each picture shows into the question instead: the same task for a reader of text.

    A small judge learns to compare a response with what it is told, and from there with what it
    sees; started on pictures it never did (docs/error-analysis.md).
    """
    for row in planned:
        example = row.example
        question = f"Picture: {row.scene.describe()}. {example.question}"
        yield ChartRow(example.model_copy(update={"question": question}), None)


def plan(
    num_rows: int, seed: int, forms: FormSplit, twins: float = TWIN_SHARE, name: str = "charts"
) -> Iterator[PlannedRow]:
    """Stream the examples of ``generate`` without drawing anything."""
    deck = Deck(name, seed, forms, twins)
    rows = (row for number in itertools.count() for row in _rows_of(deck, number))
    return itertools.islice(rows, num_rows)


def plan_twins(
    num_rows: int, seed: int, forms: FormSplit, kinds: Collection[str] = tuple(KINDS)
) -> Iterator[PlannedRow]:
    """Stream twins alone, two rows each: what no reader of the text can tell apart.

    Args:
        num_rows: How many examples to draw.
        seed: Any integer.
        forms: As for ``generate``.
        kinds: Only twins about these kinds of pictures.
    """
    deck = Deck("twins", seed, forms, 1.0)
    units = (_draw_unit(deck, number) for number in itertools.count())
    rows = (
        PlannedRow(row, scene, unit.style)
        for unit in units
        if unit.kind.name in kinds
        for row, scene in zip(unit.rows, unit.scenes, strict=True)
    )
    return itertools.islice(rows, num_rows)


@dataclass(frozen=True)
class Captioned:
    """A picture that says what it shows, and where."""

    png: bytes
    scene: Scene
    places: Places
    """In pixels."""


def captioned(seed: int, number: int) -> Captioned:
    """Draw one picture of an endless series, to warm up a vision tower.

    Kinds of scenes take turns. The pictures are not those of ``generate``.
    """
    rng = _rng(seed, "caption", number)
    kind = list(KINDS.values())[number % len(KINDS)]
    scene = draw_scene(rng, kind)
    png, places = render_with_places(scene, draw_style(rng))
    return Captioned(png, scene, places)


def _rng(*key: object) -> Random:
    digest = hashlib.sha256("\x1f".join(map(str, key)).encode()).digest()
    return Random(int.from_bytes(digest[:8], "big"))


def _draw_unit(deck: Deck, number: int) -> Unit:
    rng = deck.rng("unit", number)
    kind = rng.choice(list(KINDS.values()))
    name = f"{deck.name}-{deck.forms}-{deck.seed}-{number}"
    unit = Unit(name, kind, draw_style(rng), (draw_scene(rng, kind),))
    drawn = rng.random()
    for relation, share in _pair_shares(deck.twins).items():
        if drawn < share:
            return _with_pair(rng, unit, relation, deck.forms)
        drawn -= share
    return unit


def _pair_shares(twins: float) -> dict[Relation, float]:
    """Shares of units with a pair of each sort."""
    return {"twin": twins, "contrast": min(CONTRAST_SHARE, 1 - twins)}


def _with_pair(rng: Random, unit: Unit, relation: Relation, forms: FormSplit) -> Unit:
    """Draw scenes and problems until a pair is found."""
    operations = (
        dict.fromkeys(twin_operations_for(unit.kind.name), 1)
        if relation == "twin"
        else operations_for(unit.kind.name)
    )
    while True:
        scene = draw_scene(rng, unit.kind)
        task = _draw_task(rng, unit.kind, scene, operations)
        pair = find_pair(rng, task, relation)
        if pair:
            return _lay_out(rng, unit, relation, forms, scene, task, pair)


def _lay_out(
    rng: Random,
    unit: Unit,
    relation: Relation,
    forms: FormSplit,
    scene: Scene,
    task: Task,
    pair: Pair,
) -> Unit:
    """Make the two rows of a pair, in either order."""
    question = rng.choice(_question_forms(task, forms))
    pool = [w for w in _pool(task, forms) if w.form.family in ("selected", "inline")]
    wording = rng.choice(pool)
    text = word(task, wording, task.view, pair.solution)
    other = replace(task, view=pair.other, truth=pair.other_truth)
    sides = [
        (scene, task, FORCED[relation][0], pair.behaviour),
        (scene.with_view(task.column, pair.other), other, FORCED[relation][1], "misread"),
    ]
    rng.shuffle(sides)
    rows = []
    for place, (drawn, asked, error_type, behaviour) in enumerate(sides):
        response = Response(text, wording, behaviour)
        label = "Correct" if error_type is None else f"Wrong; {error_type}"
        row_id = f"{unit.group}-{place}"
        rows.append(_example(unit, drawn, asked, question, response, label, error_type, row_id))
    tagged = tuple(
        row.model_copy(update={"metadata": row.metadata | {relation: unit.group}}) for row in rows
    )
    return replace(unit, scenes=tuple(drawn for drawn, *_ in sides), relation=relation, rows=tagged)


def _rows_of(deck: Deck, number: int) -> Iterator[PlannedRow]:
    unit = _draw_unit(deck, number)
    for place in range(ROWS_PER_UNIT):
        scene = unit.scenes[place % len(unit.scenes)]
        if place < len(unit.rows):
            example = unit.rows[place]
        else:
            rng = deck.rng("row", number, place)
            example = _draw_example(rng, unit, scene, deck, f"{unit.group}-{place}")
        yield PlannedRow(example, scene, unit.style)


def _draw_example(
    rng: Random, unit: Unit, scene: Scene, deck: Deck, row_id: str
) -> LabelledExample:
    """Draw a type, then problems and responses until one earns it."""
    shares = _free_shares(deck.twins)
    error_type = rng.choices(list(shares), list(shares.values()))[0]
    score = "Correct" if error_type is None else "Wrong"
    if error_type:
        per_free_row = TYPE_SHARES[error_type] / shares[error_type]
        if rng.random() < min(MAX_PARTIAL, PARTIAL_SHARE * per_free_row):
            score = "Partial"
    operations = operations_for(unit.kind.name)
    while True:
        task = _draw_task(rng, unit.kind, scene, operations)
        if score == "Partial" and len(task.truth.answers) < 2:
            continue
        response = respond(rng, task, score, error_type, _pool(task, deck.forms))
        if response:
            label = score if error_type is None else f"{score}; {error_type}"
            question = rng.choice(_question_forms(task, deck.forms))
            return _example(unit, scene, task, question, response, label, error_type, row_id)


def _free_shares(twins: float) -> dict[str | None, float]:
    """Weights of types for rows outside pairs that bring all rows to ``TYPE_SHARES``."""
    shares = dict(TYPE_SHARES)
    for relation, share in _pair_shares(twins).items():
        for error_type in FORCED[relation]:
            shares[error_type] = max(0.0, shares[error_type] - share / ROWS_PER_UNIT)
    return shares


def _draw_task(rng: Random, kind: Kind, scene: Scene, operations: dict[Operation, int]) -> Task:
    """Draw a column and a problem that its values leave no doubt about."""
    while True:
        column = rng.choice(scene.columns)
        view = scene.view(column)
        problem = rng.choices(list(operations), list(operations.values()))[0](rng, view)
        truth = problem.solve(view) if problem else None
        if problem and truth:
            return Task(kind, column, view, problem, truth)


def _question_forms(task: Task, forms: FormSplit) -> list[QuestionForm]:
    return [
        form
        for form in QUESTION_FORMS
        if form.operation == task.problem.operation
        and form.kind in ("", task.kind.name)
        and not (forms == "train" and form.held_out)
    ]


def _pool(task: Task, forms: FormSplit) -> list[Wording]:
    """Every wording a response to the task may have."""

    def allowed(form: Form | Step) -> bool:
        return forms == "all" or form.held_out == (forms == "test")

    steps = [s for s in wordings.STEPS if s.operation == task.problem.operation and allowed(s)]
    worded = itertools.product(filter(allowed, wordings.FORMS), steps, CALC_JOINTS)
    return [Wording(form, step, joint) for form, step, joint in worded]


def _example(
    unit: Unit,
    scene: Scene,
    task: Task,
    question: QuestionForm,
    response: Response,
    label: str,
    error_type: str | None,
    row_id: str,
) -> LabelledExample:
    answers = task.truth.answers
    many = len(answers) > 1  # names, told in the picture's order whatever their ranks
    return LabelledExample(
        id=row_id,
        task="hieval-ea",
        question=question.template.format(**slots_of(task)),
        references=tuple(sorted(answers, key=list(task.view).index)) if many else answers,
        reference_mode="all",
        responses=(response.text,),
        label=label,
        error_type=error_type,
        metadata={
            "kind": scene.kind,
            "operation": task.problem.operation,
            "behaviour": response.behaviour,
            "form": response.wording.form.id,
            "step": response.wording.step.id,
            "question_form": question.id,
            "style": asdict(unit.style),
            "caption": scene.describe(),
            "readings": scene.readings(),
        },
        group=unit.group,
        source="charts",
    )
