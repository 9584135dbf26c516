"""CharXiv's validation charts, in the shape of its repository."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from data_prep.construction.charthal import load_charxiv, sample_charts
from judging.errors import CustosError
from tests.cli.prep.made_up import run
from tests.clients.fake_server import FakeServer, Say, completion


def clone(folder: Path, **changed: dict[str, Any]) -> Path:
    """Write six charts as CharXiv's files have them; a keyword replaces a file."""
    (folder / "data").mkdir()
    (folder / "images").mkdir()
    numbers = (0, 2, 3, 5, 7, 8)
    files: dict[str, Any] = {
        "image_metadata": {
            str(n): {
                "category": "cs" if n < 5 else "physics",
                "year": "20",
                "figure_path": f"arXiv_src_2004_038/{n}.jpg",
                "caption": "Accuracy.",
                "paper_id": "2004.10956",
                "title": "A paper",
            }
            for n in numbers
        },
        "descriptive": {
            str(n): {
                "figure_id": n,
                "num_subplots": 2 if n in (0, 8) else 12 if n == 7 else 1,
                "subplot_loc": [1, 2] if n else "the bottom subplot",
                "qids": [7, 13, 11, 15],
                "answers": ["60", "a, b", "Yes", "Not Applicable"],
            }
            for n in numbers
        },
        "chart_types": {
            str(n): {"figure_id": n, "chart_types": ["Scatter Plot", "Line Chart"][n % 2 :]}
            for n in numbers
        },
    }
    for name, records in {**files, **changed}.items():
        (folder / "data" / f"{name}_val.json").write_text(json.dumps(records), encoding="utf-8")
    for n in numbers:
        Image.new("RGB", (4, 4), (20 * n, 0, 0)).save(folder / "images" / f"{n}.jpg")
    return folder


def test_charts_have_what_the_sampling_needs(tmp_path: Path) -> None:
    charts = load_charxiv(clone(tmp_path))
    assert [chart.id for chart in charts] == ["0", "2", "3", "5", "7", "8"]
    first, *_, last = charts
    assert first.model_dump() == {
        "id": "0",
        "images": (str((tmp_path / "images" / "0.jpg").resolve()),),
        "num_subplots": 2,
        "discipline": "cs",
        "chart_type": "Scatter Plot",
    }
    assert (last.discipline, charts[2].chart_type) == ("physics", "Line Chart")
    sampled = sample_charts(charts, 5, seed=0)
    assert [chart.id for chart in sampled] == ["0", "2", "3", "5", "8"], "none of 12 subplots"


def test_the_verb_takes_a_clone(tmp_path: Path) -> None:
    charxiv = tmp_path / "CharXiv"
    charxiv.mkdir()
    with FakeServer().running() as fake:
        fake.answer = lambda seen: Say(
            body=completion(json.dumps({"question": "How?", "answer": "So."}))
        )
        shown = run(
            "charthal-construct", "generate", "--charts", clone(charxiv), "--count", 5,
            "--base-url", fake.url, "--model", "writer", "--out", tmp_path / "out",
        ).stdout  # fmt: skip
    assert "60 questions on 5 charts, 0 rejected" in shown
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text(encoding="utf-8"))
    names = [source["name"] for source in manifest["source"]["charxiv"]]
    assert names == ["image_metadata_val.json", "descriptive_val.json", "chart_types_val.json"]
    assert (tmp_path / "out" / "images" / "8.jpg").is_file()


def test_what_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(CustosError, match=r"image_metadata_val\.json: .*a clone of CharXiv"):
        load_charxiv(tmp_path)
    folder = clone(tmp_path, chart_types={})
    with pytest.raises(CustosError, match="chart 0: field 'chart_type'"):
        load_charxiv(folder)
    (folder / "images" / "0.jpg").unlink()
    with pytest.raises(CustosError, match=r"unpack CharXiv's images\.zip"):
        load_charxiv(folder)
