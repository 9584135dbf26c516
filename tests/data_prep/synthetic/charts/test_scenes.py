"""Scenes and their captions."""

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from data_prep.made.charts.rows import draw_captioned
from data_prep.made.charts.scenes import KINDS, NAME, VALUES, ChartScene, draw_scene

seeds = st.integers(min_value=-(2**63), max_value=2**63)


@settings(max_examples=200, deadline=None)
@given(seeds, st.sampled_from(sorted(KINDS)))
def test_scenes_are_small_and_described_in_full(seed: int, name: str) -> None:
    kind = KINDS[name]
    scene = draw_scene(Random(seed), kind)
    assert 3 <= len(scene.names) <= 6
    for values in scene.values:
        assert len(set(values)) == len(values) == len(scene.names)
        assert all(kind.low <= value / kind.unit <= kind.high for value in values)
    line = scene.describe()
    assert len(line.split()) <= 20 and "\n" not in line
    described = [part.rsplit(" ", len(scene.columns)) for part in line.split(": ")[1].split(", ")]
    assert tuple(part[0] for part in described) == scene.names
    for column, values in enumerate(scene.values):
        assert tuple(int(part[column + 1]) for part in described) == values


def test_one_line_names_all_data() -> None:
    bars = ChartScene("bar", ("A", "B"), ("value",), ((3, 7),))
    assert bars.describe() == "bar: A 3, B 7"
    groups = ChartScene("grouped", ("A", "B"), ("red", "blue"), ((3, 7), (1, 2)))
    assert groups.describe() == "grouped red blue: A 3 1, B 7 2"
    assert groups.with_view("blue", {"A": 5, "B": 6}).view("blue") == {"A": 5, "B": 6}


def test_captions_come_in_pieces_that_each_say_one_thing() -> None:
    for number in range(2 * len(KINDS)):
        scene = draw_captioned(6, number).scene
        facts = {NAME: scene.names, **dict(zip(VALUES, scene.values, strict=False))}
        text_of = {(item, fact): text for text, item, fact in scene.caption() if fact}
        assert text_of == {
            (item, fact): f" {value}"
            for fact, values in facts.items()
            for item, value in enumerate(values)
        }
