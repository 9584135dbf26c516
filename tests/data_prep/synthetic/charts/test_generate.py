from __future__ import annotations

import hashlib
import io
import json
from collections import Counter, defaultdict
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from typer.testing import CliRunner

from cli.main import app
from data_prep.sources.generic import load_generic
from data_prep.splits.splits import SPLITS
from data_prep.synthetic.charts.drawing import render
from data_prep.synthetic.charts.export import write_charts
from data_prep.synthetic.charts.generate import (
    draw_captioned,
    draw_pictures,
    generate_rows,
    plan_rows,
    plan_twins,
)
from data_prep.synthetic.charts.operations import GENERAL, operations_for, twin_operations_for
from data_prep.synthetic.charts.questions import QUESTIONS
from data_prep.synthetic.charts.responses import draw_exercise, score_answers
from data_prep.synthetic.charts.rows import PlannedRow
from data_prep.synthetic.charts.scenes import KINDS, NAME, VALUES, ChartScene, draw_scene
from data_prep.synthetic.charts.styles import SIZES, draw_style
from data_prep.synthetic.charts.wordings import FRAMES, STEPS
from judging.records import read_records
from judging.scoring.prompts import read_image
from judging.tasks.hieval_ea import ERROR_TYPES
from judging.types import LabelledExample

HELD_OUT = {form.id for form in FRAMES if form.held_out}
HELD_OUT_STEPS = {step.id for step in STEPS if step.held_out}
HELD_OUT_QUESTIONS = {form.id for form in QUESTIONS if form.held_out}
LABELS = {"Correct"} | {f"{s}; {t}" for s in ("Partial", "Wrong") for t in ERROR_TYPES}
FORM_SPLITS = ("train", "test", "all")

seeds = st.integers(min_value=-(2**63), max_value=2**63)


@pytest.fixture(scope="module")
def train_rows() -> list[LabelledExample]:
    return [row.example for row in plan_rows(6000, 1, "train")]


@pytest.fixture(scope="module")
def test_rows() -> list[LabelledExample]:
    return [row.example for row in plan_rows(4000, 1, "test")]


@pytest.fixture(scope="module")
def twins() -> list[PlannedRow]:
    return list(plan_twins(800, 1, "all"))


def _seen(rows: list[LabelledExample], key: str) -> set[str]:
    return {row.metadata[key] for row in rows}


# Reproducible and streaming.


def test_same_seed_gives_the_same_rows_and_pictures() -> None:
    assert list(generate_rows(12, 7, "all")) == list(generate_rows(12, 7, "all"))


def test_a_longer_run_starts_with_the_shorter_one() -> None:
    assert list(plan_rows(50, 7, "train"))[:18] == list(plan_rows(18, 7, "train"))


def test_other_seeds_and_decks_give_other_scenes() -> None:
    drawn = [[row.scene for row in plan_rows(8, seed, "all")] for seed in (1, 2)]
    drawn.append([row.scene for row in plan_twins(8, 1, "all")])
    assert drawn[0] != drawn[1] and drawn[0] != drawn[2]


def test_rows_are_drawn_one_by_one() -> None:
    assert len(list(islice(plan_rows(10**12, 0, "train"), 5))) == 5


def test_four_rows_ask_about_one_picture_or_about_two_side_by_side(
    train_rows: list[LabelledExample],
) -> None:
    rows, captions_of = Counter(row.group for row in train_rows), defaultdict(set)
    for row in train_rows:
        captions_of[row.group].add(row.metadata["caption"])
        paired = {"twin", "contrast"} & set(row.metadata)
        assert all(row.metadata[key] == row.group for key in paired)
    assert set(rows.values()) == {4}
    assert {len(shown) for shown in captions_of.values()} == {1, 2}
    assert len({row.id for row in train_rows}) == len(train_rows)


# Forms.


def test_there_are_at_least_forty_forms_and_ids_are_unique() -> None:
    assert len({form.id for form in FRAMES}) == len(FRAMES) >= 40
    for table in (STEPS, QUESTIONS):
        assert len({form.id for form in table}) == len(table)


def test_every_family_and_operation_is_worded_on_both_sides() -> None:
    operations = {f.__name__ for kind in KINDS for f in operations_for(kind)}
    assert operations > {f.__name__ for f in GENERAL}
    for held_out in (False, True):
        assert {f.family for f in FRAMES if f.held_out == held_out} == {f.family for f in FRAMES}
        assert {s.operation for s in STEPS if s.held_out == held_out} == operations
    assert {q.operation for q in QUESTIONS if not (q.held_out or q.kind)} == operations


