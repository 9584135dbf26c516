"""Pictures of scenes, rows about them, twins, and the wordings of responses."""

import hashlib
from collections import Counter, defaultdict
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from data_prep.made.charts.operations import operations_for
from data_prep.made.charts.responses import draw_exercise
from data_prep.made.charts.rows import PlannedRow, draw_pictures, plan_rows, write_charts
from data_prep.made.charts.scenes import KINDS, draw_scene
from data_prep.splits.manifest import load_generic
from judging.files.pictures import read_image
from judging.files.records import read_records
from judging.tasks.hieval_ea import ERROR_TYPES, IMAGE, REASONING
from judging.types import LabelledExample

LABELS = {"Correct"} | {f"{s}; {t}" for s in ("Partial", "Wrong") for t in ERROR_TYPES}
seeds = st.integers(min_value=-(2**63), max_value=2**63)


@settings(max_examples=150, deadline=None)
@given(seeds, st.sampled_from(sorted(KINDS)))
def test_scenes_are_small_and_described_in_full(seed: int, name: str) -> None:
    kind = KINDS[name]
    scene = draw_scene(Random(seed), kind)
    assert 3 <= len(scene.names) <= 6
    for values in scene.values:
        assert len(set(values)) == len(values) == len(scene.names)
        assert all(kind.low <= value / kind.unit <= kind.high for value in values)
    line = scene.describe()
    assert len(line.split()) <= 20 and "\n" not in line
    described = [part.rsplit(" ", len(scene.columns)) for part in line.split(": ")[1].split(", ")]
    assert tuple(part[0] for part in described) == scene.names
    for column, values in enumerate(scene.values):
        assert tuple(int(part[column + 1]) for part in described) == values


@settings(max_examples=100, deadline=None)
@given(seeds, st.sampled_from(sorted(KINDS)))
def test_slips_keep_to_right_readings_and_problems_can_be_solved(seed: int, kind: str) -> None:
    rng = Random(seed)
    exercise = draw_exercise(rng, KINDS[kind], draw_scene(rng, KINDS[kind]), operations_for(kind))
    assert exercise.problem.solve(exercise.view) == exercise.truth
    for slip in exercise.problem.slips(exercise.view):
        assert set(slip.solution.items) <= set(exercise.view)
        assert slip.solution.answers and slip.solution != exercise.truth


def test_four_rows_ask_about_one_picture_or_about_two_side_by_side(
    chart_train: list[LabelledExample],
) -> None:
    rows, captions_of = Counter(row.group for row in chart_train), defaultdict(set)
    for row in chart_train:
        captions_of[row.group].add(row.metadata["caption"])
        paired = {"twin", "contrast"} & set(row.metadata)
        assert all(row.metadata[key] == row.group for key in paired)
    assert set(rows.values()) == {4}
    assert {len(captions) for captions in captions_of.values()} == {1, 2}


def test_labels_come_in_their_shares_and_every_kind_shows_each(
    chart_train: list[LabelledExample], chart_test: list[LabelledExample]
) -> None:
    types = Counter(row.error_type for row in chart_train)
    shares = {name: count / types.total() for name, count in types.items()}
    expected: dict[str | None, float] = {None: 0.40, **dict.fromkeys(ERROR_TYPES, 0.12)}
    assert shares == pytest.approx(expected, abs=0.05)
    errors = [row.label for row in chart_train if row.error_type]
    partial = sum(label.startswith("Partial") for label in errors) / len(errors)
    assert partial == pytest.approx(0.25, abs=0.06)
    labels = defaultdict(set)
    for row in (*chart_train, *chart_test):
        labels[row.metadata["kind"]].add(row.label)
    assert dict(labels) == dict.fromkeys(KINDS, LABELS)


def test_twins_share_all_text_and_the_answer_but_not_the_picture(twins: list[PlannedRow]) -> None:
    for first, second in zip(twins[::2], twins[1::2], strict=True):
        pair = (first.example, second.example)
        for field in ("question", "responses", "references", "group"):
            assert getattr(pair[0], field) == getattr(pair[1], field)
        assert {row.error_type for row in pair} == {REASONING, IMAGE}
        assert pair[0].metadata["twin"] == pair[1].metadata["twin"] == pair[0].group
        assert first.style == second.style
        assert first.scene.names == second.scene.names and first.scene != second.scene
    for (row, png), (other, other_png) in zip(*[iter(draw_pictures(twins[:8]))] * 2, strict=True):
        assert png != other_png
        assert row.images != other.images


def test_written_pictures_are_named_by_their_content(tmp_path: Path) -> None:
    rows = list(draw_pictures(plan_rows(24, 5, "train")))
    first, second = (tmp_path / name for name in ("first", "second"))
    manifests = [
        write_charts(out, {"rows.jsonl": rows}, source={"name": "charts"}, command="custos")
        for out in (first, second)
    ]
    assert manifests[0] == manifests[1]
    pictures = sorted((first / "images").iterdir())
    assert len(pictures) == manifests[0]["images"] < 24
    for path in pictures:
        assert path.name == f"{hashlib.sha256(path.read_bytes()).hexdigest()[:16]}.png"
    assert (first / "rows.jsonl").read_bytes() == (second / "rows.jsonl").read_bytes()
    expected = [row.model_copy(update={"images": (str(first / row.images[0]),)}) for row, _ in rows]
    assert [row for _, row in read_records(first / "rows.jsonl", LabelledExample)] == expected
    for row in load_generic(first / "rows.jsonl"):
        assert all(side % 28 == 0 for side in read_image(row.images[0]).size)
