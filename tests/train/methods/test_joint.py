"""Stage 2's objective from one tree against separate forward passes of the library's model."""

from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any, get_args

import pytest
import torch
from torch import Tensor
from torch.autograd import grad

from judging.models.adapters import add_adapter
from judging.models.backbones import Backbone, load_backbone
from judging.scoring.packing import make_tree_batch, shared_rows
from judging.scoring.prompts import Encoder
from judging.scoring.tree_batch import TreeModel
from judging.types import LabelledExample
from tests.tiny import reference_model, save_picture
from train.methods.joint import JointObjective, Negatives, Span
from train.rows.rows import Row, Rows, Supervision

LAMBDA = 0.3


def _examples(folder: Path) -> list[LabelledExample]:
    """Two questions about two pictures, every score, one replayed row without a picture."""
    pictures = [save_picture(folder / f"{i}.png", 60 + 40 * i, 80, seed=i) for i in range(2)]
    shared: dict[str, Any] = {"task": "hieval-ea", "references": ("7", "9")}
    cases = [
        ("Correct", "The chart shows 7 and 9.", 0),
        ("Wrong; Reasoning Error", "Seven and nine make sixteen.", 0),
        ("Partial; Image Misunderstanding", "Only 7.", 1),
        ("Wrong; Overthinking", "Let me see, or perhaps", 1),
    ]
    rows = [
        LabelledExample(
            **shared,
            id=str(i),
            question="Which two?",
            label=label,
            responses=(response,),
            images=(pictures[picture],),
            weight=1.0 + i,
        )
        for i, (label, response, picture) in enumerate(cases)
    ]
    replayed = LabelledExample(
        id="old", question="How many?", references=("7",), responses=("8",), label="Wrong"
    )
    return [*rows, replayed]


def _rows(examples: list[LabelledExample], backbone: Backbone) -> Rows:
    return Rows(examples, Supervision(Encoder(backbone, shows_all_pictures=True)), "train")


def _logprobs(model: Any, row: Row, rows: Rows, label: int) -> Tensor:
    """Token log-probabilities of a label from one plain row of its own, ``[tokens]``."""
    prompt = rows.prompts([row])[0]
    ids, tokens = prompt.prefix_ids + prompt.suffix_ids, [t for _, t in row.tree.paths[label]]
    line = torch.tensor([[*ids, *tokens]])
    vision: dict[str, Tensor] = dict(prompt.vision)
    if vision:
        image_token = model.get_base_model().config.image_token_id
        vision["mm_token_type_ids"] = (line == image_token).int()
    logits = model(input_ids=line, use_cache=False, **vision).logits[0]
    logprobs: Tensor = logits[len(ids) - 1 : -1].log_softmax(-1)
    return logprobs[torch.arange(len(tokens)), torch.tensor(tokens)]


def _separately(
    every: Sequence[tuple[Row, dict[int, Tensor]]], objective: JointObjective, step: int
) -> Tensor:
    """The loss written out from Equations 5 to 8, given each row's labels in plain rows."""
    total = torch.zeros(())
    for row, logprobs in every:
        labels = row.tree.labels
        loss = -logprobs[row.target].mean()
        others = [i for i in logprobs if i != row.target]
        if others:
            assert len(others) == 4
            if objective.negatives == "sampled":
                others = objective.candidates(row, step)
            tokens = [logprobs[i] for i in others]
            likelihood = torch.stack([t.sum() for t in tokens]).detach()
            if objective.negatives == "hardest":
                shares = torch.nn.functional.one_hot(likelihood.argmax(), len(others)).float()
            else:
                shares = likelihood.softmax(0)
            if objective.span == "suffix":
                target = [t for _, t in row.tree.paths[row.target]]
                for n, i in enumerate(others):
                    path = [t for _, t in row.tree.paths[i]]
                    start = next(p for p in range(9) if path[p] != target[p])
                    assert start > 0, f"the score's tokens are shared: {labels[i]}"
                    tokens[n] = tokens[n][start:]
            unlikelihood = torch.stack([-torch.log(1 - t.mean().exp()) for t in tokens])
            loss = loss + objective.unlikelihood * (shares * unlikelihood).sum()
        total = total + row.example.weight * loss
    return total


