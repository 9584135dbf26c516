"""Tables of one model and of many, from official files graded by a stand-in judge."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.cli.bench.made_up import Grader, charthal_responses, read, run, write
from tests.published_files import needs_published, published


def graded_files(tmp_path: Path) -> list[Path]:
    files = []
    said = {"weak": ("right", "no", "no", "no"), "strong": ("right", "right", "right", "no")}
    for name, responses in said.items():
        source = write(tmp_path / f"{name}.response.json", charthal_responses(*responses))
        files.append(tmp_path / f"{name}.eval.json")
        done = run("grade", "charthal", "--responses", source, "--judge", "j", "--out", files[-1])
        assert done.exit_code == 0, done.stderr
    return files


def test_two_models_in_every_form(judge: Grader, tmp_path: Path) -> None:
    weak, strong = graded_files(tmp_path)
    out = {kind: tmp_path / f"out.{kind}" for kind in ("json", "markdown", "html")}
    options = [part for kind, file in out.items() for part in (f"--{kind}", file)]
    done = run("table", "charthal", f"weak={weak}", strong, *options)
    assert done.exit_code == 0, done.stderr
    result = read(out["json"])
    assert list(result["models"]) == ["strong", "weak"]
    assert result["models"]["strong"]["overall"] == {"correct": 3, "total": 4, "score": 75}
    [difference] = result["differences"]
    assert difference["difference"]["value"] == -50
    for text in (done.stdout, out["markdown"].read_text(), out["html"].read_text()):
        for expected in ("strong", "weak", "Qwen2.5-VL-72B-Instruct", "54.24", "75.00"):
            assert expected in text
        assert "judge fake: not measured on this task (charthal)" in text
    # 75 is above every published score, 25 between GPT-5-nano (high) and Llama's 24.95.
    rows = [line for line in out["markdown"].read_text().splitlines() if line.startswith("| ")]
    names = [row.split("|")[1].strip(" *") for row in rows]
    assert names.index("strong") < names.index("Qwen2.5-VL-72B-Instruct")
    assert names.index("weak") + 1 == names.index("GPT-5-nano (high)")


def test_people_of_one_model(judge: Grader, tmp_path: Path) -> None:
    weak, strong = graded_files(tmp_path)
    people = write(tmp_path / "people.json", {"0_0": {"score": 1}, "1_0": {"score": 1}})
    out = tmp_path / "out.json"
    command = ("table", "charthal", f"weak={weak}", f"strong={strong}")
    options = ("--people", f"weak={people}", "--random-sample", "--json", out)
    done = run(*command, *options)
    assert done.exit_code == 0, done.stderr
    assert "corrected score: " in done.stdout
    assert "overall, corrected by people" in read(out)["tables"][0]["columns"]
    assert read(out)["models"]["weak"]["corrected"]["corrected"]["n"] == 2
    assert "corrected" not in read(out)["models"]["strong"]
    refused = run(*command, "--people", people)
    assert refused.exit_code == 2
    assert "expected MODEL=FILE" in refused.stderr


def test_a_report_on_the_judge_corrects_the_score(judge: Grader, tmp_path: Path) -> None:
    """Three of four as judged, by a judge that misses none and passes half of the others."""
    _, strong = graded_files(tmp_path)
    rows = read(strong)
    for row in rows.values():
        row["verdicts"]["charthal"]["rubric"] = "charthal/irrelevant"
    write(strong, rows)
    share = {"low": 0.48, "high": 0.52, "n": 900}
    rates = {
        "label": "1",
        "n": 1800,
        "questions": 300,
        "sensitivity": {"value": 1.0, "low": 0.99, "high": 1.0, "n": 900},
        "false_positive_rate": {"value": 0.5, **share},
    }
    folder = tmp_path / "report"
    folder.mkdir()
    write(folder / "report.json", {"error_rates": {"charthal/irrelevant": rates}})
    out = tmp_path / "out.json"
    files = ("--json", out, "--html", tmp_path / "p.html")
    command = ("table", "charthal", "--graded", strong, *files)
    assert "uncorrected" in run(*command).stdout
    assert (tmp_path / "p.html").read_text().count('class="item"') == 4
    done = run(*command, "--measured", folder)
    assert done.exit_code == 0, done.stderr
    judged = read(out)["judged"]
    assert (judged["raw"]["value"], judged["corrected"]["value"]) == (75, pytest.approx(50))
    assert judged["added_width"] > 0
    assert "1,800 rows of report.json: 50 [" in " ".join(done.stdout.split())
    assert "Score as judged and corrected" in (tmp_path / "p.html").read_text()
    refused = run(*command, "--measured", write(tmp_path / "no.json", []))
    assert refused.exit_code == 2
    assert "no.json" in refused.stderr


def test_simplevqa_from_answers_of_two_models_to_the_table(judge: Grader, tmp_path: Path) -> None:
    """The official shape throughout: answers by model in one file, conclusions in one file."""
    rows = [
        {
            "data_id": number,
            "language": "CN" if number % 2 else "EN",
            "question": f"q{number}",
            "answer": "a",
            "g4o_response": "right",
            "g4o_confidence_score": 90,
            "qwen_response": "right" if number < 2 else "no",
        }
        for number in range(8)
    ]
    source, out = write(tmp_path / "SimpleVQA.json", rows), tmp_path / "judged.json"
    done = run("grade", "simplevqa", "--responses", source, "--judge", "j", "--out", out)
    assert done.exit_code == 0, done.stderr
    assert [row["judge_res"]["g4o_response"] for row in read(out)] == [{"conclusion": "正确"}] * 8
    table, page = tmp_path / "table.json", tmp_path / "page.html"
    for arguments in ((out,), ("--graded", out)):
        done = run("table", "simplevqa", *arguments, "--json", table, "--html", page)
        assert done.exit_code == 0, done.stderr
        models = read(table)["models"]
        shares = {name: model["overall"]["CO"] for name, model in models.items()}
        assert shares == {"g4o": 1, "qwen": 0.25}
        assert "Accuracy by stated confidence" in page.read_text()
        [difference] = read(table)["differences"]
        assert difference["a"]["value"] == 1


@needs_published("charthal")
def test_the_real_half_in_a_clone_of_the_repository(tmp_path: Path) -> None:
    """The published grades stand at the score that a count of the file gives."""
    results = tmp_path / "results" / "gpt-5-mini"
    results.mkdir(parents=True)
    source = published("charthal") / "gpt-5-mini.dev.eval.json"
    shutil.copyfile(source, results / "eval.json")
    out = tmp_path / "out.json"
    done = run("table", "charthal", tmp_path, "--json", out)
    assert done.exit_code == 0, done.stderr
    official = list(json.loads(source.read_text()).values())
    score = 100 * sum(row["score"] for row in official) / len(official)
    [model] = read(out)["models"].values()
    assert model["overall"]["score"] == pytest.approx(score)
    [table] = [table for table in read(out)["tables"] if table["source"] == "Table 2"]
    names = [row["name"] for row in table["rows"]]
    # 32.10 lies between GPT-4o's 32.49 and the 27.02 of this model in the paper.
    place = next(number for number, row in enumerate(table["rows"]) if row["ours"])
    assert (names[place - 1], names[place + 1]) == ("GPT-4o-2024-11-20", "GPT-5-mini")
