"""The judge in training: it draws critiques, scores what follows them, and changes meanwhile."""

from __future__ import annotations

import math

import pytest

from judging.judge import Judge
from judging.models.adapters import add_adapter
from judging.models.backbones import load_backbone
from judging.scoring.engine import Sampling
from judging.scoring.prompts import Encoder
from judging.tasks import get_task
from tests.train.made_up import recipe
from tests.train.methods.made_up import labelled_pair
from train.loop.accelerator import make_accelerator
from train.methods.policy import Policy

BUDGET = 6


@pytest.fixture
def policy(small: str, tmp_path_factory: pytest.TempPathFactory) -> Policy:
    backbone = load_backbone(small, dtype="float32", device="cpu")
    adapted = backbone.with_model(add_adapter(backbone.model, r=4, alpha=8))
    accelerator = make_accelerator(recipe(tmp_path_factory.mktemp("run")).run)
    return Policy(adapted, Encoder(adapted), accelerator, BUDGET)


def test_it_draws_what_a_judge_writes(policy: Policy, small: str) -> None:
    """A fresh adapter changes nothing, so a judge on the bare backbone writes the same."""
    rows = [labelled_pair(0), labelled_pair(1, references=("green",)), labelled_pair(2)]
    drawn = policy.draw([row.request() for row in rows], [5, 6, 7], temperature=0.7)
    judge = Judge.load(small, dtype="float32", device="cpu")
    judge.encoder.is_untrained = False  # In training, prompts are those of trained judges.
    for row, seed, critique in zip(rows, (5, 6, 7), drawn, strict=True):
        changes = {"mode": "critique", "order": "given", "seed": seed}
        request = row.request().model_copy(update=changes)
        [verdict] = judge.grade([request], sampling=Sampling(BUDGET, 0.7))
        assert critique.text == verdict.passes[0].critique
        task = get_task(row.task)
        [prompt] = judge.encoder.encode([(task, row)])
        opening = judge.encoder.text("<critique>")
        assert list(critique.prompt_ids) == [*prompt.prefix_ids, *prompt.suffix_ids, *opening]
        decoded = judge.backbone.tokenizer.decode(critique.token_ids)
        assert decoded.startswith(critique.text)
        assert critique.is_finished == (len(critique.token_ids) < BUDGET) or decoded.endswith(
            ("</critique>", "<|im_end|>")
        )


def test_validations_measure_the_judges_own_critiques(policy: Policy) -> None:
    rows = [labelled_pair(number) for number in range(4)]
    measured = policy.measure(rows)
    changes = {"mode": "critique", "critique_tokens": BUDGET}
    verdicts = list(policy.grade([row.request().model_copy(update=changes) for row in rows]))
    right = [verdict.label == row.label for verdict, row in zip(verdicts, rows, strict=True)]
    assert measured.right == right
    assert measured.scores["accuracy"] == sum(right) / 4
    assert measured.scores["flips"] == sum(verdict.needs_review for verdict in verdicts) / 4
    other = {"A": "B", "B": "A"}
    logprobs = [
        math.log(record.posterior[row.label if record.order == "given" else other[row.label]])
        for verdict, row in zip(verdicts, rows, strict=True)
        for record in verdict.passes
    ]
    assert measured.scores["nll"] == pytest.approx(-sum(logprobs) / 8)


def test_the_end_of_a_turn_is_a_token_of_the_critique(
    policy: Policy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A judge that ends its turn has drawn that token too, and learns from it."""
    end = policy.backbone.tokenizer.convert_tokens_to_ids("<|im_end|>")
    monkeypatch.setattr(
        "judging.scoring.generation.sample_tokens", lambda logits, *_: [end] * len(logits)
    )
    [critique] = policy.draw([labelled_pair(0).request()], [0], 1.0)
    assert (critique.text, critique.is_finished, critique.token_ids) == ("", True, (end,))
