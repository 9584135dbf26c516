"""Writers for a fake server, replies in JSON, rows, charts, and sheets as people fill them in."""

import csv
import json
from pathlib import Path
from typing import Any

from clients.chat import Prices, Reply
from clients.connection import ModelServer
from clients.messages import Decoding
from data_prep.construction.charthal import Chart, ChartQuestion
from data_prep.construction.forms.base import Form
from data_prep.construction.model_writer import ModelWriter
from data_prep.construction.sheets import Sheet, item_name, read_table, write_table
from data_prep.construction.steps.base import Row
from tests.clients.fake_server import FakeServer, Say, completion


def writer(fake: FakeServer, out: Path, model: str = "writer", **server: Any) -> ModelWriter:
    given = {"first_wait": 0.01, "longest_wait": 0.05, "tries": 3} | server
    return ModelWriter(
        ModelServer(fake.url, model, **given),
        Decoding(),
        Prices(prompt=1.0, completion=10.0),
        out,
        source={"name": "rows.jsonl"},
        command="custos prep construct",
    )


def say(**fields: Any) -> Say:
    return Say(body=completion(json.dumps(fields, ensure_ascii=False)))


def reply(text: str | dict[str, Any], finish_reason: str = "stop") -> Reply:
    written = text if isinstance(text, str) else json.dumps(text, ensure_ascii=False)
    return Reply(text=written, finish_reason=finish_reason)


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


Cells = dict[str, dict[str, str]]
"""Row id to what is filled in, by column."""


def response_rows(count: int) -> list[Row]:
    return [
        {
            "id": f"q{n}/secret-model",
            "question": f"How many, {n}?",
            "references": ["two", "three"],
            "response": f"It is {n}.",
            "metadata": {"answerer": "secret-model"},
        }
        for n in range(count)
    ]


def fill(path: Path, form: Form, rows: list[Row], cells: Cells) -> Sheet:
    """Write a sheet, fill it in as a spreadsheet program would, and read it."""
    write_table(path, form, rows)
    with path.open(encoding="utf-8-sig", newline="") as file:
        lines = list(csv.DictReader(file))
    by_item = {item_name(name): filled for name, filled in cells.items()}
    with path.open("w", encoding="utf-8-sig", newline="") as file:
        table: Any = csv.DictWriter(file, list(lines[0]))
        table.writeheader()
        table.writerows({**line, **by_item.get(line["item"], {})} for line in lines)
    return read_table(path, form)


def chart(number: int, num_subplots: int, discipline: str, chart_type: str) -> Chart:
    return Chart(
        id=str(number),
        images=(f"{number}.png",),
        num_subplots=num_subplots,
        discipline=discipline,
        chart_type=chart_type,
    )


def question(number: int = 0, **fields: Any) -> ChartQuestion:
    given = {
        "id": f"7_{number}", "figure_id": "7", "figure_path": "images/7.png", "subq_idx": number,
        "q_type": "desc", "q_relation": "normal", "question": f"How many, {number}?",
        "ref_answer": "About 5.",
    }  # fmt: skip
    return ChartQuestion.model_validate(given | fields)
