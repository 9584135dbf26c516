"""``custos prep chartom``, and its pairs through ``custos bench``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cli.main import app


def custos(*arguments: object) -> str:
    result = CliRunner().invoke(app, list(map(str, arguments)))
    assert result.exit_code == 0, result.output
    return result.output


def test_a_deceived_reader_is_wrong_on_every_manipulated_chart(tmp_path: Path) -> None:
    out = tmp_path / "pairs"
    assert "14 pairs, 28 charts" in custos("prep", "chartom", "--out", out, "--pairs", 14)
    rows = [json.loads(line) for line in (out / "items.jsonl").open()]
    for row in rows:
        said = row["strategies"].get("misled", row["answer"])
        row["fact_response"] = ", ".join(said) if isinstance(said, list) else f"Answer: {said}"
        row["mind_response"] = "0.5"
        row["manipulation"] = ""  # or the reasons would need a judge
    responses, graded = tmp_path / "responses.json", tmp_path / "graded.json"
    responses.write_text(json.dumps(rows))
    custos("bench", "grade", "chartom", "--responses", responses, "--out", graded)
    custos("bench", "table", "chartom", "--graded", graded, "--json", tmp_path / "table.json")
    table = json.loads((tmp_path / "table.json").read_text())
    assert table["overall"]["fact_accuracy"] == 0.5
    errors = [(row["hmi"] - 0.5) ** 2 for row in rows]
    assert table["overall"]["mind_mse"] == pytest.approx(sum(errors) / len(rows))