def _labels_of(row: Row) -> list[int]:
    """The label of a row and, if it has an error type, those of its score with another one."""
    labels = row.tree.labels
    score, _, kind = labels[row.target].partition("; ")
    alike = [i for i, x in enumerate(labels) if x.startswith(f"{score}; ")]
    return alike if kind else [row.target]


def _adapted(model: Any) -> tuple[Any, dict[str, Tensor]]:
    """A model with an adapter, and the adapter's parameters."""
    adapted = add_adapter(model, r=4, alpha=8, seed=3)
    generator = torch.Generator().manual_seed(5)
    for name, parameter in adapted.named_parameters():
        if "lora_B" in name:  # zero at the start, which would hide lora_A's gradient
            parameter.data = 0.1 * torch.randn(parameter.shape, generator=generator)
    return adapted, {n: p for n, p in adapted.named_parameters() if p.requires_grad}


def test_one_tree_equals_separate_passes(tiny_folder: str, tmp_path: Path) -> None:
    """For every choice of negatives and their span."""
    backbone = load_backbone(tiny_folder, dtype="float32", device="cpu")
    rows = _rows(_examples(tmp_path), backbone)
    (model, learnt), (reference, of_reference) = map(
        _adapted, (backbone.model, reference_model(tiny_folder))
    )
    parts = []
    for part in (list(rows)[:4], list(rows)[4:]):  # micro-batches of one rubric
        prompts = rows.prompts(part)
        batch = make_tree_batch(
            prompts,
            [row.tree for row in part],
            backbone.tokenizer.pad_token_id,
            rows=shared_rows(prompts, len(part[0].tree.node_tokens)),
        )
        parts.append((part, TreeModel(model)(batch)))
    every = [
        (row, {label: _logprobs(reference, row, rows, label) for label in _labels_of(row)})
        for row in rows
    ]
    for negatives, span in product(get_args(Negatives), get_args(Span)):
        objective = JointObjective(LAMBDA, negatives, span, seed=3)
        tree = torch.stack([objective.loss_sum(logits, part, step=8) for part, logits in parts])
        losses = tree.sum(), _separately(every, objective, step=8)
        assert losses[0].item() == pytest.approx(losses[1].item(), rel=1e-5), objective
        gradients = [
            dict(zip(of, grad(loss, [*of.values()], retain_graph=True), strict=True))
            for loss, of in zip(losses, (learnt, of_reference), strict=True)
        ]
        for name, gradient in gradients[1].items():
            assert gradient.abs().max() > 1e-3, f"{name} gets no gradient from {objective}"
        torch.testing.assert_close(*gradients, rtol=1e-4, atol=1e-4)


def _row(rows: Rows, label: str) -> Row:
    return next(row for row in rows if row.example.label == label)


def test_negatives_have_the_targets_score_and_another_type(
    tiny_folder: str, tmp_path: Path
) -> None:
    rows = _rows(_examples(tmp_path), load_backbone(tiny_folder, dtype="float32"))
    every = JointObjective(LAMBDA, "all", "whole", seed=0)
    row = _row(rows, "Wrong; Reasoning Error")
    assert sorted(row.tree.labels[i] for i in every.candidates(row, 0)) == [
        "Wrong; Image Misunderstanding",
        "Wrong; Other",
        "Wrong; Overthinking",
        "Wrong; Unanswerable",
    ]
    assert every.candidates(_row(rows, "Correct"), 0) == []
    assert every.candidates(_row(rows, "Wrong"), 0) == [], "a replayed row has no error type"
    sampled = JointObjective(LAMBDA, "sampled", "whole", seed=0)
    samples = [sampled.candidates(row, step) for step in range(200)]
    assert all(len(sample) == 1 for sample in samples)
    counts = {index: samples.count([index]) for index in every.candidates(row, 0)}
    assert all(30 <= count <= 70 for count in counts.values()), counts
    assert samples == [sampled.candidates(row, step) for step in range(200)]
    assert samples != [JointObjective(LAMBDA, "sampled", "whole", 1).candidates(row, s)
                     for s in range(200)]  # fmt: skip
