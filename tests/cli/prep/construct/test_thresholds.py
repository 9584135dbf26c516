"""Thresholds of ``custos prep construct collect``: who must be retrained."""

from __future__ import annotations

import csv
import json
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from sklearn.metrics import cohen_kappa_score
from typer.testing import CliRunner

from cli.main import app
from data_prep.construction.sheets import item_name

ANSWERS = {"anna": "CCCWWWPC", "ben": "CCCWWWPW", "cem": "WCWCWPCC"}
"""Everybody's scores of eight rows; the last two are gold, and the key is W."""
WORDS = {"C": "Correct", "W": "Wrong", "P": "Partial"}
GOLD = 2


def run(*arguments: object) -> Any:
    result = CliRunner().invoke(app, ["prep", "construct", *map(str, arguments)])
    assert result.exit_code == 0, result.output
    return result


@pytest.fixture
def sheets(tmp_path: Path) -> list[object]:
    rows = [
        {"id": f"r{n}", "question": "?", "references": ["a"], "response": "b"} for n in range(8)
    ]
    gold = [row | {"gold": {"score": "Wrong"}} for row in rows[-GOLD:]]
    for name, lines in (("rows", rows[:-GOLD]), ("gold", gold)):
        text = "".join(f"{json.dumps(row)}\n" for row in lines)
        (tmp_path / f"{name}.jsonl").write_text(text, encoding="utf-8")
    for name, letters in ANSWERS.items():
        with (tmp_path / f"{name}.csv").open("w", encoding="utf-8", newline="") as file:
            table = csv.writer(file)
            table.writerow(["item", "score"])
            table.writerows((item_name(f"r{n}"), WORDS[c]) for n, c in enumerate(letters))
    named = [word for name in ANSWERS for word in ("--sheet", tmp_path / f"{name}.csv")]
    return ["--in", tmp_path / "rows.jsonl", "--gold", tmp_path / "gold.jsonl", *named]


def people(out: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((out / "agreement.json").read_text())["annotators"]
    return found


def test_people_below_a_threshold_are_named(sheets: list[object], tmp_path: Path) -> None:
    out = tmp_path / "out"
    options = ("--min-kappa", 0.2, "--min-gold", 0.5)
    shown = run("collect", "hieval-qs", *sheets, *options, "--out", out).stdout.splitlines()
    measured = people(out)
    for name in ANSWERS:
        own: list[str] = []
        others: list[str] = []
        for other in set(ANSWERS) - {name}:
            own += ANSWERS[name][:-GOLD]
            others += ANSWERS[other][:-GOLD]
        kappa = measured[name]["kappa"]["score"]
        assert kappa["value"] == pytest.approx(cohen_kappa_score(own, others))
        assert kappa["n"] == 12
    below = {name: [text.split()[0] for text in measured[name]["below"]] for name in ANSWERS}
    assert below == {"anna": ["gold"], "ben": [], "cem": ["kappa", "gold"]}
    assert [line.split(":")[0] for line in shown if line.startswith("retrain")] == [
        "retrain anna",
        "retrain cem",
    ]
    assert "2 of 3 people are below a threshold" in shown


def test_agreement_is_told_by_label(sheets: list[object], tmp_path: Path) -> None:
    """Pool the pairs of three people, and set each label against all others (HiEval's Table 7)."""
    out = tmp_path / "out"
    run("collect", "hieval-qs", *sheets, "--out", out)
    measured = json.loads((out / "agreement.json").read_text())["entries"]["score"]
    pairs = [
        (a, b)
        for first, second in combinations(ANSWERS.values(), 2)
        for a, b in zip(first[:-GOLD], second[:-GOLD], strict=True)
    ]
    assert measured["kappa"]["value"] == pytest.approx(cohen_kappa_score(*zip(*pairs, strict=True)))
    for letter, label in WORDS.items():
        sides = zip(*((a == letter, b == letter) for a, b in pairs), strict=True)
        assert measured["per_label"][label]["value"] == pytest.approx(cohen_kappa_score(*sides))


def test_without_thresholds_nobody_is(sheets: list[object], tmp_path: Path) -> None:
    out = tmp_path / "out"
    result = run("collect", "hieval-qs", *sheets, "--out", out)
    assert "below a threshold" not in result.stdout
    assert all(each["below"] == [] for each in people(out).values())
    assert people(out)["cem"]["kappa"]["score"]["value"] < 0.2