def test_held_out_forms_never_occur_in_train(train_rows: list[LabelledExample]) -> None:
    assert _seen(train_rows, "form") == {form.id for form in FRAMES} - HELD_OUT
    assert not _seen(train_rows, "step") & HELD_OUT_STEPS
    assert not _seen(train_rows, "question_form") & HELD_OUT_QUESTIONS


def test_test_is_worded_in_held_out_forms_only(test_rows: list[LabelledExample]) -> None:
    assert _seen(test_rows, "form") == HELD_OUT
    assert _seen(test_rows, "step") <= HELD_OUT_STEPS
    assert _seen(test_rows, "question_form") >= HELD_OUT_QUESTIONS


def test_reasoned_forms_do_not_give_the_label_away(train_rows: list[LabelledExample]) -> None:
    types: dict[str, set[str | None]] = defaultdict(set)
    for row in train_rows:
        types[row.metadata["form"]].add(row.error_type)
    for form, seen in types.items():
        if form.startswith(("complete", "selected", "inline")):
            assert seen == {None, "Reasoning Error", "Image Misunderstanding"}
        if form.startswith(("bare", "label")):
            assert seen == {None, "Other"}


# Labels.


def test_labels_come_in_their_shares(train_rows: list[LabelledExample]) -> None:
    types = Counter(row.error_type for row in train_rows)
    shares = {name: count / types.total() for name, count in types.items()}
    wanted: dict[str | None, float] = {None: 0.40, **dict.fromkeys(ERROR_TYPES, 0.12)}
    assert shares == pytest.approx(wanted, abs=0.025)
    errors = [row.label for row in train_rows if row.error_type]
    partial = sum(label.startswith("Partial") for label in errors) / len(errors)
    assert partial == pytest.approx(0.25, abs=0.04)


def test_every_kind_shows_every_label(
    train_rows: list[LabelledExample], test_rows: list[LabelledExample]
) -> None:
    seen = defaultdict(set)
    for row in (*train_rows, *test_rows):
        seen[row.metadata["kind"]].add(row.label)
    assert dict(seen) == dict.fromkeys(KINDS, LABELS)


@settings(max_examples=40, deadline=None)
@given(seeds, st.sampled_from(FORM_SPLITS))
def test_rows_are_consistent(seed: int, forms: Any) -> None:
    for planned in plan_rows(8, seed, forms):
        row = planned.example
        score, _, error_type = row.label.partition("; ")
        assert (row.task, row.source, row.reference_mode) == ("hieval-ea", "charts", "all")
        assert (row.error_type or "") == error_type and row.label in LABELS
        assert row.references and row.response.strip() and "{" not in row.question
        assert score != "Partial" or len(row.references) > 1
        assert row.metadata["readings"] == planned.scene.readings()


@settings(max_examples=100, deadline=None)
@given(seeds, st.sampled_from(sorted(KINDS)))
def test_slips_keep_to_right_readings_and_problems_can_be_solved(seed: int, kind: str) -> None:
    rng = Random(seed)
    exercise = draw_exercise(rng, KINDS[kind], draw_scene(rng, KINDS[kind]), operations_for(kind))
    assert exercise.problem.solve(exercise.view) == exercise.truth
    for slip in exercise.problem.slips(exercise.view):
        assert set(slip.solution.items) <= set(exercise.view)
        assert slip.solution.answers and slip.solution != exercise.truth


@pytest.mark.parametrize(
    ("answers", "score"),
    [("AB", "Correct"), ("BA", "Correct"), ("A", "Partial"), ("AC", "Wrong"), ("", "Wrong")],
)
def test_score(answers: str, score: str) -> None:
    assert score_answers(answers, "AB") == score


# Twins.


def test_twins_share_all_text_and_the_answer_but_not_the_picture(twins: list[PlannedRow]) -> None:
    for first, second in zip(twins[::2], twins[1::2], strict=True):
        pair = (first.example, second.example)
        for field in ("question", "responses", "references", "group"):
            assert getattr(pair[0], field) == getattr(pair[1], field)
        assert {row.error_type for row in pair} == {"Reasoning Error", "Image Misunderstanding"}
        assert pair[0].metadata["twin"] == pair[1].metadata["twin"] == pair[0].group
        assert first.style == second.style
        assert first.scene.names == second.scene.names and first.scene != second.scene


