"""The warm-up on a handful of pictures: what it leaves, and that a killed run ends the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from judging.errors import CustosError
from judging.models.backbones import Backbone
from train import vision_warmup
from train.loop.checkpoint import save_checkpoint
from train.vision.pictures import tokens_at
from train.vision_warmup import VISION_FILE, Warmup, WarmupRecipe


def _warmup(folder: Path, **optim: Any) -> Warmup:
    values: dict[str, Any] = {
        "backbone": "embedded",
        "compiled": False,
        "pictures": {"train": 16, "held_out": 4},
        "optim": {"lr": 1e-3, "batch_size": 4, "micro_batch_size": 4, "epochs": 2} | optim,
        "run": {"output": str(folder), "save_every": 3, "eval_every": 4},
    }
    return Warmup(WarmupRecipe.model_validate(values))


class _KilledError(Exception):
    pass


def test_a_killed_run_ends_as_a_whole_one(
    embedded: Backbone, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = _warmup(tmp_path / "whole")
    before = {name: p.detach().clone() for name, p in whole.tower.named_parameters()}
    frozen = whole.embeddings.clone()
    measured = whole.fit()
    assert measured["step"] == whole.total_steps > 4
    assert measured["n"] == 4
    assert 0 <= measured["caption_accuracy"] <= measured["token_accuracy"] <= 1
    after = dict(whole.tower.named_parameters())
    assert all(not torch.equal(after[name], start) for name, start in before.items())
    assert torch.equal(whole.backbone.model.get_input_embeddings().weight[whole.vocabulary], frozen)

    def save_and_die(*arguments: Any) -> None:
        save_checkpoint(*arguments)
        raise _KilledError

    with monkeypatch.context() as patch, pytest.raises(_KilledError):
        patch.setattr(vision_warmup, "save_checkpoint", save_and_die)
        _warmup(tmp_path / "broken").fit()
    assert _warmup(tmp_path / "broken").fit() == measured
    with pytest.raises(CustosError, match=r"holds another run \(of other optim.lr\)"):
        _warmup(tmp_path / "broken", lr=1e-4).fit()
    expected, found = (load_file(tmp_path / run / VISION_FILE) for run in ("whole", "broken"))
    assert all(torch.equal(found[name], tensor) for name, tensor in expected.items())


def test_a_picture_says_where_each_token_of_its_caption_is_shown(
    embedded: Backbone, tmp_path: Path
) -> None:
    warmup = _warmup(tmp_path)
    for picture in warmup.train:
        texts = [warmup.backbone.tokenizer.decode([token]) for token in picture.targets]
        for text, sources in zip(texts, picture.sources, strict=True):
            shown = {fact for source in sources for fact in picture.facts[source]}
            assert (
                not text.strip(" ").isalnum()
                or not sources
                or any(text.strip() in (fact or "") for fact in shown)
            )
        assert sum(map(bool, picture.sources)) > len(texts) // 3
    one = warmup.train[0]
    at = tokens_at(one, (0, 0))
    looks = torch.full((1, 64, 64), 1e-4)
    astray = warmup._astray(looks, [one], [(0, 0)])
    for token, sources in enumerate(one.sources):
        looks[0, token, [at[source] for source in sources[:1]]] = 1.0
    assert warmup._astray(looks, [one], [(0, 0)]) < 0.01 < 5 < astray


def test_the_loss_falls_where_features_near_the_captions_embeddings(
    embedded: Backbone, tmp_path: Path
) -> None:
    warmup = _warmup(tmp_path)
    targets = warmup.train[0].targets
    padded = [*targets, *[warmup.filler] * (64 - len(targets))]
    exact = warmup.embeddings[[warmup.places[token] for token in padded]]
    noise = torch.randn(exact.shape, generator=torch.Generator().manual_seed(0))
    losses = [warmup._loss(exact + scale * noise, targets).item() for scale in (0, 0.05, 0.2)]
    assert losses == sorted(losses)
    assert losses[0] < 0.25, "every token must be told from its likes: digits lie close together"
    assert losses[2] > 2 * losses[0]
    with pytest.raises(CustosError, match="does not fit into 3 visual tokens"):
        warmup._loss(exact[:3], targets)


def test_a_second_process_is_refused(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(SystemExit):
        vision_warmup.main([])
    assert "in one process" in capsys.readouterr().err


def test_its_recipe_is_found(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        vision_warmup.main(["pictures.train=0"])
    assert "embedded/vision_warmup.yaml: key 'pictures.train'" in capsys.readouterr().err
