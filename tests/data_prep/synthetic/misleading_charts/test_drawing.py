"""Pairs of charts: truth from the data, what a deceived reader sees from the pixels."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from PIL import Image
from scipy import ndimage

from benchmarks.chartom.misleadingness import acceptable_interval, hmi
from benchmarks.framework.base import get_benchmark
from data_prep.synthetic.misleading_charts.drawing import COLOURS, DARK, render
from data_prep.synthetic.misleading_charts.export import write_chart_pairs
from data_prep.synthetic.misleading_charts.families import FAMILIES, Family, MisleadingChart
from data_prep.synthetic.misleading_charts.generate import generate_chart_pairs
from data_prep.synthetic.misleading_charts.pie_areas import POP_RADIUS, SHAPE_3D

CHARTOM = get_benchmark("chartom")
PUBLISHED = {
    name: (float(str(row[1])), float(str(row[3])))
    for name, row in CHARTOM.published[0].rows.items()
}
ELEVEN = {
    *("inconsistent x-axis", "inverted y-axis", "dual axes", "truncated y-axis"),
    *("compressed y-axis", "3D effect", "pictorial bars", "swapped axis"),
    *("logarithmic y-axis", "inverted color scale", "pop out"),
}
SEEDS = range(20)

Pixels = npt.NDArray[np.uint8]


def family_of(kind: str, manipulation: str) -> Family:
    [family] = [f for f in FAMILIES if (f.kind, f.manipulation) == (kind, manipulation)]
    return family


def charts(family: Family, seeds: Sequence[int] = SEEDS) -> list[MisleadingChart]:
    return [family.make(Random(seed)) for seed in seeds]


def write(out: Path, num_pairs: int, seed: int = 0) -> list[dict[str, Any]]:
    pairs = generate_chart_pairs(num_pairs, seed)
    write_chart_pairs(out, pairs, PUBLISHED, source={"seed": seed}, command="custos prep chartom")
    return [json.loads(line) for line in (out / "items.jsonl").open()]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All families once."""
    out = tmp_path_factory.mktemp("chartom")
    write(out, len(FAMILIES), seed=5)
    return out


@pytest.fixture(scope="module")
def rows(folder: Path) -> list[dict[str, Any]]:
    return CHARTOM.load(str(folder))


def test_all_kinds_manipulations_and_questions_occur(rows: list[dict[str, Any]]) -> None:
    assert {row["manipulation"] for row in rows} == ELEVEN | {""}
    assert {row["kind"] for row in rows} == {"line", "bar", "pie", "scatter", "map"}
    assert {row["question_type"] for row in rows} == {"choice", "ranking", "number"}
    for family in FAMILIES:
        kind, _, manipulation, _ = CHARTOM.published[0].rows[family.like]
        assert kind == family.kind
        assert str(manipulation).endswith(family.manipulation)  # G14 tilts its pie as well


def test_both_charts_of_a_pair_share_data_question_and_answer(rows: list[dict[str, Any]]) -> None:
    own = {"id", "manipulation", "image", "images", "strategies", "alternatives", "hmi"}
    for original, manipulated in zip(rows[::2], rows[1::2], strict=True):
        assert manipulated["id"] == original["id"].replace("_1", "_2")
        shared = [
            {key: value for key, value in row.items() if key not in own | {"hmi_source"}}
            for row in (original, manipulated)
        ]
        assert shared[0] == shared[1]
        pictures = [Path(row["images"][0]).read_bytes() for row in (original, manipulated)]
        assert pictures[0] != pictures[1]


def test_mind_targets_are_the_published_ones_and_say_so(rows: list[dict[str, Any]]) -> None:
    for row in rows:
        pair, version = row["hmi_source"].removeprefix("published: ").rsplit("_", 1)
        assert row["hmi"] == PUBLISHED[pair][int(version) - 1]
        assert row["id"].endswith(version)


# Truth again, from the data alone and by other means than the families use.


