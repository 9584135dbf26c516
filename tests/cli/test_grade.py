import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from cli.main import app
from cli.shared.verdict_files import write_verdicts
from clients.kept_work import locked
from judging import Judge, JudgeRequest, Verdict
from judging.types import Pass
from tests.serve.chat.made_up import KnowingJudge
from tests.serve.made_up import FakeJudge, row

Run = Callable[..., Any]

REPOSITORY = Path(__file__).parents[2]


@pytest.fixture
def judge(monkeypatch: pytest.MonkeyPatch) -> FakeJudge:
    judge = FakeJudge()
    monkeypatch.setattr(Judge, "load", lambda source: judge)
    return judge


@pytest.fixture
def run(judge: FakeJudge, tmp_path: Path) -> Run:
    def run(rows: Sequence[Any] | None, *options: str, out: str = "out.jsonl") -> Any:
        source = tmp_path / "in.jsonl"
        if rows is not None:
            write(source, rows)
        arguments = ["grade", "--judge", "fake", "--in", str(source), "--out", str(tmp_path / out)]
        return CliRunner().invoke(app, [*arguments, *options], catch_exceptions=False)

    return run


def write(path: Path, rows: Sequence[Any]) -> None:
    lines = (line if isinstance(line, str) else json.dumps(line) for line in rows)
    path.write_text("".join(f"{line}\n" for line in lines))


