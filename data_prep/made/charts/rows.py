"""Labelled rows about pictures, in groups of four that share their pictures.

Some groups begin with two pictures under one question and one response, which only the pictures
tell apart. A *twin* is a response that is faulty logic on the first picture and a misreading on the
second, both having the same answer. A *contrast* is a response that is right for the first picture
and misreads the second. The second picture is searched for: a reader of it who takes the stated
values for true must reach the response by right logic.

Labels hold by construction. Rows are planned before anything is drawn.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from pathlib import Path
from random import Random
from typing import Any, Literal

from data_prep.made.charts.drawing import IMAGE_FOLDER, picture_path, render
from data_prep.made.charts.operations import Solution, operations_for, twin_operations_for
from data_prep.made.charts.responses import (
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
from data_prep.made.charts.scenes import KINDS, ChartScene, Style, draw_scene, draw_style
from data_prep.made.words.wordings import (
    Wording,
    WordingSplit,
    draw_weighted,
    question_wordings_of,
    seeded_rng,
)
from data_prep.splits.manifest import check_replaceable, write_with_manifest
from data_prep.tables.cells import save_image
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


Drawn = tuple[LabelledExample, bytes | None]
"""An example and the picture that its one image path, ``images/<hash>.png``, names; ``None`` where
the question says what the picture shows, and the example has no image."""


def plan_rows(
    num_rows: int,
    seed: int,
    wordings: WordingSplit,
    twins: float = TWIN_SHARE,
    name: str = "charts",
) -> Iterator[PlannedRow]:
    """Stream labelled examples for the task ``hieval-ea``.

    Every four consecutive rows are a group: they ask about one picture, or about two that a twin or
    contrast sets side by side. The share ``twins`` of groups begins with a twin. ``name`` begins
    every id; other names give other rows.
    """
    stream = _Stream(name, seed, wordings, twins)
    groups = (_Group(stream, number) for number in itertools.count())
    return itertools.islice((row for group in groups for row in group.rows()), num_rows)


def plan_twins(
    num_rows: int, seed: int, wordings: WordingSplit, kinds: Collection[str] = tuple(KINDS)
) -> Iterator[PlannedRow]:
    """Stream twins about some kinds of scenes, two rows each."""
    stream = _Stream("twins", seed, wordings, 1.0)
    groups = (_Group(stream, number) for number in itertools.count())
    rows = (row for group in groups if group.kind.name in kinds for row in group.shared)
    return itertools.islice(rows, num_rows)


def draw_pictures(planned: Iterable[PlannedRow]) -> Iterator[Drawn]:
    """Add the pictures to rows; neighbouring rows about one picture share a drawing."""
    render_once = lru_cache(maxsize=2)(render)
    for row in planned:
        png = render_once(row.scene, row.style)
        yield row.example.model_copy(update={"images": (picture_path(png),)}), png


def write_captions(planned: Iterable[PlannedRow]) -> Iterator[Drawn]:
    """Put a caption of each picture into the question instead: the same task for a text reader.

    A small judge learns from such rows to compare a response with given data, and goes on from
    there to pictures. Started on pictures, it did not learn it (docs/error-analysis.md).
    """
    for row in planned:
        question = f"Picture: {row.scene.describe()}. {row.example.question}"
        yield row.example.model_copy(update={"question": question}), None


def write_charts(
    out: Path, files: Mapping[str, Iterable[Drawn]], *, source: Mapping[str, Any], command: str
) -> dict[str, Any]:
    """Write the files, ``images/`` and, last, ``manifest.json``; equal input, equal bytes.

    Every picture is written once, under a hash of its content; rows name it relative to ``out``.
    ``files`` maps names (``train.jsonl``) to examples with their pictures, which are taken one by
    one; ``source`` says what the rows were made from. Return the manifest.
    """
    check_replaceable(out, files)
    kinds: Counter[str] = Counter()
    seen: dict[str, set[str]] = {"images": set(), "groups": set(), "twins": set()}

    def saved(rows: Iterable[Drawn], labels: Counter[str]) -> Iterator[LabelledExample]:
        for example, png in rows:
            if png:
                save_image(png, out / IMAGE_FOLDER)
            labels[example.label] += 1
            kinds[example.metadata["kind"]] += 1
            seen["images"].update(example.images)
            seen["groups"].add(example.group)
            if twin := example.metadata.get("twin"):
                seen["twins"].add(twin)
            yield example

    with write_with_manifest(out, source=source, command=command) as manifest:
        outputs, counts = {}, {}
        for name, rows in files.items():
            labels: Counter[str] = Counter()
            num_rows = write_records(out / name, saved(rows, labels))
            outputs[name] = {"rows": num_rows, "sha256": file_sha256(out / name)}
            counts[name] = dict(sorted(labels.items()))
        manifest.update(
            outputs=outputs,
            images=len(seen["images"]),
            counts=counts,
            kinds=dict(sorted(kinds.items())),
            groups=len(seen["groups"]),
            twins=len(seen["twins"]),
        )
    return manifest


@dataclass(frozen=True)
class _Stream:
    """Everything that fixes an endless stream of groups."""

    name: str
    seed: int
    wordings: WordingSplit
    twins: float

    def rng(self, *key: object) -> Random:
        """Make a generator that belongs to one group or one row."""
        return seeded_rng(self.name, self.seed, self.wordings, *key)

    @property
    def relations(self) -> dict[Relation, float]:
        """Compute the shares of groups that begin with a twin or a contrast."""
        return {"twin": self.twins, "contrast": min(CONTRAST_SHARE, 1 - self.twins)}

    @property
    def free_shares(self) -> dict[str | None, float]:
        """Weigh the types of rows outside twins and contrasts so that all have ``TYPE_SHARES``."""
        shares = dict(TYPE_SHARES)
        for relation, share in self.relations.items():
            for error_type in SHARED_RESPONSE_TYPES[relation]:
                shares[error_type] = max(0.0, shares[error_type] - share / ROWS_PER_GROUP)
        return shares


class _Group:
    """Four rows about one picture, or about two of one style with two rows that share all text."""

    def __init__(self, stream: _Stream, number: int) -> None:
        rng = stream.rng("unit", number)
        self.stream, self.number = stream, number
        self.name = f"{stream.name}-{stream.wordings}-{stream.seed}-{number}"
        self.kind = rng.choice(list(KINDS.values()))
        self.style = draw_style(rng)
        self.scenes = [draw_scene(rng, self.kind)]
        self.shared: list[PlannedRow] = []
        """The twin or contrast; empty without one."""
        threshold = rng.random()
        for relation, share in stream.relations.items():
            if threshold < share:
                self.shared = self._share_response(rng, relation)
                self.scenes = [row.scene for row in self.shared]
                break
            threshold -= share

    def rows(self) -> Iterator[PlannedRow]:
        """Yield the four rows."""
        yield from self.shared
        for position in range(len(self.shared), ROWS_PER_GROUP):
            rng = self.stream.rng("row", self.number, position)
            scene = self.scenes[position % len(self.scenes)]
            yield PlannedRow(self._draw_example(rng, scene, position), scene, self.style)

    def _share_response(self, rng: Random, relation: Relation) -> list[PlannedRow]:
        """Make two rows, in either order, of a response that fits a second picture as well."""
        operations = operations_for(self.kind.name)
        if relation == "twin":
            operations = dict.fromkeys(twin_operations_for(self.kind.name), 1)
        found = None
        while found is None:
            scene = draw_scene(rng, self.kind)
            exercise = draw_exercise(rng, self.kind, scene, operations)
            found = _find_shared_response(rng, exercise, relation)
        solution, behaviour, view, truth = found
        question = self._draw_question(rng, exercise)
        wording = rng.choice(wordings_for(exercise, self.stream.wordings, ("selected", "inline")))
        text = put_into_words(exercise, wording, exercise.view, solution)
        first_type, second_type = SHARED_RESPONSE_TYPES[relation]
        second = replace(exercise, view=view, truth=truth)
        sides = [
            (scene, exercise, first_type, behaviour),
            (scene.with_view(exercise.column, view), second, second_type, "misread"),
        ]
        rng.shuffle(sides)
        rows = []
        for position, (its_scene, its_exercise, error_type, its_behaviour) in enumerate(sides):
            response = ChartResponse(text, wording, its_behaviour)
            label = label_of(WRONG if error_type else CORRECT, error_type)
            row = self._example(its_scene, its_exercise, question, response, label, position)
            metadata = row.metadata | {relation: self.name}
            row = row.model_copy(update={"metadata": metadata})
            rows.append(PlannedRow(row, its_scene, self.style))
        return rows

    def _draw_example(self, rng: Random, scene: ChartScene, position: int) -> LabelledExample:
        """Draw an error type, then exercises and responses until one earns it."""
        shares = self.stream.free_shares
        error_type = draw_weighted(rng, shares)
        score = WRONG if error_type else CORRECT
        if error_type:
            per_free_row = TYPE_SHARES[error_type] / shares[error_type]
            if rng.random() < min(MAX_PARTIAL, PARTIAL_SHARE * per_free_row):
                score = PARTIAL
        operations = operations_for(self.kind.name)
        while True:
            exercise = draw_exercise(rng, self.kind, scene, operations)
            if score == PARTIAL and len(exercise.truth.answers) < 2:
                continue
            wordings = wordings_for(exercise, self.stream.wordings)
            if response := respond(rng, exercise, score, error_type, wordings):
                label = label_of(score, error_type)
                question = self._draw_question(rng, exercise)
                return self._example(scene, exercise, question, response, label, position)

    def _draw_question(self, rng: Random, exercise: Exercise) -> Wording:
        asked = question_wordings_of(questions(), self.stream.wordings)
        return rng.choice(questions_for(exercise, asked))

    def _example(
        self,
        scene: ChartScene,
        exercise: Exercise,
        question: Wording,
        response: ChartResponse,
        label: str,
        position: int,
    ) -> LabelledExample:
        return LabelledExample(
            id=f"{self.name}-{position}",
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
                "style": asdict(self.style),
                "caption": scene.describe(),
                "readings": scene.readings(),
            },
            group=self.name,
            source="charts",
        )


def _find_shared_response(
    rng: Random, exercise: Exercise, relation: Relation
) -> tuple[Solution, str, dict[str, int], Solution] | None:
    """Find a response that fits the picture of an exercise and another picture.

    Give the response, its fault on the first picture, and the values and the right solution of the
    second; ``None`` after some tries in vain.
    """
    solution, behaviour = exercise.truth, "right"
    if relation == "twin":
        slips = [
            slip.solution
            for slip in exercise.problem.slips(exercise.view)
            if slip.name == "wrong choice"
            and score_answers(slip.solution.answers, exercise.truth.answers) == WRONG
        ]
        if not slips:
            return None
        solution, behaviour = rng.choice(slips), "wrong choice"
    stated = {name: exercise.view[name] for name in solution.items}
    for _ in range(TRIES):
        values = exercise.kind.draw_values(rng, len(exercise.view))
        view = dict(zip(exercise.view, values, strict=True))
        truth = exercise.problem.solve(view)
        if truth is None or stated.items() <= view.items():
            continue
        if relation == "twin":
            suits = set(truth.answers) == set(exercise.truth.answers)
        else:
            suits = score_answers(solution.answers, truth.answers) == WRONG
        if suits and exercise.problem.solve(view | stated) == solution:
            return solution, behaviour, view, truth
    return None
