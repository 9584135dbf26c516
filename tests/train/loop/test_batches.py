from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example as such_as
from hypothesis import given, settings
from hypothesis import strategies as st

from judging.errors import CustosError
from judging.models.backbones import Backbone
from judging.scoring.prompts import Encoder
from tests.tiny import save_picture
from tests.train.made_up import encoded, example, examples, steps_of
from train.loop.batches import MicroBatch, RowCosts, StepPlan
from train.rows.data import Examples, RunSplits
from train.rows.rows import Rows, Supervision, index_splits
from train.setup.recipe import OptimSection
from train.setup.run_log import RUN_LOG


@pytest.fixture(scope="module")
def rows(backbone: Backbone) -> Rows:
    """Two rubrics of unequal size."""
    fields = [{"variant": "tolerance"} if i % 5 == 0 else {} for i in range(50)]
    return encoded(backbone, [example(i, **more) for i, more in enumerate(fields)])


def _steps(
    rows: Rows,
    batch_size: int,
    token_budget: int = 10**6,
    *,
    processes: int = 1,
    replayed: int = 0,
    epochs: int = 1,
    **keys: Any,
) -> list[list[MicroBatch]]:
    """Return the micro-batches of every step of a run."""
    optim = OptimSection(
        lr=1.0, batch_size=batch_size, token_budget=token_budget, epochs=epochs, **keys
    )
    return steps_of(StepPlan(rows, optim, 0, processes, replayed))


@settings(max_examples=40)
@given(st.integers(1, 20), st.integers(1, 500), st.booleans())
def test_every_row_once_per_epoch(
    rows: Rows, batch_size: int, token_budget: int, whole_questions: bool
) -> None:
    steps = _steps(rows, batch_size, token_budget, epochs=2, whole_questions=whole_questions)
    drawn = [row for step in steps for micro in step for row in micro]
    assert sorted(drawn[:50]) == sorted(drawn[50:]) == list(range(50))
    assert drawn[:50] != drawn[50:]
    for step in steps:
        assert 1 <= sum(map(len, step)) <= batch_size
        assert len({rows.facts.rubric[row] for micro in step for row in micro}) == 1
        for micro in step:
            assert len(micro) == 1 or len(micro) * rows.facts.width[micro].max() <= token_budget


@settings(max_examples=60)
@given(
    st.integers(1, 20), st.integers(1, 500), st.integers(1, 49), st.integers(1, 4), st.booleans()
)
def test_every_step_has_new_and_replayed_rows_in_their_shares(
    rows: Rows,
    batch_size: int,
    token_budget: int,
    replayed: int,
    processes: int,
    whole_questions: bool,
) -> None:
    mixed: dict[str, Any] = {"replayed": replayed, "whole_questions": whole_questions}
    steps = _steps(rows, batch_size, token_budget, processes=processes, **mixed)
    assert sorted(row for step in steps for micro in step for row in micro) == list(range(50))
    assert len(steps) == -(-50 // batch_size)
    for step in steps:
        for micro in step:
            assert len({rows.facts.rubric[row] for row in micro}) == 1
            assert len(micro) == 1 or len(micro) * rows.facts.width[micro].max() <= token_budget
        drawn = [row for micro in step for row in micro]
        assert len(drawn) <= batch_size
        widths, share = rows.facts.width, -(-len(drawn) // processes)
        most = max(len(micro) * widths[micro].max() for micro in step)
        assert most <= share * widths[drawn].max(), "it is planned that a process has its share"
        num_replayed = sum(row >= 50 - replayed for row in drawn)
        assert abs(num_replayed - len(drawn) * replayed / 50) < 1
    of_steps, of_single = (
        [sorted(row for micro in step for row in micro) for step in each]
        for each in (steps, _steps(rows, batch_size, **mixed))
    )
    assert of_steps == of_single, "processes and budget only decide how a step is cut"


@settings(max_examples=60)
@given(
    st.lists(st.integers(1, 900), min_size=1, max_size=40), st.integers(1, 9), st.integers(1, 3000)
)
@such_as([5] * 6, 4, 3000)  # three parts of two rows, of which one is divided
def test_processes_get_batches_of_like_cost(
    lengths: list[int], processes: int, budget: int
) -> None:
    widths, copies = np.array(sorted(lengths)), np.ones(len(lengths), dtype=np.int64)
    rubrics = np.zeros(len(lengths), dtype=np.int32)
    costs_of_rows = RowCosts(widths, copies, rubrics)
    micros = costs_of_rows.cut_step(range(len(lengths)), processes, budget)
    assert sorted(row for micro in micros for row in micro) == list(range(len(lengths)))
    costs = [len(micro) * int(widths[micro].max()) for micro in micros]
    assert all(cost <= budget or len(m) == 1 for cost, m in zip(costs, micros, strict=True))
    shares = [len(micros[i::processes]) for i in range(processes)]
    assert max(shares) - min(shares) <= 1
    assert len(micros) >= min(len(lengths), processes), "no process is idle without need"
    if len(micros) % processes == 0 and processes > 1:
        loads = [sum(costs[i::processes]) for i in range(processes)]
        assert max(loads) - min(loads) <= max(costs)


def test_whole_questions_stay_together(backbone: Backbone) -> None:
    rows = encoded(backbone, [example(i, question=f"What is {i % 20}?") for i in range(80)])
    micros = [
        [rows[row].example.question for row in micro]
        for step in _steps(rows, 16, whole_questions=True)
        for micro in step
    ]
    assert len(micros) == 5
    for micro in micros:
        assert sorted(Counter(micro).values()) == [4, 4, 4, 4]
    scattered = [micro for step in _steps(rows, 16) for micro in step]
    assert any(len({rows[row].example.question for row in micro}) > 4 for micro in scattered)


def test_pictures_of_a_task_of_text_are_left_out_and_counted_once(
    backbone: Backbone, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    picture = save_picture(tmp_path / "a.png", 60, 60)
    pictured = [example(i, images=(picture,), group=f"g{i}") for i in range(3)]
    val = [example(4, images=(picture,))]
    splits = RunSplits(Examples.write([*pictured, example(3)]), Examples.write(val))
    lines: list[str] = []
    monkeypatch.setattr(RUN_LOG, "write", lines.append)
    indexed = index_splits(splits, Supervision(Encoder(backbone)))
    assert lines == ["the pictures of 4 rows are left out: task 'hieval-qs' reads text alone"]
    bare = Rows([example(i) for i in range(4)], Supervision(Encoder(backbone)), "train")
    assert indexed.train.facts.length.tolist() == bare.facts.length.tolist()
    assert indexed.train.batch([0, 1, 2, 3]).layout.vision == {}


def test_a_calibration_row_that_is_too_long_is_named_before_step_0(backbone: Backbone) -> None:
    long = example(7, references=("green " * backbone.context,))
    short = Examples.write(examples(2))
    splits = RunSplits(short, short, cal=Examples.write([long]))
    with pytest.raises(CustosError, match=r"^split 'cal': row '7': field 'references': the prompt"):
        index_splits(splits, Supervision(Encoder(backbone)))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"label": "Partial"}, "field 'label': 'Partial' is not one of Correct, Wrong"),
        ({"images": ("none.png",)}, "'none.png' is not a readable picture"),
    ],
)
def test_bad_rows_are_named(backbone: Backbone, fields: dict[str, object], message: str) -> None:
    bad = [*examples(2), example(7, **fields)]
    with pytest.raises(CustosError, match=rf"^split 'val': row '7': .*{message}"):
        Rows(bad, Supervision(Encoder(backbone, shows_all_pictures=True)), "val")
