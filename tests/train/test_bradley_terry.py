"""Rewards trained on pairs: the loss, what is learnt, and that the scalar survives."""

import json
import math
from pathlib import Path
from typing import Any

import pytest
import torch

from judging.judge import Judge
from judging.models.adapters import load_adapter
from judging.models.backbones import load_backbone
from judging.scoring.packing import make_tree_batch
from judging.scoring.prompts import Encoder
from judging.scoring.tree_batch import TreeModel
from judging.types import LabelledExample
from losses import BradleyTerryLoss
from tests.train.made_up import recipe_file
from train import bradley_terry
from train.methods.reward import PairSupervision, RewardObjective, each_response, rewards
from train.rows.rows import Rows


def _pair(number: int, **fields: Any) -> LabelledExample:
    """The response with more green in it is better; every fifth pair is a tie."""
    label = "None" if number % 5 == 4 else "AB"[number % 2]
    first, second = {"A": (30, 2), "B": (2, 30), "None": (9, 9)}[label]
    given: dict[str, Any] = {
        "id": str(number),
        "task": "truthful-pair",
        "question": "Which river?",
        "responses": ("green " * first + "brown " * second, "green " * second + "brown " * first),
        "label": label,
    }
    return LabelledExample.model_validate(given | fields)


def _rows(backbone_folder: str, examples: list[LabelledExample]) -> tuple[Rows, Any]:
    backbone = load_backbone(backbone_folder, dtype="float32", device="cpu")
    return Rows(examples, PairSupervision(Encoder(backbone)), "train"), backbone


def test_the_loss_is_the_pairwise_one_of_the_judges_own_scores(small: str) -> None:
    examples = [_pair(0), _pair(1, weight=3.0), _pair(4)]
    rows, backbone = _rows(small, examples)
    judge = Judge.load(small, dtype="float32", device="cpu")
    scores = [
        [verdict.score or 0.0 for verdict in judge.grade(each_response(example))]
        for example in examples
    ]

    def cost(gap: float) -> float:
        return math.log1p(math.exp(-gap))

    (a, b), (c, d), (e, f) = scores
    expected = cost(a - b - 0.5) + 3 * cost(d - c - 0.5) + (cost(e - f) + cost(f - e)) / 2
    prompts = rows.prompts(list(rows))
    batch = make_tree_batch(prompts, [rows[0].tree] * 6, backbone.tokenizer.pad_token_id)
    objective = RewardObjective(BradleyTerryLoss(margin=0.5))
    with torch.inference_mode():
        logits = TreeModel(backbone.model)(batch)
    assert objective.loss_sum(logits, list(rows), 0).item() == pytest.approx(expected, rel=1e-4)
    assert objective.denominator(*rows.weights(range(len(rows)))) == 5
    assert rewards(logits, rows[0].tree).tolist() == pytest.approx(
        [score for pair in scores for score in pair], abs=1e-4
    )


def test_a_trained_reward_survives_saving_loading_and_merging(small: str, tmp_path: Path) -> None:
    path = recipe_file(
        tmp_path,
        small,
        {"train": [_pair(i) for i in range(4, 44)], "val": [_pair(i) for i in range(100, 115)]},
        data={"allow_overlap": True},
        optim={"token_budget": 800, "epochs": 4},
        run={"eval_every": 5},
    )
    bradley_terry.main(["--config", str(path)])
    log = (tmp_path / "run" / "train.log").read_text(encoding="utf-8")
    assert "preferred: None" in log  # the first row, a tie
    history = json.loads((tmp_path / "run" / "history.json").read_text(encoding="utf-8"))
    watched = [entry for entry in history if "val_nll" in entry]
    assert watched[-1]["val_accuracy"] == 1.0
    assert watched[-1]["val_nll"] < 0.8 * watched[0]["val_nll"]

    judge = Judge.load(str(tmp_path / "run"), dtype="float32", device="cpu")
    merged = [verdict.score or 0.0 for verdict in judge.grade(each_response(_pair(0)))]
    rows, backbone = _rows(small, [_pair(0)])
    adapted = load_adapter(backbone.model, tmp_path / "run").eval()
    prompts = rows.prompts(list(rows))
    batch = make_tree_batch(prompts, [rows[0].tree] * 2, backbone.tokenizer.pad_token_id)
    with torch.inference_mode():
        apart = rewards(TreeModel(adapted)(batch), rows[0].tree).tolist()
    assert merged == pytest.approx(apart, abs=1e-3)
    assert merged[0] > merged[1] + 0.5
