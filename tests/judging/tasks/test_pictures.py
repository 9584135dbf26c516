"""Tasks that read text alone: their judges see no picture, and say so."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from judging.judge import Judge
from judging.judge.card import SHIPPED, read_card, shipped_judges
from judging.models.backbones import Backbone
from judging.scoring.prompts import Encoder
from judging.tasks import get_task
from tests.judging.made_up import ask


@pytest.mark.parametrize("name", ["hieval-qs", "simplevqa"])
def test_prompts_hold_no_picture(name: str, tiny: Backbone, pictures: list[str]) -> None:
    variant = {"variant": "english"} if name == "simplevqa" else {}
    bare, seen = (
        (get_task(name), ask(task=name, images=images, **variant)) for images in ((), pictures)
    )
    without, left_out = Encoder(tiny).encode([bare, seen])
    assert left_out.prefix_ids + left_out.suffix_ids == without.prefix_ids + without.suffix_ids
    assert left_out.vision == {}
    assert len(set(Encoder(tiny).measure([bare, seen]))) == 1
    [shown] = Encoder(tiny, shows_all_pictures=True).encode([seen])
    assert len(shown.vision["image_grid_thw"]) == 3


def test_error_analysis_sees_them(tiny: Backbone, pictures: list[str]) -> None:
    task = get_task("hieval-ea")
    [prompt] = Encoder(tiny).encode([(task, ask(task=task.name, images=pictures))])
    assert len(prompt.vision["image_grid_thw"]) == 3


def test_a_picture_that_cannot_be_read_matters_only_where_it_is_shown(tiny: Backbone) -> None:
    zero_shot = Judge.load(tiny.name, dtype="float32", device="cpu")
    missing = ("missing.png",)
    quick, analysed = zero_shot.grade([ask(images=missing), ask(task="hieval-ea", images=missing)])
    assert quick.status == "scored"
    assert analysed.status == "invalid"
    assert "field 'images': 'missing.png' is not a readable picture" in str(analysed.message)


def test_verdicts_are_those_without_and_say_so(judge: Judge, pictures: list[str]) -> None:
    bare, one, two = judge.grade([ask(), ask(images=pictures[:1]), ask(images=pictures[:2])])
    assert bare.message is None
    assert one.message == "the picture was left out: task 'hieval-qs' reads text alone"
    assert two.message == "the pictures were left out: task 'hieval-qs' reads text alone"
    for verdict in (one, two):
        assert verdict.probabilities == pytest.approx(bare.probabilities, abs=1e-6)


def test_a_judge_that_was_trained_on_all_pictures_sees_them(
    folder: Path, judge: Judge, pictures: list[str]
) -> None:
    card = (folder / "judge.json").read_text(encoding="utf-8")
    (folder / "judge.json").write_text(
        card.replace('"shows_all_pictures":false,', '"shows_all_pictures":true,'), encoding="utf-8"
    )
    pictured_judge = Judge.load(str(folder), dtype="float32", device="cpu")
    pictured = ask(images=pictures[:1])
    bare, verdict = pictured_judge.grade([ask(), pictured])
    assert verdict.message is None
    assert verdict.probabilities != pytest.approx(bare.probabilities, abs=1e-6)
    assert pictured_judge.identity == judge.identity, "a calibration stays valid"
    assert pictured_judge.fingerprint(ask()) == judge.fingerprint(ask())
    assert pictured_judge.fingerprint(pictured) != judge.fingerprint(pictured), "a cache keeps both"
    [logprobs] = torch.tensor(pictured_judge.logprobs([pictured])).exp()
    assert logprobs.tolist() == pytest.approx(list(verdict.probabilities.values()), abs=1e-5)


def test_shipped_judges_of_text_are_shown_text() -> None:
    for name in shipped_judges():
        card = read_card(SHIPPED / name)
        assert "hieval-qs" not in card.tasks or not card.shows_all_pictures, name
