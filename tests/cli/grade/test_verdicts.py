"""``custos grade``: a verdict for every row, once, whatever happens and whoever judges."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from cli.shared.verdicts import write_verdicts
from judging.judge import Judge
from judging.types import JudgeRequest, Verdict
from tests.cli.grade.made_up import Run, failing_on_rome, many
from tests.cli.made_up import custos, read_lines, succeed, write_lines
from tests.evaluation.made_up import untrained_mode_note
from tests.serve.chat.made_up import KnowingJudge
from tests.serve.made_up import FakeJudge, row
from tests.serve.sockets import serving_judges


def test_a_verdict_per_row_in_order(run: Run, tmp_path: Path) -> None:
    result = run([row("Paris", id="x"), row("Rome"), row("in Paris")])
    assert result.exit_code == 0
    verdicts = read_lines(tmp_path / "out.jsonl")
    assert [(v["id"], v["label"]) for v in verdicts] == [
        ("x", "Correct"),
        ("2", "Wrong"),
        ("3", "Correct"),
    ]
    assert all(Verdict.model_validate(verdict).status == "scored" for verdict in verdicts)
    assert f"3 rows graded (3 scored): {tmp_path / 'out.jsonl'}" in result.stdout
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.jsonl", "out.jsonl"]


def test_the_judged_share_is_corrected_where_the_judge_was_measured(
    run: Run, judge: FakeJudge, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [row("Paris" if n % 2 else "Rome", question=f"q{n}") for n in range(20)]
    [line] = [line for line in run(rows).stdout.splitlines() if "share of Correct" in line]
    assert "as judged 0.500" in line
    assert "uncorrected" in line
    monkeypatch.setattr(judge, "name", "embedded-qs")
    [line] = [line for line in run(rows).stdout.splitlines() if "share of Correct" in line]
    assert "corrected 0." in line
    assert "rows of " in line


@pytest.mark.parametrize("column", ["group", "topic"])
def test_rows_of_a_group_count_together_in_the_judged_share(run: Run, column: str) -> None:
    rows = [row("Paris" if n < 20 else "Rome", question=f"q{n}") for n in range(40)]

    def width(rows: list[dict[str, Any]], *options: str) -> float:
        [line] = [line for line in run(rows, *options).stdout.splitlines() if "share of" in line]
        _, low, high = map(float, re.findall(r"[\d.]+", line.partition("as judged")[2])[:3])
        return high - low

    grouped = [fields | {column: n // 10} for n, fields in enumerate(rows)]
    assert width(grouped, "--map", f"group={column}") > 2 * width(rows)


def test_every_row_has_a_verdict_and_failures_end_in_status_1(run: Run, tmp_path: Path) -> None:
    rows = [row(), '{"question": ', row(references=[]), row(nonsense=1, id="n"), row("Rome")]
    result = run(rows)
    assert result.exit_code == 1
    verdicts = read_lines(tmp_path / "out.jsonl")
    assert [(v["row"], v["id"], v["status"]) for v in verdicts] == [
        (1, "1", "scored"),
        (2, "2", "invalid"),
        (3, "3", "invalid"),
        (4, "n", "invalid"),
        (5, "5", "scored"),
    ]
    assert verdicts[1]["message"].startswith("not valid JSON at character ")
    assert verdicts[2]["message"] == "field 'references': task 'hieval-qs' needs it"
    assert verdicts[3]["message"].startswith("field 'nonsense':")
    assert all(Verdict.model_validate(verdict) for verdict in verdicts)
    assert [line for line in result.stderr.splitlines() if "row 2" in line] == [
        f"error: {tmp_path / 'in.jsonl'}: 3 of 5 rows have no verdict: 3 invalid; the first: row 2:"
        f" {verdicts[1]['message']}; mend the invalid rows, or the option that their message is "
        "about, and give the same command again: it grades only these rows"
    ]
    assert "--retry-failed" not in result.stderr
    assert result.stdout.splitlines()[0].startswith("5 rows graded (3 invalid, 2 scored): ")
    assert run(None, "--allow-failed").exit_code == 0


def test_mended_rows_alone_are_graded(run: Run, judge: FakeJudge, tmp_path: Path) -> None:
    run([row(), '{"question": ', row("Rome")])
    judge.batches.clear()
    assert run([row(), row("in Paris"), row("Rome")]).exit_code == 0
    assert judge.batches == [["2"]]
    labels = [verdict["label"] for verdict in read_lines(tmp_path / "out.jsonl")]
    assert labels == ["Correct", "Correct", "Wrong"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.jsonl", "out.jsonl"]


def test_rows_in_a_mode_that_was_not_trained_are_cautioned(
    run: Run, judge: FakeJudge, monkeypatch: pytest.MonkeyPatch
) -> None:
    note, answer = untrained_mode_note(), judge.verdict_on

    def verdict(request: JudgeRequest, confidence: float) -> Verdict:
        message = note if request.response == "Rome" else None
        return answer(request, confidence).model_copy(update={"message": message})

    monkeypatch.setattr(judge, "verdict_on", verdict)
    caution = "caution: 1 of 2 rows ask for a `mode` that the judge was not trained for: leave"
    assert caution in run([row(), row("Rome")]).stderr
    assert "caution" not in run([row(), row()], out="other.jsonl").stderr


def test_a_source_that_changes_meanwhile_is_noticed(
    run: Run, judge: FakeJudge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = judge.verdict_on

    def change(request: JudgeRequest, confidence: float) -> Verdict:
        write_lines(tmp_path / "in.jsonl", [row("Rome")])
        return answer(request, confidence)

    monkeypatch.setattr(judge, "verdict_on", change)
    result = run([row()])
    assert result.exit_code == 2
    assert "the file has changed while it was graded" in result.stderr
    assert not (tmp_path / "out.jsonl").exists()


@pytest.mark.parametrize("out", ["out.pdf", "in.jsonl"])
def test_outputs_that_are_refused(run: Run, tmp_path: Path, out: str) -> None:
    result = run([row()], out=out)
    assert result.exit_code == 2
    assert f"error: --out '{tmp_path / out}': " in result.stderr
    assert read_lines(tmp_path / "in.jsonl") == [row()]


def test_an_empty_file(run: Run, tmp_path: Path) -> None:
    assert "0 rows graded (none)" in run([]).stdout
    assert (tmp_path / "out.jsonl").read_text() == ""


@pytest.mark.parametrize(("option", "name"), [("--in", "-"), ("--out", "-")])
def test_pipes_are_refused(option: str, name: str) -> None:
    files = {"--in": "in.jsonl", "--out": "out.jsonl"} | {option: name}
    arguments = [part for pair in files.items() for part in pair]
    result = custos("grade", *arguments)
    assert result.exit_code == 2
    assert f"error: {option} '-': name a file; " in result.stderr


def test_no_other_run_begins_while_the_verdicts_are_written(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    meanwhile: list[Any] = []

    def slowly(*arguments: Any) -> None:
        if not meanwhile:
            meanwhile.append(run(None))
        write_verdicts(*arguments)

    monkeypatch.setattr("cli.grade.write_verdicts", slowly)
    assert run(many(3)).exit_code == 0
    assert "another run is writing it" in meanwhile[0].stderr
    assert len(read_lines(tmp_path / "out.jsonl")) == 3


def test_without_a_judge_every_row_goes_to_the_shipped_one_that_knows_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shipped = {
        "quick": KnowingJudge("quick", ("hieval-qs",)),
        "pairs": KnowingJudge("pairs", ("truthful-pair",)),
    }
    monkeypatch.setattr("cli.shared.judges.default_judges", lambda: list(shipped))
    monkeypatch.setattr(Judge, "load", lambda source: shipped[source])
    untrained = KnowingJudge("untrained", ("simplevqa",))
    monkeypatch.setattr("cli.shared.judges.untrained_judge", lambda _: untrained)
    pair = {"task": "truthful-pair", "question": "Which?", "response_a": "a", "response_b": "b"}
    other = {"task": "simplevqa", "variant": "english", **row()}
    write_lines(tmp_path / "in.jsonl", [pair, row(), other, pair])
    succeed("grade", "--in", tmp_path / "in.jsonl", "--out", tmp_path / "out.jsonl")
    verdicts = read_lines(tmp_path / "out.jsonl")
    assert [v.get("judge") for v in verdicts] == [
        *("pairs/truthful-pair", "quick/hieval-qs"),
        *("untrained/simplevqa", "pairs/truthful-pair"),
    ]
    assert [v["id"] for v in verdicts] == ["1", "2", "3", "4"]


def test_rows_that_failed_in_a_finished_run_can_be_tried_again(
    run: Run, judge: FakeJudge, tmp_path: Path
) -> None:
    out, partial = tmp_path / "out.jsonl", tmp_path / "out.jsonl.partial"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(judge, "verdict_on", failing_on_rome(judge))
        done = run(many(10), "--batch", "4")  # the last batch is short
    assert done.exit_code == 1
    assert "--retry-failed asks again for the rows with judge_error" in done.stderr
    assert partial.exists()
    first = out.read_bytes()
    judge.batches.clear()
    assert run(None, "--batch", "4").exit_code == 1
    assert (judge.batches, out.read_bytes()) == ([], first)
    done = run(None, "--batch", "4", "--retry-failed")
    assert judge.batches == [["1", "4", "7", "10"]]
    assert "--retry-failed" not in done.stderr
    assert [v["label"] for v in read_lines(out)] == [*["Wrong", "Correct", "Correct"] * 3, "Wrong"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.jsonl", "out.jsonl"]


CUSTOS = "from cli.main import app; app()"
ROWS = (("Paris", "The capital is Paris."), ("Paris", "I think it is Rome."))


@pytest.mark.usefixtures("embedded", "forking_python")
def test_grading_writes_no_notices(tmp_path: Path) -> None:
    asked = {"question": "What is the capital of France?", "reference_mode": "any"}
    rows = [asked | {"references": [right], "response": response} for right, response in ROWS]
    source = write_lines(tmp_path / "rows.jsonl", rows)
    files = ["--in", str(source), "--out", str(tmp_path / "out.jsonl")]
    done = subprocess.run(
        [sys.executable, "-c", CUSTOS, "grade", "--judge", "embedded-qs", *files],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.startswith("2 rows graded")
    ours = ("grading ", "rows for people: ")
    assert [line for line in done.stderr.splitlines() if not line.startswith(ours)] == []


def test_the_key_comes_from_where_doctor_looks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = write_lines(tmp_path / "in.jsonl", [row("Paris")])
    out = tmp_path / "out.jsonl"
    monkeypatch.setenv("CUSTOS_KEY", "a-key-of-sixteen")
    monkeypatch.setenv("OTHER_KEY", "another-of-sixteen")
    for key, options in (("a-key-of-sixteen", []), ("another-of-sixteen", ["OTHER_KEY"])):
        with serving_judges({"fake": FakeJudge()}, keys=(key,)) as url:
            named = [part for name in options for part in ("--key-env", name)]
            succeed("grade", "--judge", url, "--in", source, "--out", out, *named)


def test_services_share_the_rows(tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    responses = ["Paris" if number % 2 else "Rome" for number in range(60)]
    source = write_lines(tmp_path / "in.jsonl", map(row, responses))
    judges = [FakeJudge(), FakeJudge()]
    with (
        serving_judges({"fake": judges[0]}) as first,
        serving_judges({"fake": judges[1]}) as second,
    ):
        command = ["grade", "--in", source, "--out", out, "--judge", first, "--judge", second]
        assert "60 scored" in succeed(*command, "--judge", "http://127.0.0.1:9").output
    lines = read_lines(out)
    assert [line["row"] for line in lines] == list(range(1, 61))
    assert [line["label"] == "Correct" for line in lines] == [r == "Paris" for r in responses]


def test_several_judges_must_be_services(tmp_path: Path) -> None:
    source = write_lines(tmp_path / "in.jsonl", [row("Paris")])
    command = ["grade", "--judge", "http://127.0.0.1:9", "--judge", "embedded-qs"]
    result = custos(*command, "--in", source, "--out", tmp_path / "out.jsonl")
    assert result.exit_code == 2
    assert "error: --judge embedded-qs: several judges share the rows" in result.stderr


def test_bench_grade(tmp_path: Path) -> None:
    item = {
        "figure_id": 1,
        **{"figure_path": "images/1.jpg", "subq_idx": 1, "q_type": "desc", "q_relation": "normal"},
        **{"question": "How much rain fell in June?", "ref_answer": "40 mm"},
    }
    source, out = tmp_path / "in.json", tmp_path / "out.json"
    source.write_text(
        json.dumps({"1": item | {"response": "40 mm"}, "2": item | {"response": "9"}})
    )
    with serving_judges({"knowing": KnowingJudge(tasks=("charthal",))}) as url:
        succeed("bench", "grade", "charthal", "--judge", url, "--responses", source, "--out", out)
    graded = json.loads(out.read_text())
    assert (graded["1"]["score"], graded["2"]["score"]) == (1, 0)
