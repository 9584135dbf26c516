"""Labelled rows about scenes, in groups of four that share their pictures; nothing is drawn yet.

Some groups begin with two pictures under one question and one response, which only the pictures
tell apart. A *twin* is a response that is faulty logic on the first picture and a misreading on the
second, both having the same answer. A *contrast* is a response that is right for the first picture
and misreads the second. The second picture is searched for: a reader of it who takes the stated
values for true must reach the response by right logic.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from random import Random
from typing import Any, Literal

from data_prep.made.charts.drawing import (
    ItemPosition,
    picture_path,
    render,
    render_with_positions,
    save_picture,
)
from data_prep.made.charts.operations import Solution, operations_for, twin_operations_for
from data_prep.made.charts.responses import (
    ChartQuestion,
    ChartResponse,
    Exercise,
    draw_exercise,
    put_into_words,
    questions,
    questions_for,
    respond,
    score_answers,
    slots_of,
    wordings_for,
)
from data_prep.made.charts.scenes import KINDS, ChartScene, SceneKind, Style, draw_scene, draw_style
from data_prep.made.words.wordings import WordingSplit, question_wordings_of, seeded_rng
from data_prep.splits.manifest import check_replaceable, write_with_manifest
from judging.files.records import write_records
from judging.fingerprint import file_sha256
from judging.tasks.hieval_ea import ERROR_TYPES, IMAGE, REASONING
from judging.tasks.hieval_qs import CORRECT, PARTIAL, WRONG
from judging.types import LabelledExample, label_of, type_of

Relation = Literal["twin", "contrast"]

TYPE_SHARES: dict[str | None, float] = {None: 0.40, **dict.fromkeys(ERROR_TYPES, 0.12)}
"""Share of each error type over all rows; ``None`` is Correct."""
PARTIAL_SHARE = 0.25
"""Share of each type's errors that get part of the answer, twins and contrasts (which never do)
included."""
MAX_PARTIAL = 0.5
"""Largest share of errors outside twins and contrasts that get part of the answer."""
ROWS_PER_GROUP = 4
TWIN_SHARE = 0.2
"""Share of groups whose first two rows are a twin."""
CONTRAST_SHARE = 0.08
TRIES = 300
"""Second pictures that are drawn before a shared response is given up for an exercise."""
SHARED_RESPONSE_TYPES: dict[Relation, tuple[str | None, str]] = {
    "twin": (REASONING, IMAGE),
    "contrast": (None, IMAGE),
}
"""Error type of a shared response on its first and on its second picture."""


@dataclass(frozen=True)
class PlannedRow:
    """An example that lacks only its picture."""

    example: LabelledExample
    scene: ChartScene
    style: Style


@dataclass(frozen=True)
class SharedResponse:
    """A response that fits two pictures, and the values of the second."""

    solution: Solution
    behaviour: str
    """Fault of the response on the first picture, or none."""
    second_view: dict[str, int]
    second_truth: Solution


@dataclass(frozen=True)
class RowStream:
    """Everything that fixes an endless stream of rows."""

    name: str
    seed: int
    wordings: WordingSplit
    twins: float

    def rng(self, *key: object) -> Random:
        """Return a generator that belongs to one group or one row."""
        return seeded_rng(self.name, self.seed, self.wordings, *key)


@dataclass(frozen=True)
class PictureGroup:
    """The pictures of four rows: one, or two of one style with two rows that share all text."""

    name: str
    kind: SceneKind
    style: Style
    scenes: tuple[ChartScene, ...]
    shared_rows: tuple[LabelledExample, ...] = ()
    """The twin or contrast; empty without one."""


def draw_group(stream: RowStream, number: int) -> PictureGroup:
    """Draw the pictures of a group, and its twin or contrast if it has one."""
    rng = stream.rng("unit", number)
    kind = rng.choice(list(KINDS.values()))
    name = f"{stream.name}-{stream.wordings}-{stream.seed}-{number}"
    group = PictureGroup(name, kind, draw_style(rng), (draw_scene(rng, kind),))
    threshold = rng.random()
    for relation, share in _relation_shares(stream.twins).items():
        if threshold < share:
            return _with_shared_response(rng, group, relation, stream.wordings)
        threshold -= share
    return group


def rows_of_group(stream: RowStream, number: int) -> Iterator[PlannedRow]:
    """Yield the four rows of a group."""
    group = draw_group(stream, number)
    for position in range(ROWS_PER_GROUP):
        scene = group.scenes[position % len(group.scenes)]
        if position < len(group.shared_rows):
            example = group.shared_rows[position]
        else:
            rng = stream.rng("row", number, position)
            example = _draw_example(rng, group, scene, stream, f"{group.name}-{position}")
        yield PlannedRow(example, scene, group.style)


def _relation_shares(twins: float) -> dict[Relation, float]:
    """Return the shares of groups that begin with a twin or a contrast."""
    return {"twin": twins, "contrast": min(CONTRAST_SHARE, 1 - twins)}


def _with_shared_response(
    rng: Random, group: PictureGroup, relation: Relation, wordings: WordingSplit
) -> PictureGroup:
    """Draw scenes and exercises until a response is found that fits a second picture as well."""
    operations = (
        dict.fromkeys(twin_operations_for(group.kind.name), 1)
        if relation == "twin"
        else operations_for(group.kind.name)
    )
    while True:
        scene = draw_scene(rng, group.kind)
        exercise = draw_exercise(rng, group.kind, scene, operations)
        shared = _find_shared_response(rng, exercise, relation)
        if shared:
            return _with_shared_rows(rng, group, relation, wordings, scene, exercise, shared)


def _find_shared_response(
    rng: Random, exercise: Exercise, relation: Relation
) -> SharedResponse | None:
    """Find a response to an exercise and a second picture; ``None`` after some tries in vain."""
    if relation == "contrast":
        behaviour, solution = "right", exercise.truth
    else:
        slips = [
            slip
            for slip in exercise.problem.slips(exercise.view)
            if slip.name == "wrong choice"
            and score_answers(slip.solution.answers, exercise.truth.answers) == WRONG
        ]
        if not slips:
            return None
        slip = rng.choice(slips)
        behaviour, solution = slip.name, slip.solution

    def suits(truth: Solution) -> bool:
        if relation == "twin":
            return set(truth.answers) == set(exercise.truth.answers)
        return score_answers(solution.answers, truth.answers) == WRONG

    second = _search_second(rng, exercise, solution, suits)
    return SharedResponse(solution, behaviour, *second) if second else None


def _search_second(
    rng: Random, exercise: Exercise, solution: Solution, suits: Callable[[Solution], bool]
) -> tuple[dict[str, int], Solution] | None:
    """Draw values until one of their readings, the stated one, leads to the solution."""
    stated = {name: exercise.view[name] for name in solution.items}
    names = tuple(exercise.view)
    for _ in range(TRIES):
        values = exercise.kind.draw_values(rng, len(names))
        view = dict(zip(names, values, strict=True))
        truth = exercise.problem.solve(view)
        if truth is None or not suits(truth) or all(view[name] == stated[name] for name in stated):
            continue
        if exercise.problem.solve(view | stated) == solution:
            return view, truth
    return None


def _with_shared_rows(
    rng: Random,
    group: PictureGroup,
    relation: Relation,
    wordings: WordingSplit,
    scene: ChartScene,
    exercise: Exercise,
    shared: SharedResponse,
) -> PictureGroup:
    """Make the two rows of a twin or contrast, in either order."""
    question = _draw_question(rng, exercise, wordings)
    wording = rng.choice(wordings_for(exercise, wordings, ("selected", "inline")))
    text = put_into_words(exercise, wording, exercise.view, shared.solution)
    second_scene = scene.with_view(exercise.column, shared.second_view)
    second_exercise = replace(exercise, view=shared.second_view, truth=shared.second_truth)
    first_type, second_type = SHARED_RESPONSE_TYPES[relation]
    sides = [
        (scene, exercise, first_type, shared.behaviour),
        (second_scene, second_exercise, second_type, "misread"),
    ]
    rng.shuffle(sides)
    rows = []
    for position, (its_scene, its_exercise, error_type, behaviour) in enumerate(sides):
        response = ChartResponse(text, wording, behaviour)
        label = label_of(WRONG if error_type else CORRECT, error_type)
        row_id = f"{group.name}-{position}"
        row = _example(group, its_scene, its_exercise, question, response, label, row_id)
        metadata = row.metadata | {relation: group.name}
        rows.append(row.model_copy(update={"metadata": metadata}))
    scenes = tuple(its_scene for its_scene, *_ in sides)
    return replace(group, scenes=scenes, shared_rows=tuple(rows))


def _draw_example(
    rng: Random, group: PictureGroup, scene: ChartScene, stream: RowStream, row_id: str
) -> LabelledExample:
    """Draw an error type, then exercises and responses until one earns it."""
    shares = _free_shares(stream.twins)
    error_type = rng.choices(list(shares), list(shares.values()))[0]
    score = WRONG if error_type else CORRECT
    if error_type:
        per_free_row = TYPE_SHARES[error_type] / shares[error_type]
        if rng.random() < min(MAX_PARTIAL, PARTIAL_SHARE * per_free_row):
            score = PARTIAL
    operations = operations_for(group.kind.name)
    while True:
        exercise = draw_exercise(rng, group.kind, scene, operations)
        if score == PARTIAL and len(exercise.truth.answers) < 2:
            continue
        wordings = wordings_for(exercise, stream.wordings)
        response = respond(rng, exercise, score, error_type, wordings)
        if response:
            label = label_of(score, error_type)
            question = _draw_question(rng, exercise, stream.wordings)
            return _example(group, scene, exercise, question, response, label, row_id)


def _free_shares(twins: float) -> dict[str | None, float]:
    """Weigh the types of rows outside twins and contrasts so that all rows have ``TYPE_SHARES``."""
    shares = dict(TYPE_SHARES)
    for relation, share in _relation_shares(twins).items():
        for error_type in SHARED_RESPONSE_TYPES[relation]:
            shares[error_type] = max(0.0, shares[error_type] - share / ROWS_PER_GROUP)
    return shares


def _draw_question(rng: Random, exercise: Exercise, wordings: WordingSplit) -> ChartQuestion:
    return rng.choice(questions_for(exercise, question_wordings_of(questions(), wordings)))


def _example(
    group: PictureGroup,
    scene: ChartScene,
    exercise: Exercise,
    question: ChartQuestion,
    response: ChartResponse,
    label: str,
    row_id: str,
) -> LabelledExample:
    return LabelledExample(
        id=row_id,
        task="hieval-ea",
        question=question.template.format(**slots_of(exercise)),
        references=exercise.references,
        reference_mode="all",
        responses=(response.text,),
        label=label,
        error_type=type_of(label) or None,
        metadata={
            "kind": scene.kind,
            "operation": exercise.problem.operation,
            "behaviour": response.behaviour,
            "form": response.wording.frame.id,
            "step": response.wording.step.id,
            "question_form": question.id,
            "style": asdict(group.style),
            "caption": scene.describe(),
            "readings": scene.readings(),
        },
        group=group.name,
        source="charts",
    )


@dataclass(frozen=True)
class ChartRow:
    """An example and the picture that its one image path, ``images/<hash>.png``, names."""

    example: LabelledExample
    png: bytes | None
    """``None`` where the question says what the picture shows; the example has no image then."""


@dataclass(frozen=True)
class CaptionedPicture:
    """A picture, the scene that it shows, and where each item of the scene is to be seen."""

    png: bytes
    scene: ChartScene
    positions: list[ItemPosition]
    """In pixels from the upper left corner."""


def generate_rows(
    num_rows: int,
    seed: int,
    wordings: WordingSplit,
    twins: float = TWIN_SHARE,
    name: str = "charts",
) -> Iterator[ChartRow]:
    """Stream labelled examples for the task ``hieval-ea`` with their pictures.

    Row ``i`` depends on the other arguments and ``i`` alone. Every four consecutive rows are a
    group: they ask about one picture, or about two that a twin or contrast sets side by side.

    Args:
        num_rows: How many examples to draw.
        seed: Any integer.
        wordings: Wordings of questions and responses: those of training data, of test data, or all.
        twins: Share of groups, from 0 to 1, that begin with a twin.
        name: Begins every id; other names give other rows.
    """
    return draw_pictures(plan_rows(num_rows, seed, wordings, twins, name))


def draw_pictures(planned: Iterable[PlannedRow]) -> Iterator[ChartRow]:
    """Add the pictures to rows; neighbouring rows about one picture share a drawing."""
    render_once = lru_cache(maxsize=2)(render)
    for row in planned:
        png = render_once(row.scene, row.style)
        yield ChartRow(row.example.model_copy(update={"images": (picture_path(png),)}), png)


def write_captions(planned: Iterable[PlannedRow]) -> Iterator[ChartRow]:
    """Put a caption of each picture into the question instead: the same task for a text reader.

    A small judge learns from such rows to compare a response with given data, and goes on from
    there to pictures. Started on pictures, it did not learn it (docs/error-analysis.md).
    """
    for row in planned:
        example = row.example
        question = f"Picture: {row.scene.describe()}. {example.question}"
        yield ChartRow(example.model_copy(update={"question": question}), None)


def plan_rows(
    num_rows: int,
    seed: int,
    wordings: WordingSplit,
    twins: float = TWIN_SHARE,
    name: str = "charts",
) -> Iterator[PlannedRow]:
    """Stream the rows of ``generate_rows`` without drawing anything."""
    stream = RowStream(name, seed, wordings, twins)
    rows = (row for number in itertools.count() for row in rows_of_group(stream, number))
    return itertools.islice(rows, num_rows)


def plan_twins(
    num_rows: int, seed: int, wordings: WordingSplit, kinds: Collection[str] = tuple(KINDS)
) -> Iterator[PlannedRow]:
    """Stream twins alone, two rows each: no reader of their text can tell them apart.

    Args:
        num_rows: How many examples to draw.
        seed: Any integer.
        wordings: As for ``generate_rows``.
        kinds: Only twins about these kinds of scenes.
    """
    stream = RowStream("twins", seed, wordings, 1.0)
    groups = (draw_group(stream, number) for number in itertools.count())
    rows = (
        PlannedRow(row, scene, group.style)
        for group in groups
        if group.kind.name in kinds
        for row, scene in zip(group.shared_rows, group.scenes, strict=True)
    )
    return itertools.islice(rows, num_rows)


def draw_captioned(seed: int, number: int) -> CaptionedPicture:
    """Draw one picture of an endless series, to warm up a vision tower.

    Kinds of scenes take turns. The pictures are not those of ``generate_rows``.
    """
    rng = seeded_rng(seed, "caption", number)
    kind = list(KINDS.values())[number % len(KINDS)]
    scene = draw_scene(rng, kind)
    png, positions = render_with_positions(scene, draw_style(rng))
    return CaptionedPicture(png, scene, positions)


@dataclass
class _Tally:
    """Counts of what has been written so far."""

    kinds: Counter[str] = field(default_factory=Counter)
    images: set[str] = field(default_factory=set)
    groups: set[str] = field(default_factory=set)
    twins: set[str] = field(default_factory=set)

    def add(self, example: LabelledExample) -> None:
        """Count an example."""
        self.kinds[example.metadata["kind"]] += 1
        self.images.update(example.images)
        self.groups.add(example.group)
        if "twin" in example.metadata:
            self.twins.add(example.metadata["twin"])


def write_charts(
    out: Path, files: Mapping[str, Iterable[ChartRow]], *, source: Mapping[str, Any], command: str
) -> dict[str, Any]:
    """Write the files, ``images/`` and, last, ``manifest.json``; equal input, equal bytes.

    Every picture is written once, under a hash of its content; rows name it relative to ``out``.

    Args:
        out: Folder to write to; made if it is missing.
        files: Examples with their pictures by file name (``train.jsonl``), taken one by one.
        source: What the rows were made from.
        command: Command line that can repeat this.

    Returns:
        The manifest.

    Raises:
        CustosError: If files of these names lie there that did not come with a manifest.
    """
    check_replaceable(out, files)
    tally = _Tally()
    with write_with_manifest(out, source=source, command=command) as manifest:
        outputs, counts = {}, {}
        for name, rows in files.items():
            labels: Counter[str] = Counter()
            num_rows = write_records(out / name, _counted(_saved(rows, out), tally, labels))
            outputs[name] = {"rows": num_rows, "sha256": file_sha256(out / name)}
            counts[name] = dict(sorted(labels.items()))
        manifest.update(
            outputs=outputs,
            images=len(tally.images),
            counts=counts,
            kinds=dict(sorted(tally.kinds.items())),
            groups=len(tally.groups),
            twins=len(tally.twins),
        )
    return manifest


def _saved(rows: Iterable[ChartRow], out: Path) -> Iterator[LabelledExample]:
    for row in rows:
        if row.png:
            save_picture(row.png, out)
        yield row.example


def _counted(
    examples: Iterable[LabelledExample], tally: _Tally, labels: Counter[str]
) -> Iterator[LabelledExample]:
    for example in examples:
        tally.add(example)
        labels[example.label] += 1
        yield example
