"""Judges that see pictures within the limits they were trained with."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from judging.judge import Judge
from judging.judge.card import JudgeCard, read_card
from judging.models.adapters import add_adapter
from judging.models.backbones import Backbone, load_backbone
from tests.conftest import HubFolders
from tests.judging.made_up import ask
from tests.tiny import save_picture

MOST = 200_000

Load = Callable[..., Judge]


@pytest.fixture(scope="module")
def limited(hub_folders: HubFolders) -> Backbone:
    """A backbone of published limits, as a run with ``run.max_pixels`` has it."""
    folder = hub_folders("Qwen3-VL-4B-Instruct")
    return load_backbone(folder, dtype="float32", device="cpu").with_pixels(max_pixels=MOST)


@pytest.fixture(scope="module")
def load(limited: Backbone, tmp_path_factory: pytest.TempPathFactory) -> Load:
    """Loads a judge whose card has these fields beside those that training writes."""
    folder = tmp_path_factory.mktemp("runs") / "mine"
    add_adapter(limited.model, r=2, alpha=4).save_pretrained(str(folder))
    card = JudgeCard.for_rubrics(limited, {"hieval-qs": ("plain/all",)}, response_budget=50)

    def load_with(**fields: Any) -> Judge:
        values = {k: v for k, v in (card.model_dump() | fields).items() if v is not None}
        (folder / "judge.json").write_text(json.dumps(values), encoding="utf-8")
        return Judge.load(str(folder), dtype="float32", device="cpu")

    return load_with


def test_a_judge_sees_pictures_as_in_training(load: Load, limited: Backbone) -> None:
    judge = load()
    assert (judge.folder, judge.card) != (None, None)
    assert judge.folder and read_card(judge.folder).max_pixels == MOST
    assert judge.backbone.pixels == limited.pixels == (65536, MOST)
    described = judge.describe()
    assert (described["min_pixels"], described["max_pixels"]) == (65536, MOST)
    untrained = Judge.load(limited.name, device="cpu", pixels=judge.backbone.pixels)
    assert untrained.backbone.pixels == judge.backbone.pixels


def test_limits_are_part_of_identity_and_fingerprint(load: Load) -> None:
    one, other = load(), load(max_pixels=MOST + 1)
    assert one.identity != other.identity
    assert one.fingerprint(ask()) != other.fingerprint(ask())


def test_a_card_without_limits_means_the_checkpoints_own(load: Load) -> None:
    judge = load(min_pixels=None, max_pixels=None)
    assert judge.backbone.pixels == (65536, 16777216)
    assert "max_pixels" not in judge.describe(), "the identity is as it was"
    stated = load(min_pixels=65536, max_pixels=16777216)
    assert stated.identity == judge.identity, "the backbone's version covers its own limits"


def test_a_zero_shot_judge_has_the_default(limited: Backbone) -> None:
    judge = Judge.load(limited.name, device="cpu")
    assert judge.backbone.pixels == (65536, 1024 * 1024)
    assert judge.describe()["max_pixels"] == 1024 * 1024


def test_verdicts_say_what_was_scaled_down(load: Load, tmp_path: Path) -> None:
    large = save_picture(tmp_path / "large.png", 600, 400)
    small = save_picture(tmp_path / "small.png", 300, 200)
    verdicts = load(shows_all_pictures=True).grade(
        [ask(images=(large,)), ask(images=(small, large)), ask(images=(small,)), ask()]
    )
    assert [verdict.message for verdict in verdicts] == [
        "the picture was scaled down to 0.20 MP",
        "1 of 2 pictures were scaled down to 0.20 MP",
        None,
        None,
    ]
