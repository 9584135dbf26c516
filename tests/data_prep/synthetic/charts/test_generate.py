"""Streams of rows and of captioned pictures."""

from itertools import islice

from data_prep.made.charts.rows import draw_captioned, plan_rows, plan_twins
from data_prep.made.charts.scenes import KINDS
from experiments.cost.scoring_speed import generate_rows


def test_same_seed_gives_the_same_rows_and_pictures() -> None:
    assert list(generate_rows(12, 7, "all")) == list(generate_rows(12, 7, "all"))


def test_a_longer_run_starts_with_the_shorter_one() -> None:
    assert list(plan_rows(50, 7, "train"))[:18] == list(plan_rows(18, 7, "train"))


def test_other_seeds_and_streams_give_other_scenes() -> None:
    scenes = [[row.scene for row in plan_rows(8, seed, "all")] for seed in (1, 2)]
    scenes.append([row.scene for row in plan_twins(8, 1, "all")])
    assert scenes[0] != scenes[1] and scenes[0] != scenes[2]


def test_rows_are_drawn_one_by_one() -> None:
    assert len(list(islice(plan_rows(10**12, 0, "train"), 5))) == 5


def test_captioned_pictures_cycle_through_the_kinds() -> None:
    pictures = [draw_captioned(3, number) for number in range(len(KINDS))]
    assert [picture.scene.kind for picture in pictures] == list(KINDS)
    assert pictures == [draw_captioned(3, number) for number in range(len(KINDS))]
    assert all(picture.png.startswith(b"\x89PNG") for picture in pictures)
