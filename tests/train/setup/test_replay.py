from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judging.errors import CustosError
from tests.train.made_up import example, examples, write_split
from train.rows.data import ReplaySection, RunSplits, replay_sample, with_replay
from train.rows.examples import Examples

EARLIER = examples(90)  # every third Correct


@given(st.integers(0, 90), st.integers(0, 9))
def test_labels_keep_their_shares(num_task2: int, seed: int) -> None:
    sampled = replay_sample(EARLIER, num_task2, 1.0, "task2", seed)
    assert len(sampled) == num_task2
    assert len({row.id for row in sampled}) == num_task2, "drawn without replacement"
    counts = Counter(row.label for row in sampled)
    assert abs(counts["Correct"] - num_task2 / 3) < 1
    assert abs(counts["Wrong"] - 2 * num_task2 / 3) < 1


def test_rho_of_either_task() -> None:
    assert len(replay_sample(EARLIER, 40, 0.5, "task2", 0)) == 20
    assert len(replay_sample(EARLIER, 40, 0.5, "task1", 0)) == 45
    assert replay_sample(EARLIER, 40, 0.0, "task2", 0) == []


def test_the_draw_is_the_seeds_alone() -> None:
    first = replay_sample(EARLIER, 30, 1.0, "task2", 5)
    assert first == replay_sample(EARLIER, 30, 1.0, "task2", 5)
    assert first != replay_sample(EARLIER, 30, 1.0, "task2", 6)


def test_more_than_there_is_is_refused() -> None:
    with pytest.raises(
        CustosError,
        match="field 'replay.rho': 2.0 of task2 asks for 180 earlier rows, but there are 90",
    ):
        replay_sample(EARLIER, 90, 2.0, "task2", 0)


def test_splits_with_replay(tmp_path: Path) -> None:
    earlier = Path(write_split(tmp_path / "train.jsonl", EARLIER))
    val = Path(write_split(tmp_path / "val.jsonl", examples(9, 200)))
    new = examples(20, 500)
    splits = with_replay(
        RunSplits(Examples.write(new), Examples.write(new[:3])),
        ReplaySection(train=(earlier,), val=val, val_limit=6),
        0,
    )
    assert splits.train[:20] == new
    assert len(splits.train) == 40
    assert splits.replayed == 20
    assert splits.map(lambda rows: rows).replayed == 20
    assert [row.id for row in splits.watched["stage1"]] == [str(i) for i in range(200, 206)]
    assert splits.val == new[:3]
    assert with_replay(
        RunSplits(Examples.write(new), Examples.write([])), ReplaySection(), 0
    ) == RunSplits(Examples.write(new), Examples.write([]))


def test_no_rows_to_watch(tmp_path: Path) -> None:
    new = RunSplits(Examples.write(examples(20, 500)), Examples.write([]))
    empty = Path(write_split(tmp_path / "val.jsonl", [example(0, responses=("",))]))
    with pytest.raises(CustosError, match=r"field 'replay\.val': no rows to use"):
        with_replay(new, ReplaySection(val=empty), 0)


def test_a_held_out_answerer_is_not_replayed(tmp_path: Path) -> None:
    rows = [
        row.model_copy(update={"metadata": {"answerer": "ant" if i % 2 else "bee"}})
        for i, row in enumerate(EARLIER)
    ]
    earlier = Path(write_split(tmp_path / "earlier.jsonl", rows))
    new = examples(20, 500)
    splits = with_replay(
        RunSplits(Examples.write(new), Examples.write([])),
        ReplaySection(train=(earlier,), val=earlier),
        0,
        "ant",
    )
    for replayed in (splits.train[20:], splits.watched["stage1"]):
        assert {row.metadata["answerer"] for row in replayed} == {"bee"}
