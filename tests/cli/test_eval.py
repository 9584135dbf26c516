import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from cli.main import app
from evaluation.folder import load_evaluation
from evaluation.report.report import build_report
from judging import Judge, JudgeRequest, Verdict
from judging.fingerprint import file_sha256
from judging.types import Pass
from tests.serve.made_up import FakeJudge, row


class TrainedJudge(FakeJudge):
    """Has a card and a calibration, as a judge from a run folder does."""

    def __init__(self) -> None:
        super().__init__("trained")
        there: Any = object()
        self.card, self.calibration = there, there

    def verdict_on(self, request: JudgeRequest, confidence: float) -> Verdict:
        """Surer before calibration."""
        verdict = super().verdict_on(request, confidence)
        assert verdict.label
        [other] = set(verdict.probabilities) - {verdict.label}
        raw = Pass(posterior={verdict.label: 0.99, other: 0.01})
        return verdict.model_copy(
            update={"passes": (raw,), "label_mass": 0.9, "posterior": "exact"}
        )


@pytest.fixture(autouse=True)
def few_resamples(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "evaluation.report.report.build_report", partial(build_report, resamples=20)
    )


@pytest.fixture
def no_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evaluation.report.plots.draw_report", lambda report, out_dir: [])


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
    """Twelve answers; people disagree with the judge on the two that say 'Paris?'."""
    responses = ("Paris", "Rome", "Paris?", "Lyon", "in Paris", "Nice") * 2
    lines = []
    for number, response in enumerate(responses):
        label = "Correct" if "Paris" in response and "?" not in response else "Wrong"
        fields: dict[str, Any] = {"label": label, "group": str(number // 2)}
        if number == 0:
            fields["id"] = "first"
        lines.append(json.dumps(row(response, **fields)) + "\n")
    path = tmp_path / "test.jsonl"
    path.write_text("".join(lines))
    return path


def run(data: Path, out: Path, *options: str, judge: str = "run") -> Any:
    arguments = ["eval", judge, "--data", str(data), "--out", str(out), *options]
    return CliRunner().invoke(app, arguments, catch_exceptions=False)


def test_report_run_and_table(loaded: list[str], data: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    result = run(data, out)
    assert result.exit_code == 0
    report = json.loads((out / "report.json").read_text())
    assert report["n"] == 12
    assert report["metrics"]["accuracy"]["value"] == pytest.approx(10 / 12)
    assert report["baselines"]["zero_shot"]["accuracy"]["value"] == pytest.approx(10 / 12)
    assert report["baselines"]["majority_label"]["accuracy"]["value"] == pytest.approx(8 / 12)
    assert report["dataset_sha256"] == file_sha256(data)
    assert report["seconds"] > 0
    assert report["judges"] == ["trained/hieval-qs"]
    assert loaded == ["run", "untrained"]
    assert {"report.md", "confusion.png"} <= {path.name for path in out.iterdir()}

    examples, verdicts = load_evaluation(out)
    assert [example.id for example in examples] == ["first", *map(str, range(2, 13))]
    assert [verdict.id for verdict in verdicts] == [example.id for example in examples]

    rows = [line.split("│") for line in result.stdout.splitlines() if "│" in line]
    table = {cells[1].strip(): [cell.strip() for cell in cells[2:-1]] for cells in rows}
    assert table["trained"][0].startswith("0.833 [")
    assert table["trained"][3] == ""
    assert float(table["majority_label"][3]) == pytest.approx(
        2 * (1 + 6 + 15) / 2**6
    )  # 4 against 2
    assert str(out / "report.md") in result.stdout


@pytest.mark.usefixtures("no_pictures")
def test_calibration_is_set_beside_none(loaded: list[str], data: Path, tmp_path: Path) -> None:
    run(data, tmp_path / "out")
    calibration = json.loads((tmp_path / "out" / "report.json").read_text())["calibration"]
    confidences = {
        stage: max(cell["confidence"] for cell in calibration[stage]["bins"])
        for stage in ("before", "after")
    }
    assert confidences == pytest.approx({"before": 0.99, "after": 0.9 - 12 / 1000})


@pytest.mark.usefixtures("no_pictures")
def test_the_exact_command_is_recorded(
    loaded: list[str], data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", ["/bin/custos", "eval", "run", "--data", "my file"])
    run(data, tmp_path / "out")
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    assert report["command"] == "custos eval run --data 'my file'"


@pytest.mark.usefixtures("no_pictures")
def test_no_zero_shot(loaded: list[str], data: Path, tmp_path: Path) -> None:
    run(data, tmp_path / "out", "--no-zero-shot")
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    assert loaded == ["run"]
    assert "zero_shot" not in report["baselines"]


@pytest.mark.usefixtures("no_pictures")
def test_an_untrained_judge_is_not_set_beside_itself(
    loaded: list[str], data: Path, tmp_path: Path
) -> None:
    run(data, tmp_path / "out", judge="embedded")
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    assert loaded == ["embedded"]
    assert "zero_shot" not in report["baselines"]
    assert "before" not in report["calibration"]


@pytest.mark.usefixtures("no_pictures")
def test_limit_draws_by_seed_and_keeps_the_order(
    loaded: list[str], data: Path, tmp_path: Path
) -> None:
    drawn = []
    for out, seed in (("a", "1"), ("b", "1"), ("c", "2")):
        run(data, tmp_path / out, "--limit", "5", "--seed", seed)
        drawn.append([example.id for example in load_evaluation(tmp_path / out)[0]])
    assert drawn[0] == drawn[1] != drawn[2]
    numbers = [1 if id == "first" else int(id) for id in drawn[0]]
    assert len(set(numbers)) == 5
    assert numbers == sorted(numbers) != list(range(1, 6))
    run(data, tmp_path / "all", "--limit", "99")
    assert len(load_evaluation(tmp_path / "all")[0]) == 12


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (json.dumps(row()), "cannot be used; field 'label': Field required (1, the first is row"),
        ("{", "test.jsonl: 1 of 13 rows cannot be used; not valid JSON"),
    ],
)
def test_a_bad_row_stops_the_evaluation(
    loaded: list[str], data: Path, tmp_path: Path, line: str, message: str
) -> None:
    data.write_text(data.read_text() + line + "\n")
    result = run(data, tmp_path / "out")
    assert result.exit_code == 2
    assert message in result.stderr
    assert loaded == []
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("limit", [(), ("--limit", "1")])
def test_labels_that_the_rubric_does_not_declare_stop_it_before_any_model_is_loaded(
    loaded: list[str], data: Path, tmp_path: Path, limit: tuple[str, ...]
) -> None:
    lines = [row(label="right"), row(label="Partial", reference_mode="any"), row(label="right")]
    data.write_text(data.read_text() + "\n".join(map(json.dumps, lines)))
    result = run(data, tmp_path / "out", *limit)
    assert result.exit_code != 0
    assert result.stderr.count("\n") == 1
    assert f"{data}: 3 of 15 rows cannot be used" in result.stderr
    assert "hieval-qs/plain/all has Correct, Partial, Wrong and not right (2)" in result.stderr
    assert "hieval-qs/plain/any has Correct, Wrong and not Partial (1)" in result.stderr
    assert "add --labels 'right=Correct,Partial=?'" in result.stderr
    assert loaded == []
    assert not (tmp_path / "out").exists()


def test_a_spreadsheet_with_other_columns_and_labels(
    loaded: list[str], data: Path, tmp_path: Path
) -> None:
    sheet = tmp_path / "labels.csv"
    sheet.write_text(
        "question,gold,model_answer,human_label\n1+1?,2,2,right\n1+2?,3,4,no\n,5,5,no\n"
    )
    columns = "references=gold response=model_answer label=human_label"
    mapped = [word for pair in columns.split() for word in ("--map", pair)]
    mapped += ["--labels", "right=Correct,no=Wrong"]
    result = run(sheet, tmp_path / "out", *mapped)
    assert result.exit_code == 2
    assert "1 of 3 rows cannot be used; field 'question'" in result.stderr
    assert loaded == []
    result = run(sheet, tmp_path / "out", *mapped, "--allow-dropped")
    assert result.exit_code == 0, result.stderr
    assert "skipped: " in result.stderr
    examples, _ = load_evaluation(tmp_path / "out")
    assert [example.label for example in examples] == ["Correct", "Wrong"]