def read(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def many(count: int) -> list[dict[str, Any]]:
    return [row(f"Paris {number}" if number % 3 else "Rome") for number in range(count)]


def failing_on_rome(judge: FakeJudge) -> Callable[[JudgeRequest, float], Verdict]:
    """The judge's way of answering, but for one response."""
    answer = judge.verdict_on

    def answer_or_fail(request: JudgeRequest, confidence: float) -> Verdict:
        if request.response == "Rome":
            return Verdict(id=request.id, status="judge_error", message="no such picture")
        return answer(request, confidence)

    return answer_or_fail


def test_a_verdict_per_row_in_order(run: Run, tmp_path: Path) -> None:
    result = run([row("Paris", id="x"), row("Rome"), row("in Paris")])
    assert result.exit_code == 0
    verdicts = read(tmp_path / "out.jsonl")
    assert [(v["id"], v["label"]) for v in verdicts] == [
        ("x", "Correct"),
        ("2", "Wrong"),
        ("3", "Correct"),
    ]
    assert all(Verdict.model_validate(verdict).status == "scored" for verdict in verdicts)
    assert f"3 rows graded (3 scored): {tmp_path / 'out.jsonl'}" in result.stdout
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.jsonl", "out.jsonl"]


def test_labelled_rows_can_be_graded(run: Run, tmp_path: Path) -> None:
    run([row(label="Wrong", split="test", group="g")])
    assert read(tmp_path / "out.jsonl")[0]["label"] == "Correct"


def test_bad_rows_are_reported_by_number_and_listed(run: Run, tmp_path: Path) -> None:
    rows = [row(), '{"question": ', row(references=[]), row(nonsense=1), row("Rome")]
    result = run(rows)
    assert result.exit_code == 0
    assert "in.jsonl row 2: not valid JSON" in result.stderr
    assert "in.jsonl row 4: field 'nonsense'" in result.stderr
    assert "in.jsonl row 3: field 'references'" in result.stderr
    errors = read(tmp_path / "out.jsonl.errors.jsonl")
    assert [error["row"] for error in errors] == [2, 3, 4]
    assert errors[1]["message"] == "field 'references': task 'hieval-qs' needs it"
    assert errors[2]["message"].startswith("field 'nonsense':")
    verdicts = read(tmp_path / "out.jsonl")
    assert [(v["id"], v["status"]) for v in verdicts] == [
        ("1", "scored"),
        ("3", "invalid"),
        ("5", "scored"),
    ]
    run([row()])
    assert not (tmp_path / "out.jsonl.errors.jsonl").exists()


@pytest.mark.parametrize("bad", ["{", row(references=[])], ids=["no request", "refused"])
def test_a_file_without_a_single_verdict_fails(run: Run, tmp_path: Path, bad: Any) -> None:
    result = run([bad, bad])
    assert result.exit_code == 1
    assert result.stderr.splitlines()[-1] == f"error: {tmp_path / 'in.jsonl'}: no row got a verdict"
    assert len(read(tmp_path / "out.jsonl.errors.jsonl")) == 2
    assert run([bad, row()]).exit_code == 0


def test_only_the_first_bad_rows_are_shown(run: Run, tmp_path: Path) -> None:
    result = run(["{"] * 25)
    assert result.stderr.count("not valid JSON") == 10
    assert "and 15 more bad rows" in result.stderr
    assert len(read(tmp_path / "out.jsonl.errors.jsonl")) == 25


@pytest.mark.parametrize("bad", ["{", row(references=[]), row(nonsense=1)])
def test_strict_stops_before_the_judge_works(
    run: Run, judge: FakeJudge, tmp_path: Path, bad: Any
) -> None:
    result = run([row(), bad, row()], "--strict")
    assert result.exit_code == 2
    assert result.stderr.startswith(f"error: {tmp_path / 'in.jsonl'} row 2: ")
    assert judge.batches == []
    assert [path.name for path in tmp_path.iterdir()] == ["in.jsonl"]


def test_strict_refuses_what_only_the_judge_finds(
    run: Run, judge: FakeJudge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(judge, "verdict_on", failing_on_rome(judge))
    for _ in range(2):  # nor when its verdict comes from the partial file
        result = run([row(), row("Rome")], "--strict", "--batch", "1")
        assert result.exit_code == 2
        assert "in.jsonl row 2: no such picture" in result.stderr
        assert "error: 1 rows could not be judged" in result.stderr
        assert not (tmp_path / "out.jsonl").exists()
    assert judge.batches == [["1"], ["2"]]


@pytest.mark.parametrize("out", ["out.csv", "in.jsonl"])
def test_outputs_that_are_refused(run: Run, tmp_path: Path, out: str) -> None:
    result = run([row()], out=out)
    assert result.exit_code == 2
    assert f"error: --out '{tmp_path / out}': " in result.stderr
    assert read(tmp_path / "in.jsonl") == [row()]


def test_an_empty_file(run: Run, tmp_path: Path) -> None:
    assert "0 rows graded (none)" in run([]).stdout
    assert (tmp_path / "out.jsonl").read_text() == ""


def test_parquet_out(run: Run, tmp_path: Path) -> None:
    run([row(id="a"), row(references=[])], out="out.parquet")
    table = pq.read_table(tmp_path / "out.parquet")
    assert set(table.column_names) == set(Verdict.model_fields)
    first, second = table.to_pylist(maps_as_pydicts="strict")
    assert first["probabilities"] == pytest.approx({"Correct": 0.898, "Wrong": 0.102})
    assert (first["id"], second["status"], second["label"]) == ("a", "invalid", None)
    one_pass = Pass(
        order="swapped",
        posterior={"a": 1.0},
        critique="Both say it.",
        finish_reason="stop",
        stated_confidence=0.75,
    )
    assert one_pass.model_fields_set == set(Pass.model_fields)  # so that none goes untried
    full = Verdict(
        status="scored",
        score_range=(0, 1),
        marginals={"score": {"1": 1.0}},
        passes=(one_pass,),
    )
    write_verdicts(tmp_path / "full.parquet", [full])
    [back] = pq.read_table(tmp_path / "full.parquet").to_pylist(maps_as_pydicts="strict")
    assert Verdict.model_validate(back) == full


def interrupted(
    run: Run, judge: FakeJudge, tmp_path: Path, rows: Sequence[Any], after: int
) -> bytes:
    """Final file of an undisturbed run; then leave a partial file of a run that ended early."""
    assert run(rows, "--batch", "4").exit_code == 0
    whole = (tmp_path / "out.jsonl").read_bytes()
    (tmp_path / "out.jsonl").unlink()
    with pytest.MonkeyPatch.context() as patch, pytest.raises(RuntimeError, match="power cut"):
        grade = judge.grade

        def fail_later(requests: list[JudgeRequest]) -> Any:
            if len(judge.batches) - before >= after:
                raise RuntimeError("power cut")
            return grade(requests)

        before = len(judge.batches)
        patch.setattr(judge, "grade", fail_later)
        run(rows, "--batch", "4")
    assert len(read(tmp_path / "out.jsonl.partial")) == 4 * after
    judge.batches.clear()
    return whole


def test_resuming_grades_only_the_rest(run: Run, judge: FakeJudge, tmp_path: Path) -> None:
    whole = interrupted(run, judge, tmp_path, many(10), after=2)
    run(None, "--batch", "4")
    assert judge.batches == [["9", "10"]]
    assert (tmp_path / "out.jsonl").read_bytes() == whole
    assert not (tmp_path / "out.jsonl.partial").exists()


def test_two_runs_do_not_write_one_file(run: Run, judge: FakeJudge, tmp_path: Path) -> None:
    partial = tmp_path / "out.jsonl.partial"
    with locked(partial):
        done = run(many(3))
    assert done.exit_code == 2
    assert f"{partial}: another run is writing it" in done.stderr
    assert judge.batches == []
    assert run(None).exit_code == 0


def test_no_other_run_begins_while_the_verdicts_are_written(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    meanwhile: list[Any] = []

    def slowly(out: Path, verdicts: Any) -> None:
        if not meanwhile:
            meanwhile.append(run(None))
        write_verdicts(out, verdicts)

    monkeypatch.setattr("cli.grade.write_verdicts", slowly)
    assert run(many(3)).exit_code == 0
    assert "another run is writing it" in meanwhile[0].stderr
    assert len(read(tmp_path / "out.jsonl")) == 3


def test_an_input_that_grows_meanwhile_is_noticed(
    run: Run, judge: FakeJudge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cli.grade.check_rows", lambda *_: (4, {}))
    result = run(many(5))
    assert result.exit_code == 2
    assert "5 verdicts on 4 rows" in result.stderr
    assert not (tmp_path / "out.jsonl").exists()


def test_without_a_judge_every_row_goes_to_the_shipped_one_that_knows_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shipped = {
        "quick": KnowingJudge("quick", ("hieval-qs",)),
        "pairs": KnowingJudge("pairs", ("truthful-pair",)),
    }
    monkeypatch.setattr("cli.shared.judges.default_judges", lambda: list(shipped))
    monkeypatch.setattr(Judge, "load", lambda source: shipped[source])
    pair = {"task": "truthful-pair", "question": "Which?", "response_a": "a", "response_b": "b"}
    critique = {"task": "hieval-ea", **row()}
    write(tmp_path / "in.jsonl", [pair, row(), critique, pair])
    files = ["--in", str(tmp_path / "in.jsonl"), "--out", str(tmp_path / "out.jsonl")]
    result = CliRunner().invoke(app, ["grade", *files], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    verdicts = read(tmp_path / "out.jsonl")
    assert [v.get("judge") for v in verdicts] == [
        *("pairs/truthful-pair", "quick/hieval-qs", None, "pairs/truthful-pair")
    ]
    assert verdicts[2]["message"] == "field 'task': no judge here takes 'hieval-ea'"
    assert [v["id"] for v in verdicts] == ["1", "2", "3", "4"]


def test_every_cut_of_the_partial_file_gives_the_same_result(
    run: Run, judge: FakeJudge, tmp_path: Path
) -> None:
    whole = interrupted(run, judge, tmp_path, many(10), after=2)
    saved = (tmp_path / "out.jsonl.partial").read_bytes()
    for cut in range(0, len(saved) + 1, 97):
        (tmp_path / "out.jsonl.partial").write_bytes(saved[:cut])
        judge.batches.clear()
        run(None, "--batch", "4")
        assert (tmp_path / "out.jsonl").read_bytes() == whole
        complete = saved[:cut].count(b"\n") // 4
        assert judge.batches == [["1", "2", "3", "4"], ["5", "6", "7", "8"], ["9", "10"]][complete:]


def test_garbage_in_the_partial_file_is_dropped(run: Run, judge: FakeJudge, tmp_path: Path) -> None:
    whole = interrupted(run, judge, tmp_path, many(10), after=2)
    partial = tmp_path / "out.jsonl.partial"
    lines = partial.read_bytes().splitlines(keepends=True)
    partial.write_bytes(b"".join([*lines[:5], b'{"row": \xff\n', *lines[6:]]))
    run(None, "--batch", "4")
    assert judge.batches == [["5", "6", "7", "8"], ["9", "10"]]
    assert (tmp_path / "out.jsonl").read_bytes() == whole


def test_another_judge_starts_over(run: Run, judge: FakeJudge, tmp_path: Path) -> None:
    interrupted(run, judge, tmp_path, many(10), after=2)
    judge.name = "retrained"
    run(None, "--batch", "4")
    assert len(judge.batches) == 3
    assert {verdict["judge"] for verdict in read(tmp_path / "out.jsonl")} == {"retrained/hieval-qs"}


def test_changed_rows_are_graded_again(run: Run, judge: FakeJudge, tmp_path: Path) -> None:
    rows = many(10)
    interrupted(run, judge, tmp_path, rows, after=2)
    rows[5] = row("Paris, surely")
    run(rows, "--batch", "4")
    assert judge.batches == [["5", "6", "7", "8"], ["9", "10"]]


SLOW = """
import sys
sys.path.insert(0, {repository!r})
from judging import Judge
from tests.serve.made_up import FakeJudge
Judge.load = lambda source: FakeJudge(pause_s=float(source))
from cli.main import app
app()
"""


def test_kill_9_then_again_gives_the_same_file(tmp_path: Path) -> None:
    write(tmp_path / "in.jsonl", many(60))

    def command(out: str, pause: str) -> list[str]:
        script = SLOW.format(repository=str(REPOSITORY))
        files = ["--in", str(tmp_path / "in.jsonl"), "--out", str(tmp_path / out)]
        return [sys.executable, "-c", script, "grade", "--judge", pause, "--batch", "4", *files]

    subprocess.run(command("whole.jsonl", "0"), check=True, capture_output=True)
    partial = tmp_path / "out.jsonl.partial"
    for num_lines in (4, 20):
        process = subprocess.Popen(
            command("out.jsonl", "0.02"), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        deadline = time.monotonic() + 30
        while not partial.exists() or partial.read_bytes().count(b"\n") < num_lines:
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.005)
        os.kill(process.pid, signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
        assert not (tmp_path / "out.jsonl").exists()
    assert len(partial.read_bytes().splitlines()) < 60
    subprocess.run(command("out.jsonl", "0"), check=True, capture_output=True)
    assert (tmp_path / "out.jsonl").read_bytes() == (tmp_path / "whole.jsonl").read_bytes()
    assert not partial.exists()
