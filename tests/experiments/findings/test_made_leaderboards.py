"""Made answers in official shapes, and the five pages of many models that they become."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.framework.base import benchmark_names, get_benchmark
from experiments.findings.made_leaderboards import SKILLS, main
from tests.benchmarks.framework.report.test_page import Page
from tests.cli.bench.made_up import read, run

SOURCES = {
    "charthal": "ChartHal",
    "simplevqa": "SimpleVQA_judge.json",
    "truthfulvqa": "TruthfulVQA",
    "chartom": "chartom/made*.json",
    "hieval": "hieval/made*.json",
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made")
    main(["--out", str(folder)])
    return folder


def test_every_benchmark_has_files() -> None:
    assert sorted(SOURCES) == sorted(benchmark_names())


@pytest.mark.parametrize("name", SOURCES)
def test_the_page_has_the_made_rows_in_order_among_all_published_ones(
    made: Path, tmp_path: Path, name: str
) -> None:
    out, page = tmp_path / "out.json", tmp_path / "page.html"
    files = sorted(made.glob(SOURCES[name]))
    done = run("table", name, *files, "--json", out, "--html", page)
    assert done.exit_code == 0, done.stderr
    models = list(read(out)["models"])
    # The names say that no model answered, and the most skilled one comes first.
    assert models == [
        skill.replace("model", "judge") if name == "hieval" else skill for skill in SKILLS
    ]
    assert len(read(out)["differences"]) == 3
    assert not read(out)["not_compared"]
    shown = {"".join(text.split()) for text in Page(page.read_text()).texts["th"]}
    for table in get_benchmark(name).published:
        assert {"".join(row.split()) for row in table.rows} <= shown
    first = read(out)["tables"][0]
    column = first["columns"].index(first["ranked_by"])
    figures = [row["figures"][column] for row in first["rows"]]
    values = [figure["value"] if isinstance(figure, dict) else figure for figure in figures]
    known = [value for value in values if value is not None]
    assert known == sorted(known, reverse=True)


def test_people_of_the_made_charts(made: Path, tmp_path: Path) -> None:
    done = run("hmi", "--items", made / "chartom" / "items.json", "--out", tmp_path)
    assert done.exit_code == 0, done.stderr
    assert "28 charts" in done.stdout
