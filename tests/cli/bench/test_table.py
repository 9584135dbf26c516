"""Tables of one model and of many, files to start from, and bad rows named with their file."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from benchmarks.framework.base import BENCHMARKS, get_benchmark
from tests.cli.bench.made_up import Grader, charthal_responses, grade, read, run, write
from tests.cli.made_up import succeed
from tests.docs.markdown_pages import DOCS, blocks
from tests.published_files import needs_published, published


def graded_files(tmp_path: Path) -> list[Path]:
    files = []
    said = {"weak": ("right", "no", "no", "no"), "strong": ("right", "right", "right", "no")}
    for name, responses in said.items():
        source = write(tmp_path / f"{name}.response.json", charthal_responses(*responses))
        files.append(tmp_path / f"{name}.eval.json")
        succeed(
            "bench", "grade", "charthal", "--responses", source, "--judge", "j", "--out", files[-1]
        )
    return files


def test_two_models_in_every_form(judge: Grader, tmp_path: Path) -> None:
    weak, strong = graded_files(tmp_path)
    out = {kind: tmp_path / f"out.{kind}" for kind in ("json", "markdown", "html")}
    options = [part for kind, file in out.items() for part in (f"--{kind}", file)]
    command = ("table", "charthal", f"weak={weak}", strong, *options)
    for _ in range(2):  # files of the command itself are replaced
        done = succeed("bench", *command)
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
    for kind, mine in (("markdown", "# charthal\n"), ("html", "<title>charthal: mine</title>")):
        out[kind].write_text(mine)
        assert f"--{kind} '{out[kind]}': exists and is no earlier" in run(*command).stderr
        assert out[kind].read_text() == mine
        out[kind].unlink()


def test_people_of_one_model(judge: Grader, tmp_path: Path) -> None:
    weak, strong = graded_files(tmp_path)
    people = write(tmp_path / "people.json", {"0_0": {"score": 1}, "1_0": {"score": 1}})
    out = tmp_path / "out.json"
    command = ("table", "charthal", f"weak={weak}", f"strong={strong}")
    options = ("--people", f"weak={people}", "--random-sample", "--json", out)
    done = succeed("bench", *command, *options)
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
    done = succeed("bench", *command, "--measured", folder)
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
    succeed("bench", "grade", "simplevqa", "--responses", source, "--judge", "j", "--out", out)
    assert [row["judge_res"]["g4o_response"] for row in read(out)] == [{"conclusion": "正确"}] * 8
    table, page = tmp_path / "table.json", tmp_path / "page.html"
    for arguments in ((out,), ("--graded", out)):
        succeed("bench", "table", "simplevqa", *arguments, "--json", table, "--html", page)
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
    succeed("bench", "table", "charthal", tmp_path, "--json", out)
    official = list(json.loads(source.read_text()).values())
    score = 100 * sum(row["score"] for row in official) / len(official)
    [model] = read(out)["models"].values()
    assert model["overall"]["score"] == pytest.approx(score)
    [table] = [table for table in read(out)["tables"] if table["source"] == "Table 2"]
    names = [row["name"] for row in table["rows"]]
    # 32.10 lies between GPT-4o's 32.49 and the 27.02 of this model in the paper.
    place = next(number for number, row in enumerate(table["rows"]) if row["ours"])
    assert (names[place - 1], names[place + 1]) == ("GPT-4o-2024-11-20", "GPT-5-mini")


@pytest.mark.parametrize("name", BENCHMARKS.names())
@pytest.mark.parametrize("suffix", ["json", "jsonl"])
def test_an_example_is_graded_and_makes_a_table(
    judge: Grader, name: str, suffix: str, tmp_path: Path
) -> None:
    responses, graded = tmp_path / f"in.{suffix}", tmp_path / f"graded.{suffix}"
    written = succeed("bench", "example", name, "--out", responses)
    count, command = written.stdout.splitlines()
    assert count == f"2 items with responses: {responses}"
    words = command.removeprefix("grade them: custos bench ").split()
    words[words.index("graded.json")] = str(graded)
    done = succeed("bench", *words)
    assert "2 items graded, 0 without a label" in done.stdout
    table = succeed("bench", "table", name, "--graded", graded)
    assert "- to -" not in table.stdout, "what has no interval has a dash"


def test_an_example_replaces_no_file(tmp_path: Path) -> None:
    out = tmp_path / "mine.json"
    out.write_text("mine")
    refused = run("example", "charthal", "--out", out)
    assert refused.exit_code == 2
    assert refused.stderr == f"error: --out '{out}': exists already; name a new file\n"
    assert out.read_text() == "mine"
    assert "ending in .json or .jsonl" in run("example", "charthal", "--out", "x.csv").stderr


def test_the_page_shows_what_the_command_writes() -> None:
    shown = {
        block.title.removesuffix(".json"): json.loads(block.text)
        for block in blocks(DOCS / "benchmarks.md")
        if block.language == "json"
    }
    assert shown == {name: list(get_benchmark(name).example) for name in BENCHMARKS.names()}


def test_a_row_without_an_answer_alone_is_no_error(judge: Grader, tmp_path: Path) -> None:
    first, second = get_benchmark("simplevqa").example
    rows = [first, {name: text for name, text in second.items() if name != "answer"}]
    done = grade(tmp_path, rows, "--judge", "j", name="simplevqa")
    assert "2 items graded, 1 without a label" in done.stdout
    statuses = [row["verdicts"]["simplevqa"]["status"] for row in read(tmp_path / "out.json")]
    assert statuses == ["scored", "invalid"]


BAD_TYPE = "row '1_0': field 'q_type'"
TABLE = ("table", "charthal", "--graded")
GRADE = ("grade", "charthal", "--judge", "j", "--out", "new.json", "--responses")
PLAY = ("tournament", "truthfulvqa", "--judge", "j", "--out", "m.jsonl", "--items", "good.json")


@pytest.fixture
def files(judge: Grader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder with a graded file and several that are wrong in one row."""
    monkeypatch.chdir(tmp_path)
    responses: dict[str, Any] = charthal_responses("right", "no")
    write(Path("responses.json"), responses)
    run(*GRADE[:4], "--out", "good.json", "--responses", "responses.json")
    graded = read(Path("good.json"))

    def with_verdicts(verdicts: object) -> dict[str, Any]:
        return {key: {**one, "verdicts": verdicts} for key, one in graded.items()}

    for name, content in {
        "type": {**graded, "1_0": {**graded["1_0"], "q_type": "essay"}},
        "listed": with_verdicts(["1"]),
        "unlike": with_verdicts({"charthal": {"status": "odd"}}),
        "twice": [{"id": key, **graded["0_0"]} for key in "aa"],
        "silent": {key: {**row, "response": None} for key, row in responses.items()},
        "people": {"0_0": {"score": "high"}},
        "unknown": [{"id": "9_9", "response": "?"}],
        "nameless": [{"response": "?"}],
        "logits": [{"case": {}, "result": {}}],
        "empty": [],
        "bare": [{"question_id": "7", "answer": "A", "response": "A"}],
    }.items():
        write(Path(f"{name}.json"), content)


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize(
    ("file", "message", "arguments"),
    [
        ("type", BAD_TYPE, (*TABLE, "type.json")),
        ("gone", "no such file", (*TABLE, "gone.json")),
        ("empty", "no items", (*TABLE, "empty.json")),
        ("people", "row '0_0': field 'score'", (*TABLE, "good.json", "--people", "people.json")),
        ("type", BAD_TYPE, (*TABLE, "type.json", "--people", "people.json")),
        ("listed", "field 'verdicts'", (*TABLE, "listed.json")),
        ("unlike", "verdict on 'charthal': field 'status'", (*TABLE, "unlike.json")),
        ("type", BAD_TYPE, ("compare", "charthal", "type.json", "good.json")),
        ("type", BAD_TYPE, ("compare", "charthal", "good.json", "type.json")),
        ("twice", "item 2: id 'a'", ("compare", "charthal", "good.json", "twice.json")),
        ("logits", "row 1: ", ("lal", "--results", "logits.json")),
        ("silent", "row 1: item '0_0': field 'response'", (*GRADE, "silent.json")),
        ("empty", "no items", (*GRADE, "empty.json")),
        (
            "bare",
            "row 1: item '7': fields 'category', 'subcategory', 'level' are missing",
            ("grade", "truthfulvqa", "--out", "new.json", "--responses", "bare.json"),
        ),
        ("unknown", "response 1: field 'id'", (*GRADE, "unknown.json", "--items", "good.json")),
        ("nameless", "row 1: field 'question_id'", (*PLAY, "--responses", "x=nameless.json")),
    ],
)
def test_a_bad_row_is_named_with_its_file(
    file: str, message: str, arguments: tuple[str, ...]
) -> None:
    done = run(*arguments)
    assert done.exit_code == 2
    assert done.stderr.startswith(f"error: {file}.json: {message}")
    assert done.stderr.count("\n") == done.stderr.count(f"{file}.json") == 1
