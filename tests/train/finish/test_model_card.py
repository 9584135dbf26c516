from __future__ import annotations

from judging.models.backbones import load_backbone
from tests.train.made_up import encoded, examples
from train.finish.write_judge import watched_table
from train.loop.progress import Progress


def test_what_is_kept_of_an_earlier_stage(small: str) -> None:
    """Wilson's intervals of 9 of 10 and 6 of 10, by his formula."""
    rows = encoded(load_backbone(small, dtype="float32", device="cpu"), examples(10))
    before = {"step": 0, "val_accuracy": 0.1, "val_nll": 1.0, "stage1_accuracy": 0.9}
    best = {"step": 20, "val_accuracy": 0.9, "val_nll": 0.5, "stage1_accuracy": 0.6}
    last = {"step": 30, "val_accuracy": 0.8, "val_nll": 0.5, "stage1_accuracy": 0.2}
    progress = Progress(30, best, history=[{"step": 0, "train_loss": 2.0}, before, best, last])
    page = "\n".join(watched_table(progress, {"stage1": rows}))
    assert "| stage1 | 10 | 0.900 [0.596, 0.982] | 0.600 [0.313, 0.832] |" in page
    assert watched_table(progress, {}) == []
