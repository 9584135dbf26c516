"""Worker processes make the batches that the training process would make."""

import multiprocessing
import os
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import psutil
import pytest
import torch

from judging.errors import CustosError
from judging.models.backbones import load_backbone
from judging.scoring.prompts import Encoder
from tests.forks import fork_context, forked
from tests.tiny import save_picture
from tests.train.made_up import adapter_of, example, killed_after, recipe, trainer
from train.loop import batches
from train.loop.batches import Loader, begin_worker, default_workers
from train.loop.trainer import Trainer
from train.rows.data import Examples
from train.rows.rows import Rows, Supervision

PLAN = [[0, 1, 2], [5, 3], [4], [2, 6], [0]]
BROKEN = 7
"""A row whose picture is gone when it is encoded."""


@pytest.fixture(scope="module")
def rows(small: str, tmp_path_factory: pytest.TempPathFactory) -> Rows:
    folder = tmp_path_factory.mktemp("pictures")
    pictures = [save_picture(folder / f"{i}.png", 60, 60) for i in range(8)]
    data = [example(i, images=(pictures[i],) if i in (2, 5, BROKEN) else ()) for i in range(8)]
    backbone = load_backbone(small, dtype="float32", device="cpu")
    made = Rows(
        Examples.write(data), Supervision(Encoder(backbone, shows_all_pictures=True)), "train"
    )
    Path(pictures[BROKEN]).unlink()
    return made


@pytest.fixture(scope="module")
def loader(rows: Rows) -> Iterator[Loader]:
    fork_context()
    with pytest.MonkeyPatch.context() as patch:
        # What workers get is sent as for "spawn", but the libraries are imported already.
        patch.setattr(batches, "START", "forkserver")
        loader = Loader({"train": rows}, 2)
        yield loader
        loader.close()


def test_workers_change_neither_order_nor_tensors(rows: Rows, loader: Loader) -> None:
    made = list(loader.batches(rows, PLAN))
    expected = list(Loader({"train": rows}, 0).batches(rows, PLAN))
    assert len(made) == len(expected) == len(PLAN)
    for batch, other in zip(made, expected, strict=True):
        assert list(batch.indices) == list(other.indices)
        assert batch.rows == other.rows
        torch.testing.assert_close(vars(batch.layout), vars(other.layout), rtol=0, atol=0)
    assert loader.data_wait > 0


@pytest.mark.parametrize("workers", [0, 2])
def test_a_row_that_cannot_be_encoded_is_named(rows: Rows, loader: Loader, workers: int) -> None:
    made = loader if workers else Loader({"train": rows}, 0)
    encoded = made.batches(rows, [[0], [1, BROKEN], [2]])
    assert list(next(encoded).indices) == [0]
    with pytest.raises(CustosError, match=r"^split 'train': row '7': .*is not a readable picture"):
        next(encoded)


def test_workers_leave_ctrl_c_to_the_run_and_end_it_where_they_are_killed(
    rows: Rows, loader: Loader
) -> None:
    """The last test of those that share the workers."""
    made = loader.batches(rows, [[0]] * 50)
    next(made)
    assert loader._pool
    worker = [*loader._pool._processes][-1]
    os.kill(worker, signal.SIGINT)
    next(made)
    os.kill(worker, signal.SIGKILL)
    with pytest.raises(CustosError, match=r"was killed, .* set run\.workers=0"):
        list(made)


def test_workers_on_a_gpu_leave_a_core_for_each_process() -> None:
    assert default_workers(torch.device("cpu"), 1) == 0
    assert 1 <= default_workers(torch.device("cuda"), 1) <= 4
    assert default_workers(torch.device("cuda"), 10_000) == 1


@pytest.mark.slow
def test_a_run_is_the_same_with_any_workers_and_after_a_resume(small: str, tmp_path: Path) -> None:
    picture = save_picture(tmp_path / "a.png", 60, 60)
    data = [example(i, images=(picture,) if i % 3 == 0 else ()) for i in range(24)]
    options: dict[str, Any] = {"adapter__dropout": 0.2, "run__save_every": 2, "run__eval_every": 3}

    def learner(name: str, workers: int) -> Trainer:
        made = recipe(tmp_path / name, run__workers=workers, **options)
        return trainer(made, small, data)

    alone, two = learner("alone", 0), learner("two", 2)
    alone.fit()
    two.fit()
    with killed_after(4):
        learner("four", 2).fit()
    four = learner("four", 4)
    four.fit()
    for other in (two, four):
        assert other.progress.history == alone.progress.history
        torch.testing.assert_close(adapter_of(other), adapter_of(alone), rtol=0, atol=0)


def hold_a_worker() -> None:
    """Print the process number of a worker that is busy, as the target of a fork."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("fork"), begin_worker) as pool:
        print(pool.submit(os.getpid).result(), flush=True)  # noqa: T201
        pool.submit(time.sleep, 600).result()


def test_a_worker_ends_when_its_parent_is_killed() -> None:
    with forked(hold_a_worker) as parent:
        worker = psutil.Process(int(parent.wait_for(r"\d+\n")[0]))
    worker.wait(20)