def truth(family: Family, chart: MisleadingChart) -> Any:
    columns = list(chart.values.values())
    if chart.question_type == "number":
        amount = next(
            int(word) for word in chart.question.split() if len(word) == 1 != word.isalpha()
        )
        return columns[0][-1] / columns[0][0] * amount
    if chart.question_type == "ranking":
        return tuple(
            name for _, name in sorted(zip(columns[0], chart.labels, strict=True), reverse=True)
        )
    by_name = dict(zip(chart.labels, columns[0], strict=True))
    if family.manipulation == "inverted y-axis":
        return chart.choices[0 if np.polyfit(range(6), columns[0], 1)[0] > 0 else 1]
    if family.manipulation == "inconsistent x-axis":
        years = list(map(int, chart.labels))
        slopes = [
            np.polyfit(years[part], columns[0][part], 1)[0] for part in (slice(4), slice(3, 7))
        ]
        sign = 0 if math.isclose(*slopes) else int(np.sign(slopes[1] - slopes[0]))
        return chart.choices[{-1: 0, 1: 1, 0: 2}[sign]]
    if family.manipulation == "dual axes":
        year = next(label for label in chart.labels if f"in {label}?" in chart.question)
        return max(chart.values, key=lambda name: chart.values[name][chart.labels.index(year)])
    if family.manipulation == "3D effect":
        best = [label for label, value in by_name.items() if value == max(by_name.values())]
        return best[0] if len(best) == 1 else f"{best[0]} and {best[1]} were the same."
    if family.manipulation == "swapped axis":
        return chart.labels[int(np.argmax(columns[1]))]
    if family.manipulation == "logarithmic y-axis":
        rises = np.diff(columns[0])
        return chart.choices[0 if rises[:3].sum() > rises[3:].sum() else 1]
    return max(chart.choices, key=by_name.__getitem__)


@pytest.mark.parametrize("family", FAMILIES, ids=lambda f: f"{f.kind} {f.manipulation}")
def test_the_answer_is_the_datas_and_the_deceived_one_is_not(family: Family) -> None:
    for chart in charts(family):
        assert chart.answer == pytest.approx(truth(family, chart))
        assert chart.misled != chart.answer
        if chart.question_type == "choice":
            assert {chart.answer, chart.misled} <= set(chart.choices)
        if chart.question_type == "ranking":
            assert isinstance(chart.misled, tuple) and isinstance(chart.answer, tuple)
            assert sorted(chart.misled) == sorted(chart.answer)


@pytest.mark.parametrize("family", FAMILIES, ids=lambda f: f"{f.kind} {f.manipulation}")
def test_rules_accept_the_answer_and_no_other_strategy(family: Family) -> None:
    for chart in charts(family):
        row = {
            "id": "P_2", "kind": family.kind, "question": chart.question, "unit": chart.unit,
            "question_type": chart.question_type, "choices": chart.choices, "answer": chart.answer,
        }  # fmt: skip
        for answer, is_right in (
            (chart.answer, True),
            (chart.misled, False),
            (chart.skimming, False),
        ):
            if answer is None:
                continue
            said = " > ".join(answer) if isinstance(answer, tuple) else str(answer)
            graded = CHARTOM.graded_row({**row, "fact_response": f"The answer is {said}"}, [])
            assert graded["fact_correct"] is is_right, (chart, said)


def test_no_strategy_but_the_right_one_is_acceptable_from_people() -> None:
    for family in FAMILIES:
        for chart in charts(family):
            if isinstance(chart.answer, float):
                assert isinstance(chart.misled, float) and chart.skimming is not None
                others = [chart.misled, chart.skimming]
                low, high = acceptable_interval(chart.answer, others)
                assert low < chart.answer < high
                assert not any(low < other < high for other in others)


