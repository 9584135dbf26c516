import json
from pathlib import Path
from typing import Any

import pytest

from evaluation.outcomes import load_evaluation
from judging.errors import CustosError
from judging.fingerprint import file_sha256
from judging.judge import Judge
from judging.types import JudgeRequest, Pass, Verdict
from tests.cli.made_up import write_lines
from tests.cli.measuring.made_up import report_of, run, write_answers
from tests.serve.made_up import FakeJudge, card_of, row


class TrainedJudge(FakeJudge):
    """Has a card and a calibration, as a judge from a run folder does."""

    def __init__(self, rubric: str = "plain/all") -> None:
        super().__init__("trained")
        there: Any = object()
        self.calibration = there
        self.card = card_of({"hieval-qs": (rubric,)})

    def verdict_on(self, request: JudgeRequest, confidence: float) -> Verdict:
        """Surer before calibration; refuses what its card does not name."""
        try:
            self.resolve(request)
        except CustosError as error:
            return Verdict.from_error(error, request)
        verdict = super().verdict_on(request, confidence)
        assert verdict.label
        [other] = set(verdict.probabilities) - {verdict.label}
        raw = Pass(posterior={verdict.label: 0.99, other: 0.01})
        return verdict.model_copy(
            update={"passes": (raw,), "label_mass": 0.9, "posterior": "exact"}
        )


pytestmark = pytest.mark.usefixtures("no_pictures")


