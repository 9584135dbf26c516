from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judging.errors import CustosError
from judging.models.backbones import Backbone, load_backbone
from judging.scoring.prompts import Encoder
from tests.tiny import save_picture
from tests.train.made_up import encoded, example, examples
from train.loop.batches import LabelSupervision, MicroBatch, Rows, StepPlan
from train.setup.recipe import OptimSection, read_values
from train.setup.recipe_files import find_recipe, recipe_names


@pytest.fixture(scope="module")
def backbone(small: str) -> Backbone:
    return load_backbone(small, dtype="float32", device="cpu")


@pytest.fixture(scope="module")
def rows(backbone: Backbone) -> Rows:
    """Two rubrics of unequal size."""
    fields = [{"variant": "tolerance"} if i % 5 == 0 else {} for i in range(50)]
    return encoded(backbone, [example(i, **more) for i, more in enumerate(fields)])


def _plan(
    rows: Rows, batch_size: int, micro_batch_size: int, seed: int = 0, **optim: Any
) -> StepPlan:
    sizes = {"batch_size": batch_size, "micro_batch_size": micro_batch_size}
    return StepPlan(rows, OptimSection.model_validate({"lr": 1.0, **sizes, **optim}), seed)


def _ids(steps: list[list[MicroBatch]]) -> list[list[list[str]]]:
    return [[[row.example.id for row in micro] for micro in step] for step in steps]


def test_the_order_is_a_function_of_seed_and_epoch(backbone: Backbone, rows: Rows) -> None:
    first = _ids(_plan(rows, 8, 4, 3).epoch(1))
    assert first == _ids(_plan(rows, 8, 4, 3).epoch(1))
    again = encoded(backbone, [row.example for row in rows.rows])
    assert first == _ids(_plan(again, 8, 4, 3).epoch(1))
    assert first != _ids(_plan(rows, 8, 4, 3).epoch(2))
    assert first != _ids(_plan(rows, 8, 4, 4).epoch(1))


@settings(max_examples=40)
@given(st.integers(1, 20), st.integers(1, 8), st.integers(0, 99), st.booleans())
def test_every_row_once_per_epoch(
    rows: Rows, batch_size: int, micro_batch_size: int, epoch: int, whole_questions: bool
) -> None:
    plan = _plan(rows, batch_size, micro_batch_size, whole_questions=whole_questions)
    steps = plan.epoch(epoch)
    ids = [row.example.id for step in steps for micro in step for row in micro]
    assert sorted(ids) == sorted(row.example.id for row in rows.rows)
    for step in steps:
        assert 1 <= sum(map(len, step)) <= batch_size
        assert len({row.rubric for micro in step for row in micro}) == 1
        for micro in step:
            assert 1 <= len(micro) <= micro_batch_size
            assert len({prompt.prefix_ids for prompt in rows.prompts(micro)}) == 1


@pytest.mark.parametrize("name", [n for n in recipe_names() if n != "embedded/vision_warmup"])
def test_shipped_recipes_take_the_same_steps_in_any_number_of_processes(
    rows: Rows, name: str
) -> None:
    optim = OptimSection.model_validate(read_values(find_recipe(name))["optim"] | {"epochs": 1})
    single = StepPlan(rows, optim, 0)
    expected = [[id_ for micro in step for id_ in micro] for step in _ids(single.epoch(0))]
    for processes in (1, 2, 4, 6, 8, 16):
        plan = StepPlan(rows, optim, 0, processes)
        steps = plan.epoch(0)
        assert plan.total_steps == single.total_steps
        assert [[i for micro in step for i in micro] for step in _ids(steps)] == expected
        for step in steps:
            sizes = [len(micro) for micro in step]
            assert max(sizes) <= optim.micro_batch_size
            assert max(sizes) - min(sizes) <= 1
            assert len(step) >= min(sum(sizes), processes), "no process is idle without need"
            shares = [len(step[i::processes]) for i in range(processes)]
            assert max(shares) - min(shares) <= 1
            assert max(shares) == -(-sum(sizes) // (processes * optim.micro_batch_size))


def test_all_rows_take_part_over_the_epochs(rows: Rows) -> None:
    seen = {
        row.example.id
        for epoch in range(6)
        for step in _plan(rows, 16, 4).epoch(epoch)
        for micro in step
        for row in micro
    }
    assert len(seen) == len(rows)


def test_rows_of_a_micro_batch_have_like_lengths(backbone: Backbone) -> None:
    rows = encoded(backbone, [example(i, responses=("green " * (i % 40),)) for i in range(64)])
    micros = [micro for step in _plan(rows, 8, 8).epoch(0) for micro in step]
    padding = sum(max(r.length for r in m) * len(m) - sum(r.length for r in m) for m in micros)
    # Eight neighbours of 64 rows between 0 and 39 words; in random order it would be a third.
    assert padding < 0.1 * sum(row.length for row in rows.rows)


def test_whole_questions_stay_together(backbone: Backbone) -> None:
    rows = encoded(backbone, [example(i, question=f"What is {i % 20}?") for i in range(80)])
    micros = [
        micro for step in _plan(rows, 16, 16, whole_questions=True).epoch(0) for micro in step
    ]
    assert len(micros) == 5
    for micro in micros:
        assert sorted(Counter(row.example.question for row in micro).values()) == [4, 4, 4, 4]
    scattered = [micro for step in _plan(rows, 16, 16).epoch(0) for micro in step]
    assert any(len({row.example.question for row in micro}) > 4 for micro in scattered)


def test_rows_with_pictures_stay_with_their_group(backbone: Backbone, tmp_path: Path) -> None:
    picture = save_picture(tmp_path / "a.png", 60, 60)
    made = [example(i, question=f"{i}?", group=f"g{i % 5}", images=(picture,)) for i in range(20)]
    micros = [
        micro
        for step in _plan(encoded(backbone, made), 4, 4, whole_questions=True).epoch(0)
        for micro in step
    ]
    assert [len({row.example.group for row in micro}) for micro in micros] == [1] * 5


def test_targets_and_rubrics(rows: Rows) -> None:
    for row in rows.rows:
        assert row.tree.labels[row.target] == row.example.label
        assert row.rubric == f"hieval-qs/{row.example.variant}/any"
    assert len({id(row.tree) for row in rows.rows}) == 2, "a tree is built once per rubric"


def test_pictures_are_encoded_when_used(backbone: Backbone, tmp_path: Path) -> None:
    picture = save_picture(tmp_path / "a.png", 60, 60)
    rows = encoded(backbone, [example(0, images=(picture,)), example(1)])
    with_image, without = rows.rows
    assert with_image.prompts is None
    [pictured, plain] = rows.prompts([with_image, without])
    assert pictured.vision["pixel_values"].shape[0] > 0
    assert with_image.length == len(pictured.suffix_ids) + len(with_image.tree.node_tokens)
    assert without.prompts == (plain,)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"label": "Partial"}, "field 'label': 'Partial' is not one of Correct, Wrong"),
        ({"references": ()}, "field 'references'"),
        ({"images": ("none.png",)}, "'none.png' is not a readable picture"),
    ],
)
def test_bad_rows_are_named(backbone: Backbone, fields: dict[str, object], message: str) -> None:
    bad = [*examples(2), example(7, **fields)]
    with pytest.raises(CustosError, match=rf"^split 'val': row '7': .*{message}"):
        Rows(bad, LabelSupervision(Encoder(backbone)), "val")