def test_hmi_of_made_up_human_answers(folder: Path, tmp_path: Path) -> None:
    """Ten people: six right, three misled, one silent; on originals nobody is misled."""
    given = CHARTOM.load(str(folder))
    asked = []
    for row in given:
        said = [row["answer"]] * 6 + [row["strategies"].get("misled", row["answer"])] * 3 + [None]
        asked.append({**row, "human_answers": said})
    (tmp_path / "items.json").write_text(json.dumps(asked))
    loaded = CHARTOM.load(str(tmp_path / "items.json"))
    assert [row["hmi"] for row in loaded] == [0.1, 0.4] * len(FAMILIES)
    number = next(row for row in asked if row["question_type"] == "number")
    pair = [row for row in asked if row["id"][:-1] == number["id"][:-1]]
    alternatives = [value for row in pair for value in row["alternatives"]]
    assert hmi([pair[1]["strategies"]["misled"]], number["answer"], alternatives) == 1


# What the eye sees, from pixels.


def pixels(family: Family, chart: MisleadingChart, manipulated: bool) -> Pixels:
    with Image.open(io.BytesIO(render(family, chart, manipulated))) as picture:
        assert picture.size == (640, 480)
        return np.asarray(picture.convert("RGB"))


def where(picture: Pixels, colour: str, brightness: float = 1.0) -> npt.NDArray[np.bool_]:
    wanted = [brightness * int(colour[place : place + 2], 16) for place in (1, 3, 5)]
    return np.asarray(abs(picture.astype(float) - wanted).max(axis=-1) <= 2)


def pie(family: Family, chart: MisleadingChart, manipulated: bool) -> Pixels:
    """Left of the legend."""
    return pixels(family, chart, manipulated)[:, :454]


def blobs(picture: Pixels, colour: str = COLOURS[0]) -> list[npt.NDArray[np.bool_]]:
    """Connected parts of a colour, from left to right."""
    labels, count = ndimage.label(where(picture, colour))
    parts = [np.asarray(labels == number) for number in range(1, count + 1)]
    return sorted((p for p in parts if p.sum() > 15), key=lambda p: p.any(axis=0).argmax())


def heights(picture: Pixels) -> list[int]:
    return [int(part.any(axis=1).sum()) for part in blobs(picture)]


@pytest.mark.parametrize("seed", range(2))
def test_a_cut_axis_shows_the_misled_ratio_and_a_whole_one_the_truth(seed: int) -> None:
    family = family_of("bar", "truncated y-axis")
    chart = family.make(Random(seed))
    values = next(iter(chart.values.values()))
    assert isinstance(chart.answer, float) and isinstance(chart.misled, float)
    amount = chart.answer * values[0] / values[-1]
    for manipulated, ratio in ((False, chart.answer), (True, chart.misled)):
        seen = heights(pixels(family, chart, manipulated))
        assert seen[-1] / seen[0] == pytest.approx(ratio / amount, rel=0.06)


def test_a_compressed_axis_flattens() -> None:
    family = family_of("bar", "compressed y-axis")
    chart = family.make(Random(1))
    rise = [np.ptp(heights(pixels(family, chart, manipulated))) for manipulated in (False, True)]
    assert rise[0] > 4 * rise[1] > 0


def test_pictures_grow_with_the_square() -> None:
    family = family_of("bar", "pictorial bars")
    chart = family.make(Random(1))
    values = next(iter(chart.values.values()))
    areas = [int(part.sum()) for part in blobs(pixels(family, chart, True))]
    assert areas[-1] / areas[0] == pytest.approx((values[-1] / values[0]) ** 2, rel=0.05)