def test_twins_come_in_many_templates_and_both_orders(twins: list[PlannedRow]) -> None:
    templates = {(row.scene.kind, row.example.metadata["operation"]) for row in twins}
    assert len(templates) >= 40
    assert {kind for kind, _ in templates} == set(KINDS)
    assert {operation for _, operation in templates} == {
        operation.__name__ for operation in twin_operations_for("line")
    }
    assert {row.example.error_type for row in twins[::2]} == {
        "Reasoning Error",
        "Image Misunderstanding",
    }


def test_pictures_of_twins_differ(twins: list[PlannedRow]) -> None:
    for first, second in zip(*[iter(draw_pictures(twins[:24]))] * 2, strict=True):
        assert first.png != second.png
        assert first.example.images != second.example.images


def test_contrasts_share_their_response(train_rows: list[LabelledExample]) -> None:
    pairs = defaultdict(list)
    for row in train_rows:
        if "contrast" in row.metadata:
            pairs[row.group].append(row)
    assert len(pairs) > 20
    for rows in pairs.values():
        assert {row.label for row in rows} == {"Correct", "Wrong; Image Misunderstanding"}
        assert len({(row.question, row.response) for row in rows}) == 1


# Pictures.


@pytest.mark.parametrize("kind", KINDS)
def test_pictures_are_small_and_repeat_exactly(kind: str) -> None:
    assert all(width % 28 == height % 28 == 0 for width, height in SIZES)
    rng = Random(kind)
    scene, style = draw_scene(rng, KINDS[kind]), draw_style(rng)
    png = render(scene, style)
    assert png == render(scene, style)
    assert len(png) < 8000
    with Image.open(io.BytesIO(png)) as picture:
        assert (picture.format, picture.size) == ("PNG", (style.width, style.height))


@settings(max_examples=200, deadline=None)
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


def test_one_line_names_all_data() -> None:
    bars = ChartScene("bar", ("A", "B"), ("value",), ((3, 7),))
    assert bars.describe() == "bar: A 3, B 7"
    groups = ChartScene("grouped", ("A", "B"), ("red", "blue"), ((3, 7), (1, 2)))
    assert groups.describe() == "grouped red blue: A 3 1, B 7 2"
    assert groups.with_view("blue", {"A": 5, "B": 6}).view("blue") == {"A": 5, "B": 6}


def test_captioned_pictures_cycle_through_the_kinds() -> None:
    drawn = [draw_captioned(3, number) for number in range(len(KINDS))]
    assert [one.scene.kind for one in drawn] == list(KINDS)
    assert drawn == [draw_captioned(3, number) for number in range(len(KINDS))]
    assert all(one.png.startswith(b"\x89PNG") for one in drawn)


@pytest.mark.parametrize("kind", KINDS)
def test_items_stand_where_something_is_drawn(kind: str) -> None:
    for number in range(list(KINDS).index(kind), 5 * len(KINDS), len(KINDS)):
        one = draw_captioned(4, number)
        with Image.open(io.BytesIO(one.png)) as picture:
            pixels = np.asarray(picture.convert("L"), dtype=int)
        names = Counter(place.item for place in one.positions if NAME in place.facts)
        for fact in (NAME, *VALUES[: len(one.scene.values)]):
            items = {place.item for place in one.positions if fact in place.facts}
            assert items == set(range(len(one.scene.names)))
        if kind == "counting":
            assert [names[item] for item in sorted(names)] == list(one.scene.values[0])
        for x, y in ((place.x, place.y) for place in one.positions):
            assert 0 <= x < pixels.shape[1]
            assert 0 <= y < pixels.shape[0]
            around = pixels[max(0, int(y) - 14) : int(y) + 14, max(0, int(x) - 14) : int(x) + 14]
            assert np.ptp(around) > 30, "nothing but paper there"


def test_captions_come_in_pieces_that_name_what_they_tell() -> None:
    for number in range(2 * len(KINDS)):
        scene = draw_captioned(6, number).scene
        facts = {NAME: scene.names, **dict(zip(VALUES, scene.values, strict=False))}
        told = {(item, fact): text for text, item, fact in scene.caption() if fact}
        assert told == {
            (item, fact): f" {value}"
            for fact, values in facts.items()
            for item, value in enumerate(values)
        }


# Files.


