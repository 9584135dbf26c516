"""A judge that looks, one that does not, and what the probe says of each."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evaluation.intervals import wilson_interval
from experiments.findings import image_probe
from experiments.findings.image_probe import probe, render, shuffled_pictures
from judging.errors import CustosError
from judging.files.pictures import read_image
from judging.files.records import write_records
from judging.judge import Judge
from judging.types import JudgeRequest, LabelledExample, Verdict
from tests.serve.made_up import FakeJudge
from tests.tiny import save_picture

TYPES = ("Reasoning Error", "Image Misunderstanding")


def _twins(folder: Path, pairs: int = 40) -> list[LabelledExample]:
    """Twins whose type is written in the size of the picture, for half of the kinds only."""
    pictures = {
        kind: save_picture(folder / f"{kind}.png", width, 28, width)
        for kind, width in zip(TYPES, (56, 84), strict=True)
    }
    return [
        LabelledExample(
            id=f"{pair}-{place}",
            task="hieval-ea",
            question=f"What is {pair}?",
            references=("1",),
            responses=("2",),
            label=f"Wrong; {kind}",
            error_type=kind,
            images=(pictures[kind],),
            group=f"g{pair}",
            metadata={"kind": ("bar", "pie")[pair % 2], "operation": "read_value"},
        )
        for pair in range(pairs)
        for place, kind in enumerate(TYPES)
    ]


class _Judge(FakeJudge):
    """Names the type that the picture's width tells; of pies, or if blind, always the first."""

    def __init__(self, blind: bool = False) -> None:
        super().__init__("made-up")
        self.blind = blind

    def grade(self, requests: Iterable[JudgeRequest], **_: Any) -> Iterator[Verdict]:
        for request in requests:
            with read_image(request.images[0]) as picture:
                is_second = picture.width == 84 and float(np.asarray(picture).mean()) < 250
            looks = not self.blind and request.metadata["kind"] == "bar"
            yield Verdict(
                id=request.id,
                status="scored",
                label="Wrong",
                error_type=TYPES[is_second and looks],
            )


def test_a_judge_that_looks_at_bars_is_found_to(tmp_path: Path) -> None:
    found = probe(_Judge(), _twins(tmp_path), "error_type")
    measured = found["measures"]["error_type"]
    # Bars are always right and pies half the time; a blank picture leaves half of all.
    assert measured["right"]["value"] == 0.75
    assert measured["blank"]["value"] == 0.5
    assert measured["right - blank"]["value"] == 0.25
    assert measured["right - shuffled"]["low"] > 0.1
    assert measured["n"] == found["n"] == 80 and found["groups"] == 40
    assert found["measures"]["score"]["right - blank"]["value"] == 0
    assert found["changed"]["blank"]["value"] == 0.25
    assert found["claimed"] == {
        "chart": ["bar"], "question": ["read_value"], "both": ["bar / read_value"],
    }  # fmt: skip


def test_pictures_that_change_nothing_are_reported(tmp_path: Path) -> None:
    found = probe(_Judge(blind=True), _twins(tmp_path), "error_type")
    for other in ("shuffled", "blank"):
        difference = found["measures"]["error_type"][f"right - {other}"]
        assert difference["value"] == 0
        assert math.isnan(difference["low"]) and math.isnan(difference["high"])  # shows no spread
        assert found["changed"][other]["value"] == 0
    assert found["claimed"] == {"chart": [], "question": [], "both": []}
    page = render({"charts": found, "twins": found, "command": "x"})
    assert page.count("add nothing that can be told from chance") == 2
    assert page.count("Skills claimed: none") == 2


def test_intervals_keep_twins_together(tmp_path: Path) -> None:
    """Probe a blind judge, right on one twin of each pair: surer than pairs, less than rows."""
    rows = _twins(tmp_path)
    found = probe(_Judge(blind=True), rows, "error_type")
    right = found["measures"]["error_type"]["right"]
    pairs = len(rows) // 2
    of_pairs, of_rows = (wilson_interval(n / 2, n) for n in (pairs, 2 * pairs))
    assert right["value"] == 0.5
    assert of_pairs.low < right["low"] < of_rows.low
    assert of_rows.high < right["high"] < of_pairs.high


def test_shuffled_pictures_come_from_other_groups(tmp_path: Path) -> None:
    rows = [
        row.model_copy(update={"images": (f"{row.group}.png",)}) for row in _twins(tmp_path, 12)
    ]
    shuffled = shuffled_pictures(rows, 3)
    assert all(row.images != own.images for row, own in zip(shuffled, rows, strict=True))
    assert shuffled == shuffled_pictures(rows, 3) != shuffled_pictures(rows, 4)
    with pytest.raises(CustosError, match="share one group"):
        shuffled_pictures(rows[:2], 0)
    with pytest.raises(CustosError, match=r"id '0-0': .* exactly one picture"):
        shuffled_pictures([rows[0].model_copy(update={"images": ()})], 0)


def test_the_command_writes_both_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Judge, "load", lambda name: _Judge())
    path = tmp_path / "twins.jsonl"
    write_records(path, _twins(tmp_path))
    out = tmp_path / "out"
    image_probe.main(["run", "--data", str(path), "--twins", str(path), "--out", str(out)])
    report = json.loads((out / "image_probe.json").read_text(encoding="utf-8"))
    assert report["charts"]["judged_by"] == "label"
    assert report["twins"]["claimed"]["chart"] == ["bar"]
    assert "Skills claimed: bar, read_value." in (out / "image_probe.md").read_text()


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(CustosError, match="a: no such file"):
        image_probe.main(["no-such", "--data", "a", "--twins", "b", "--out", str(tmp_path)])