@pytest.mark.parametrize("seed", range(3))
def test_the_near_bar_towers_and_the_wall_tells_the_truth(seed: int) -> None:
    family = family_of("bar", "3D effect")
    chart = family.make(Random(seed))
    values = next(iter(chart.values.values()))
    parts = blobs(pixels(family, chart, True))
    middles = [int(np.median(np.flatnonzero(part.any(axis=0)))) for part in parts]
    seen = [int(part[:, middle].sum()) for part, middle in zip(parts, middles, strict=True)]
    assert chart.labels[int(np.argmax(seen))] == chart.misled
    # Undo the perspective: sizes on the wall shrink evenly across the page.
    shrink = np.polyfit([0, 1], [1, 0.45], 1)
    left, right = 0.14 + 0.74 * 0.08 / 1.1, 0.14 + 0.74 * 1.08 / 1.1
    across = (np.array(middles) / 640 - left) / (right - left)
    true_size = np.array(seen) / np.polyval(shrink, across)
    assert true_size / true_size[0] == pytest.approx(np.array(values) / values[0], rel=0.03)


@pytest.mark.parametrize("seed", range(2))
def test_a_tilted_pie_gives_its_front_more_room(seed: int) -> None:
    family = family_of("pie", "3D effect")
    chart = family.make(Random(seed))
    [shares] = chart.values.values()
    for manipulated in (False, True):
        picture = pie(family, chart, manipulated)
        tops = np.array([where(picture, colour).sum() for colour in COLOURS])
        sides = np.array([where(picture, colour, DARK).sum() for colour in COLOURS])
        assert 100 * tops / tops.sum() == pytest.approx(shares, abs=0.7)
        order = [chart.labels[number] for number in np.argsort(-(tops + sides))]
        assert tuple(order) == (chart.misled if manipulated else chart.answer)
        shown = np.any([where(picture, colour) for colour in COLOURS], axis=0)
        wide, high = (np.ptp(np.flatnonzero(shown.any(axis=axis))) for axis in (0, 1))
        assert high / wide == pytest.approx(SHAPE_3D if manipulated else 1, abs=0.02)


def test_a_popped_out_slice_takes_more_room_at_the_same_angle() -> None:
    family = family_of("pie", "pop out")
    chart = family.make(Random(2))
    [shares] = chart.values.values()
    picture = pie(family, chart, True)
    areas = np.array([where(picture, colour).sum() for colour in COLOURS], dtype=float)
    order = [chart.labels[number] for number in np.argsort(-areas)]
    assert tuple(order) == chart.misled
    areas[0] /= POP_RADIUS**2
    assert 100 * areas / areas.sum() == pytest.approx(shares, abs=0.7)


def line_ends(picture: Pixels, colour: str = COLOURS[0]) -> tuple[float, float]:
    """Rows of the first and last point of a line."""
    columns = np.flatnonzero(where(picture, colour)[80:400, 100:560].any(axis=0)) + 100
    rows = [
        float(np.flatnonzero(where(picture, colour)[80:400, c]).mean()) for c in columns[[1, -2]]
    ]
    return rows[0], rows[1]


@pytest.mark.parametrize("seed", range(2))
def test_an_inverted_axis_turns_the_line_over(seed: int) -> None:
    family = family_of("line", "inverted y-axis")
    chart = family.make(Random(seed))
    for manipulated, answer in ((False, chart.answer), (True, chart.misled)):
        first, last = line_ends(pixels(family, chart, manipulated))
        assert chart.choices[0 if last < first else 1] == answer  # rows count downwards


def test_uneven_years_get_even_room() -> None:
    family = family_of("line", "inconsistent x-axis")
    for seed in range(2):
        chart = family.make(Random(seed))
        for manipulated, answer in ((False, chart.answer), (True, chart.misled)):
            picture = pixels(family, chart, manipulated)
            line = where(picture, COLOURS[0])
            columns = np.flatnonzero(line.any(axis=0))
            left, right = columns[6], columns[-6]
            years = np.array(list(map(int, chart.labels)))
            share = 3 / 6 if manipulated else (years[3] - years[0]) / (years[6] - years[0])
            bend = int(left + share * (right - left))
            rows = [np.flatnonzero(line[:, c]).mean() for c in (left + 4, bend, right - 4)]
            slopes = [(rows[0] - rows[1]) / (bend - left), (rows[1] - rows[2]) / (right - bend)]
            close = abs(slopes[0] - slopes[1]) < 0.12 * max(slopes)
            assert chart.choices[2 if close else int(slopes[1] > slopes[0])] == answer


