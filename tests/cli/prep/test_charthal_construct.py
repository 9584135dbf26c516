"""ChartHal-style questions: charts sampled, written by a (fake) model, checked by people."""

import csv
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from PIL import Image

from benchmarks.framework.base import get_benchmark
from tests.cli.prep.made_up import run
from tests.clients.fake_server import RESET, FakeServer, Say, Seen, completion
from tests.data_prep.construction.made_up import chart


@pytest.fixture
def fake() -> Iterator[FakeServer]:
    with FakeServer().running() as server:
        yield server


def test_from_charts_to_a_benchmark_file_through_faults(fake: FakeServer, tmp_path: Path) -> None:
    pool = []
    for number in range(5):
        Image.new("RGB", (4, 4), (40 * number, 0, 0)).save(tmp_path / f"{number}.png")
        pool.append(chart(number, 1 + (number > 2), "cs", "bar").model_dump(mode="json"))
    (tmp_path / "charts.json").write_text(json.dumps(pool))

    def answer(seen: Seen) -> Say:
        recipe = str(seen.body["messages"][0]["content"])
        if "prediction" in recipe and "does not occur" in recipe:  # one cell is unreadable
            return Say(body=completion("I would rather not."))
        return Say(
            body=completion(json.dumps({"question": f"How? {len(seen.text)}", "answer": "So."}))
        )

    fake.answer = answer
    fake.faults.extend([Say(503, "busy", {"Retry-After": "0"}), RESET, Say(body="not JSON")])
    out = tmp_path / "out"
    command = (
        "charthal-construct", "generate", "--charts", tmp_path / "charts.json",
        "--count", 5, "--base-url", fake.url, "--model", "writer", "--out", out,
    )  # fmt: skip
    assert "55 questions on 5 charts, 5 rejected" in run(*command).stdout
    assert len(fake.seen) == 5 * 12 + 3 + 5  # five replies without JSON are asked for again
    images = {seen.body["messages"][1]["content"][0]["image_url"]["url"] for seen in fake.seen}
    assert len(images) == 5
    manifest = json.loads((out / "manifest.json").read_text())
    assert manifest["rejected"] == {"not JSON": 5}
    assert manifest["counts"]["open/irrel"] == 0
    assert {n for cell, n in manifest["counts"].items() if cell != "open/irrel"} == {5}
    run(*command)
    assert len(fake.seen) == 5 * 12 + 8  # nothing is asked twice

    sheet = tmp_path / "anna.csv"
    run("charthal-construct", "sheet", out, "--out", sheet)
    with sheet.open(encoding="utf-8-sig", newline="") as file:
        rows_to_check = list(csv.DictReader(file))
    with sheet.open("w", encoding="utf-8-sig", newline="") as file:
        writer = csv.DictWriter(file, list(rows_to_check[0]))
        writer.writeheader()
        writer.writerows({**row, "status": "keep"} for row in rows_to_check[:50])
    result = run("charthal-construct", "collect", out, "--sheet", sheet)
    assert "50 kept, 0 discarded, 0 disagreements, 5 unchecked" in result.stdout
    rows = get_benchmark("charthal").load(str(out / "charthal.json"))
    assert len(rows) == 50
    assert all(Path(row["images"][0]).is_file() for row in rows)
    [request] = get_benchmark("charthal").requests({**rows[0], "response": "No idea."})
    assert request.task == "charthal"
