"""Checkpoints appear whole or not at all, and only their own run reads them."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from judging.errors import CustosError, error_text
from judging.files.atomic import whole_folder
from train.launch.front import stop_message
from train.loop.checkpoint import keep_best, load_checkpoint, save_checkpoint


class _KilledError(Exception):
    pass


def test_a_folder_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    for text in ("old", "new"):
        with whole_folder(tmp_path / "best-1") as folder:
            (folder / "a").write_text(text)
        assert (tmp_path / "best-1" / "a").read_text() == text
    with pytest.raises(_KilledError), whole_folder(tmp_path / "best-1") as folder:
        (folder / "a").write_text("trunc")
        raise _KilledError
    assert (tmp_path / "best-1" / "a").read_text() == "new"


def test_a_full_disk_is_reported_with_the_folder(tmp_path: Path) -> None:
    with (
        pytest.raises(OSError, match="No space") as caught,
        whole_folder(tmp_path / "best-1") as folder,
    ):
        (folder / "state.json").symlink_to("/dev/full")
        (folder / "state.json").write_text("{}")
    assert error_text(caught.value) == f"{tmp_path / 'best-1'}: No space left on device"


def test_checkpoints_are_kept_whole_and_few(tmp_path: Path) -> None:
    model = torch.nn.Linear(3, 2)
    optimizer = torch.optim.AdamW(model.parameters())
    model(torch.ones(1, 3)).sum().backward()
    optimizer.step()
    for step in (1, 2, 30):
        save_checkpoint(tmp_path, step, model, optimizer, {"best": {}}, {})
    (tmp_path / ".checkpoint-000031.partial").mkdir()  # as a kill would leave it
    assert sorted(path.name for path in tmp_path.glob("checkpoint-*")) == [
        "checkpoint-000002",
        "checkpoint-000030",
    ]
    assert not [path for path in tmp_path.rglob("*") if path.suffix in (".pt", ".bin", ".pkl")]
    other = torch.nn.Linear(3, 2)
    fresh = torch.optim.AdamW(other.parameters())
    assert load_checkpoint(tmp_path, other, fresh, {}) == {"step": 30, "best": {}}
    assert torch.equal(other.weight, model.weight)
    assert torch.equal(fresh.state[other.weight]["exp_avg"],
                       optimizer.state[model.weight]["exp_avg"])  # fmt: skip


def test_copies_of_the_user_are_left_alone(tmp_path: Path) -> None:
    model = torch.nn.Linear(3, 2)
    optimizer = torch.optim.AdamW(model.parameters())
    copies = ("checkpoint-000002.bak", "checkpoint-old", "best-000001-copy")
    for name in copies:
        (tmp_path / name).mkdir()
    (tmp_path / "best-notes.txt").touch()
    for step in (999_998, 999_999, 1_000_000):
        save_checkpoint(tmp_path, step, model, optimizer, {}, {})
    keep_best(tmp_path, [1])
    assert {path.name for path in tmp_path.iterdir()} == {
        *(*copies, "best-notes.txt", "checkpoint-999999", "checkpoint-1000000")
    }
    assert load_checkpoint(tmp_path, model, optimizer, {}) == {"step": 1_000_000}
    assert stop_message(tmp_path, "again").startswith("stopped at step 1000000; ")


def test_a_checkpoint_of_another_shape_is_refused(tmp_path: Path) -> None:
    model = torch.nn.Linear(3, 2)
    save_checkpoint(tmp_path, 1, model, torch.optim.AdamW(model.parameters()), {}, {})
    other = torch.nn.Linear(3, 2, bias=False)
    with pytest.raises(CustosError, match="holds other parameters than this recipe trains"):
        load_checkpoint(tmp_path, other, torch.optim.AdamW(other.parameters()), {})
    wider = torch.nn.Linear(4, 2)
    with pytest.raises(CustosError, match="holds other parameters than this recipe trains"):
        load_checkpoint(tmp_path, wider, torch.optim.AdamW(wider.parameters()), {})


def test_no_checkpoint(tmp_path: Path) -> None:
    model = torch.nn.Linear(3, 2)
    optimizer = torch.optim.AdamW(model.parameters())
    assert load_checkpoint(tmp_path / "none", model, optimizer, {}) is None