def test_two_axes_put_the_smaller_series_on_top() -> None:
    family = family_of("line", "dual axes")
    chart = family.make(Random(0))
    first, second = chart.values
    for manipulated, answer in ((False, chart.answer), (True, chart.misled)):
        picture = pixels(family, chart, manipulated)
        level = {
            name: np.flatnonzero(where(picture, colour)[80:300, 150:500].any(axis=1)).mean()
            for name, colour in ((first, COLOURS[0]), (second, COLOURS[3]))
        }
        assert min(level, key=level.__getitem__) == answer


@pytest.mark.parametrize("seed", range(2))
def test_swapped_axes_put_another_point_on_top(seed: int) -> None:
    family = family_of("scatter", "swapped axis")
    chart = family.make(Random(seed))
    cause, effect = chart.values.values()
    for manipulated, answer, across in ((False, chart.answer, cause), (True, chart.misled, effect)):
        points = blobs(pixels(family, chart, manipulated))
        assert len(points) == 5
        names = sorted(chart.labels, key=lambda name: across[chart.labels.index(name)])
        tops = [part.any(axis=1).argmax() for part in points]
        assert names[int(np.argmin(tops))] == answer


@pytest.mark.parametrize("seed", range(2))
def test_a_logarithmic_axis_moves_the_growth_to_the_front(seed: int) -> None:
    family = family_of("scatter", "logarithmic y-axis")
    chart = family.make(Random(seed))
    for manipulated, answer in ((False, chart.answer), (True, chart.misled)):
        points = blobs(pixels(family, chart, manipulated))
        rows = [np.argwhere(part)[:, 0].mean() for part in points]
        event = np.argmin([abs(np.argwhere(p)[:, 1].mean() - 90 - 474 * 3.4 / 8.8) for p in points])
        before, after = rows[0] - rows[event], rows[event] - rows[-1]
        assert chart.choices[0 if before > after else 1] == answer


def test_an_inverted_scale_darkens_the_region_with_less() -> None:
    family = family_of("map", "inverted color scale")
    chart = family.make(Random(0))
    [values] = chart.values.values()
    asked = [chart.labels.index(name) for name in chart.choices]
    darkness: dict[bool, list[float]] = {}
    for manipulated in (False, True):
        picture = pixels(family, chart, manipulated)
        # Regions lie on a jittered grid of 4 x 3; a spot between their name and their edge.
        axes_width = 0.74 * 0.85 * 0.95
        darkness[manipulated] = []
        for number in asked:
            column, row = number % 4, number // 4
            x = int(640 * (0.14 + axes_width * (0.09 + 0.82 * (column + 0.5) / 4)))
            y = int(480 * (1 - (0.13 + 0.76 * (0.08 + 0.84 * (row + 0.5) / 3)))) + 22
            darkness[manipulated].append(255.0 - float(picture[y, x].mean()))
    for manipulated, answer in ((False, chart.answer), (True, chart.misled)):
        assert chart.choices[int(np.argmax(darkness[manipulated]))] == answer


def test_same_seed_same_files_and_more_pairs_keep_the_first(tmp_path: Path) -> None:
    short, again, other = (tmp_path / name for name in "abc")
    assert write(short, 2, seed=1) == write(again, 3, seed=1)[:4]
    assert write(other, 2, seed=2) != write(again, 2, seed=1)
    for path in sorted(short.rglob("*.png")):
        assert path.read_bytes() == (again / path.relative_to(short)).read_bytes()
    manifest = json.loads((short / "manifest.json").read_text())
    assert (manifest["pairs"], manifest["source"]) == (2, {"seed": 1})