@pytest.fixture
def loaded(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What was loaded; ``run`` is a trained judge, anything else a zero-shot one."""
    sources: list[str] = []

    def load(source: str) -> Judge:
        sources.append(source)
        return TrainedJudge() if source == "run" else FakeJudge(source)

    monkeypatch.setattr(Judge, "load", load)
    return sources


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return write_answers(tmp_path / "test.jsonl", 12, per_group=2)


def test_report_run_and_table(
    loaded: list[str], data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    monkeypatch.setattr("sys.argv", ["/bin/custos", "eval", "run", "--data", "my file"])
    result = run(data, out)
    assert result.exit_code == 0
    report = report_of(out)
    assert (report["n"], report["command"]) == (12, "custos eval run --data 'my file'")
    assert report["metrics"]["accuracy"]["value"] == pytest.approx(10 / 12)
    assert report["baselines"]["zero_shot"]["accuracy"]["value"] == pytest.approx(10 / 12)
    assert report["baselines"]["majority_label"]["accuracy"]["value"] == pytest.approx(8 / 12)
    assert report["dataset_sha256"] == file_sha256(data)
    assert report["seconds"] > 0
    assert report["judges"] == ["trained/hieval-qs"]
    assert loaded == ["run", "untrained"]

    examples, verdicts = load_evaluation(out)
    assert [example.id for example in examples] == ["first", *map(str, range(2, 13))]
    assert [verdict.id for verdict in verdicts] == [example.id for example in examples]

    lines = result.stdout.splitlines()
    assert max(len(line) for line in lines if str(out) not in line) <= 80
    table = {line.split()[0]: line for line in lines if "[" in line}
    assert " 100% 12 0.833 [" in table["trained"]
    assert float(table["majority_label"].split()[-1]) == pytest.approx(
        2 * (1 + 6 + 15) / 2**6, abs=1e-4
    )  # 4 against 2
    assert "2 disagreements" in lines
    assert "are too few to conclude" in " ".join(result.stdout.split())
    for name in ("report.html", "report.md", "disagreements.csv"):
        assert (out / name).is_file()
        assert str(out / name) in result.stdout


def test_only_an_earlier_report_is_replaced(loaded: list[str], data: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    for name in ("report.md", "report.json", "notes.txt"):
        (out / name).write_text("{}")
    result = run(data, out)
    assert result.exit_code == 2 and loaded == []
    assert result.stderr == (
        f"error: --out '{out}': the folder holds files of yours that would be replaced "
        "(report.md, report.json); name a new folder\n"
    )
    for name in ("report.md", "report.json"):
        (out / name).unlink()
    for _ in range(2):
        assert run(data, out, "--no-zero-shot").exit_code == 0
    assert (out / "notes.txt").read_text() == "{}"
    before = (out / "examples.jsonl").read_bytes()
    result = run(out / "examples.jsonl", out, "--no-zero-shot", "--limit", "3")
    assert result.exit_code == 2 and "examples.jsonl lies there" in result.stderr
    assert (out / "examples.jsonl").read_bytes() == before


@pytest.mark.parametrize(
    ("judge", "option"), [("run", "--no-zero-shot"), ("embedded", "--zero-shot")]
)
def test_no_zero_shot_if_not_wanted_or_beside_itself(
    loaded: list[str], data: Path, tmp_path: Path, judge: str, option: str
) -> None:
    run(data, tmp_path / "out", option, judge=judge)
    report = report_of(tmp_path / "out")
    assert loaded == [judge]
    assert "zero_shot" not in report["baselines"]
    assert ("before" in report["calibration"]) == (judge == "run")


def test_limit_draws_by_seed_and_keeps_the_order(
    loaded: list[str], data: Path, tmp_path: Path
) -> None:
    drawn = []
    for out, seed in (("a", "1"), ("b", "1"), ("c", "2")):
        run(data, tmp_path / out, "--limit", "5", "--seed", seed, "--no-zero-shot")
        drawn.append([example.id for example in load_evaluation(tmp_path / out)[0]])
    assert drawn[0] == drawn[1] != drawn[2]
    numbers = [1 if id == "first" else int(id) for id in drawn[0]]
    assert len(set(numbers)) == 5
    assert numbers == sorted(numbers) != list(range(1, 6))
    run(data, tmp_path / "all", "--limit", "99", "--no-zero-shot")
    assert len(load_evaluation(tmp_path / "all")[0]) == 12


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (json.dumps(row()), "cannot be used; field 'label': Field required (1, the first is row"),
        ("{", "test.jsonl: 1 of 13 rows cannot be used; not valid JSON"),
        (None, "test.jsonl: no rows"),
    ],
)
def test_a_bad_row_stops_the_evaluation(
    loaded: list[str], data: Path, tmp_path: Path, line: str | None, message: str
) -> None:
    data.write_text("\n" if line is None else f"{data.read_text()}{line}\n")
    result = run(data, tmp_path / "out")
    assert result.exit_code == 2
    assert message in result.stderr
    assert loaded == []
    assert not (tmp_path / "out").exists()


def test_labels_that_the_rubric_does_not_declare_stop_it_before_any_model_is_loaded(
    loaded: list[str], data: Path, tmp_path: Path
) -> None:
    lines = [row(label="right"), row(label="false"), row(label="right")]
    data.write_text(data.read_text() + "\n".join(map(json.dumps, lines)))
    result = run(data, tmp_path / "out", "--limit", "1")  # all rows are looked at
    assert result.exit_code != 0
    assert result.stderr.count("\n") == 1
    given = "'right' (2 rows, the first is row 13) and 'false' (1 row, the first is row 14)"
    assert given in result.stderr
    assert "the labels are Correct, Partial and Wrong; " in result.stderr
    assert "--labels right=Correct,false=Wrong" in result.stderr
    assert loaded == []
    assert not (tmp_path / "out").exists()


def test_labels_that_the_judge_cannot_give_stop_it_before_grading(
    loaded: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    judge = TrainedJudge("plain/any")
    monkeypatch.setattr(Judge, "load", lambda source: judge)
    data = write_lines(tmp_path / "test.jsonl", [row(label="Partial")])
    result = run(data, tmp_path / "out")
    assert result.exit_code != 0
    assert "judge 'trained'" in result.stderr
    assert "hieval-qs/plain/any does not declare 'Partial' (1 row" in result.stderr
    assert judge.batches == []


def test_a_rubric_that_the_judge_was_not_trained_for_is_an_error_without_a_report(
    loaded: list[str], tmp_path: Path
) -> None:
    lines = [row(label="Correct", variant="tolerance"), row("", label="Wrong", variant="tolerance")]
    data = write_lines(tmp_path / "test.jsonl", lines)
    result = run(data, tmp_path / "out")
    assert result.exit_code == 1
    last = result.stderr.splitlines()[-1]
    assert last.startswith(f"error: {data}: no row got a label: 2 rows: ")
    assert "was trained for" in result.stderr
    assert not (tmp_path / "out" / "report.json").exists()
    assert loaded == ["run"]  # Its backbone need not be measured beside nothing.


@pytest.mark.parametrize(("options", "code"), [((), 1), (("--allow-failed",), 0)])
def test_failed_rows_are_named_and_fail_the_command(
    loaded: list[str], data: Path, tmp_path: Path, options: tuple[str, ...], code: int
) -> None:
    line = json.dumps(row(label="Correct", variant="tolerance", id="odd"))
    data.write_text(data.read_text() + line + "\n")
    result = run(data, tmp_path / "out", *options)
    assert result.exit_code == code
    assert "was trained for" in " ".join(result.stdout.split())
    assert "(id odd)" in result.stdout
    [reason] = report_of(tmp_path / "out")["unscored"]
    assert (reason["n"], reason["ids"], reason["failed"]) == (1, ["odd"], True)
    assert " 92% 12 " in result.stdout
    assert ("error: 1 of 13 rows failed" in result.stderr) == bool(code)


def test_a_second_annotator_is_compared(loaded: list[str], data: Path, tmp_path: Path) -> None:
    table = tmp_path / "labels.csv"
    lines = ["question,references,response,label,other,answerer"]
    for number in range(8):
        label, other = ("right", "wrong") if number == 0 else ("right", "right")
        lines.append(f"Which {number}?,Paris,Paris,{label},{other},ant")
    table.write_text("\n".join(lines))
    options = ("--map", "second_label=other", "--labels", "right=Correct,wrong=Wrong")
    result = run(table, tmp_path / "out", *options)
    assert result.exit_code == 0, result.stderr
    lines = result.stdout.splitlines()
    assert max(len(line) for line in lines if str(tmp_path) not in line) <= 80
    report = report_of(tmp_path / "out")
    assert report["annotators"]["people"]["agreement"]["value"] == 7 / 8
    assert report["second_annotator"]["sides_with"] == {"first": 1, "second": 0, "neither": 0}
    rows = (tmp_path / "out" / "disagreements.csv").read_text(encoding="utf-8-sig").splitlines()
    assert len(rows) == 2
    assert "sides_with" in rows[0]
    assert ",first," in rows[1]
    assert rows[0].endswith(",answerer")

    table.write_text(table.read_text().replace("wrong", "so-so"))
    result = run(table, tmp_path / "out2", *options)
    assert result.exit_code != 0
    assert "so-so" in result.stderr


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        (("a", "b", "a"), "row 3: field 'id': 'a' is the id of row 1 too; "),
        (("3", "b", None), "row 3: field 'id': is missing, and the number of the row, 3, is the "),
    ],
)
def test_an_id_of_two_rows_is_refused_before_any_model_is_loaded(
    loaded: list[str], tmp_path: Path, ids: tuple[str | None, ...], message: str
) -> None:
    lines = [row(label="Correct", **({"id": name} if name else {})) for name in ids]
    data = write_lines(tmp_path / "test.jsonl", lines)
    result = run(data, tmp_path / "out", "--limit", "1")
    assert (result.exit_code, result.stderr.count("\n"), loaded) == (2, 1, [])
    assert f"error: {data} {message}" in result.stderr
    assert not (tmp_path / "out").exists()