def test_written_pictures_are_named_by_their_content(tmp_path: Path) -> None:
    rows = list(generate_rows(24, 5, "train"))
    manifests = [
        write_charts(
            tmp_path / name, {"rows.jsonl": rows}, source={"name": "charts"}, command="custos"
        )
        for name in ("first", "second")
    ]
    assert manifests[0] == manifests[1]
    files = sorted(path.name for path in (tmp_path / "first" / "images").iterdir())
    assert len(files) == manifests[0]["images"] < 24
    for name in files:
        content = (tmp_path / "first" / "images" / name).read_bytes()
        assert name == f"{hashlib.sha256(content).hexdigest()[:16]}.png"
    first, second = (tmp_path / name / "rows.jsonl" for name in ("first", "second"))
    assert first.read_bytes() == second.read_bytes()
    expected = [
        r.example.model_copy(update={"images": (str(first.parent / r.example.images[0]),)})
        for r in rows
    ]
    assert [row for _, row in read_records(first, LabelledExample)] == expected
    for row in load_generic(first):
        assert all(side % 28 == 0 for side in read_image(row.images[0]).size)


def _run(*arguments: object) -> str:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == 0, result.output
    return result.output


def _read(path: Path) -> list[LabelledExample]:
    return [row for _, row in read_records(path, LabelledExample)]


def test_charts_verb_splits_by_picture_and_keeps_forms_for_the_test(tmp_path: Path) -> None:
    sizes = ("--rows", 40, "--val", 4, "--cal", 8, "--test", 12)
    printed = _run("prep", "charts", "--out", tmp_path, "--seed", 2, *sizes)
    splits = {name: _read(tmp_path / f"{name}.jsonl") for name in SPLITS}
    assert {name: len(rows) for name, rows in splits.items()} == {
        "train": 16, "val": 4, "cal": 8, "test": 12,
    }  # fmt: skip
    for seen in (lambda row: {row.group}, lambda row: set(row.images)):
        everything = [set().union(*map(seen, rows)) for rows in splits.values()]
        assert sum(map(len, everything)) == len(set().union(*everything))
    assert _seen(splits["test"], "form") <= HELD_OUT
    assert not any(_seen(splits[name], "form") & HELD_OUT for name in ("train", "val", "cal"))
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    assert sum(manifest["counts"]["test.jsonl"].values()) == 12
    assert "40 examples" in printed


def test_twins_verb(tmp_path: Path) -> None:
    _run("prep", "twins", "--out", tmp_path, "--rows", 6)
    rows = _read(tmp_path / "twins.jsonl")
    assert _seen(rows, "form") <= HELD_OUT
    assert len({row.group for row in rows}) == 3
    assert json.loads((tmp_path / "manifest.json").read_text())["twins"] == 3


def test_twins_of_some_kinds_are_those_among_all_twins(tmp_path: Path) -> None:
    kinds = ("--kind", "bar", "--kind", "spectrum")
    _run("prep", "twins", "--out", tmp_path, "--rows", 10, "--captions", *kinds)
    found = [row.id for row in _read(tmp_path / "twins.jsonl")]
    everything = [row.example for row in plan_twins(400, 0, "test")]
    assert found == [row.id for row in everything if row.metadata["kind"] in kinds][:10]
    unknown = ["prep", "twins", "--out", str(tmp_path), "--rows", "2", "--kind", "barr"]
    assert "--kind 'barr': expected one of bar" in CliRunner().invoke(app, unknown).stderr


def test_captions_tell_what_the_pictures_of_the_same_rows_show(tmp_path: Path) -> None:
    sizes = ("--rows", 20, "--val", 0, "--cal", 0, "--test", 4)
    for folder, more in (("drawn", ()), ("told", ("--captions",))):
        _run("prep", "charts", "--out", tmp_path / folder, *sizes, *more)
        _run("prep", "twins", "--out", tmp_path / folder / "twins", "--rows", 4, *more)
    for name in ("train.jsonl", "test.jsonl", "twins/twins.jsonl"):
        drawn, told = (_read(tmp_path / folder / name) for folder in ("drawn", "told"))
        for seen, heard in zip(drawn, told, strict=True):
            assert heard.question == f"Picture: {seen.metadata['caption']}. {seen.question}"
            same = {"question": seen.question, "images": seen.images}
            assert heard.model_copy(update=same) == seen and not heard.images
    assert not (tmp_path / "told" / "images").exists()
    assert json.loads((tmp_path / "told" / "manifest.json").read_text())["images"] == 0
