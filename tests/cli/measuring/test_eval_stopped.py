"""``custos eval`` and ``custos calibrate`` that are stopped and given again."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from judging.files.records import write_records
from judging.judge import Judge
from judging.judge.card import JudgeCard
from judging.models.adapters import add_adapter
from judging.models.backbones import load_backbone
from judging.types import JudgeRequest
from tests.cli.made_up import custos, succeed, write_lines
from tests.cli.measuring.made_up import UnsteadyJudge, report_of
from tests.cli.measuring.made_up import run as evaluate
from tests.serve.made_up import card_of, row
from tests.train.made_up import example

pytestmark = pytest.mark.usefixtures("no_pictures")
BATCH = 5
NUM_ROWS = 23
NUM_BATCHES = 5


class Judges:
    """A trained judge and its untrained backbone."""

    def __init__(self) -> None:
        self.trained, self.untrained = UnsteadyJudge("trained"), UnsteadyJudge("untrained")
        self.trained.card = card_of({"hieval-qs": ("plain/all",)})

    @property
    def num_batches(self) -> list[int]:
        return [len(judge.batches) for judge in (self.trained, self.untrained)]


@pytest.fixture
def judges(monkeypatch: pytest.MonkeyPatch) -> Judges:
    judges = Judges()

    def load(source: str) -> Judge:
        return judges.untrained if source == "untrained" else judges.trained

    monkeypatch.setattr(Judge, "load", load)
    return judges


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "data.jsonl"
    write(path, ["Paris", "Rome", "in Paris"])
    return path


def write(path: Path, responses: list[str]) -> None:
    """Write answers to questions that are not in alphabetical order."""
    rows = [
        row(
            responses[number % len(responses)],
            question=f"Which {(7 * number) % NUM_ROWS}?",
            label="Correct" if number % 2 else "Wrong",
        )
        for number in range(NUM_ROWS)
    ]
    write_lines(path, rows)


def run(data: Path, out: Path, *options: str) -> Any:
    return evaluate(data, out, "--batch", str(BATCH), *options)


def contents(folder: Path) -> dict[str, bytes]:
    """Return all files of a report but what says how long it took."""
    files = {path.name: path.read_bytes() for path in folder.iterdir()}
    report = json.loads(files.pop("report.json"))
    del report["seconds"], report["items_per_second"]
    files["report.md"] = files["report.md"].partition(b"\n\n    ")[2]
    return {**files, "report.json": json.dumps(report).encode()}


@pytest.mark.parametrize("stop_at", [(3, None), (None, 2)])
def test_it_goes_on_and_ends_with_the_same_files(
    judges: Judges, data: Path, tmp_path: Path, stop_at: tuple[int | None, int | None]
) -> None:
    assert run(data, tmp_path / "whole").exit_code == 0
    whole = [list(judge.batches) for judge in (judges.trained, judges.untrained)]
    assert judges.num_batches == [NUM_BATCHES] * 2
    judges.trained.batches, judges.untrained.batches = [], []
    judges.trained.stop_at, judges.untrained.stop_at = stop_at
    assert run(data, tmp_path / "out").exit_code == 130
    assert not (tmp_path / "out" / "report.json").exists()
    judges.trained.stop_at = judges.untrained.stop_at = None
    result = run(data, tmp_path / "out")
    assert result.exit_code == 0, result.stderr
    assert [judges.trained.batches, judges.untrained.batches] == whole, "nothing graded twice"
    assert contents(tmp_path / "out") == contents(tmp_path / "whole")
    report = report_of(tmp_path / "out")
    assert (report["seconds"], report["items_per_second"]) == (None, None), "runs shared the work"


@pytest.mark.parametrize("change", ["row", "judge", "risk"])
def test_verdicts_on_something_else_are_not_mixed_in(
    judges: Judges, data: Path, tmp_path: Path, change: str
) -> None:
    judges.trained.stop_at = 3
    assert run(data, tmp_path / "out").exit_code == 130
    judges.trained.stop_at = None
    if change == "row":
        write(data, ["Lyon"])
    if change == "judge":
        judges.trained.name = "another"
    result = run(data, tmp_path / "out", *(("--risk", ".05") if change == "risk" else ()))
    kept = tmp_path / "out" / "report-verdicts.jsonl.partial"
    assert result.exit_code == 2
    assert f"{kept}: line 1 is a result on something else" in result.stderr
    assert f"rm {kept}" in result.stderr
    assert len(judges.trained.batches) == 3


def test_labels_may_change_between_two_runs(judges: Judges, data: Path, tmp_path: Path) -> None:
    """A verdict does not depend on them."""
    judges.trained.stop_at = 3
    assert run(data, tmp_path / "out").exit_code == 130
    judges.trained.stop_at = None
    data.write_text(data.read_text().replace("Wrong", "Correct"))
    assert run(data, tmp_path / "out").exit_code == 0
    assert len(judges.trained.batches) == NUM_BATCHES
    report = report_of(tmp_path / "out")
    assert report["per_class"]["Correct"]["people"] == NUM_ROWS


def test_failed_rows_are_kept_to_be_graded_again(
    judges: Judges, data: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    judges.trained.fails = True
    result = run(data, out)
    assert result.exit_code == 1
    kept = out / "report-verdicts.jsonl.partial"
    assert f"8 failed, kept in {kept}; --retry-failed grades them again" in result.stderr
    assert list(out.glob("*.partial")) == [kept]
    judges.trained.fails, judges.trained.batches = False, []
    assert run(data, out).exit_code == 1
    assert judges.trained.batches == [], "they stay failed"
    assert run(data, out, "--retry-failed").exit_code == 0
    assert sum(map(len, judges.trained.batches)) == 8
    assert not list(out.glob("*.partial"))
    assert report_of(out)["unscored"] == []


CALIBRATE_BATCH = 4
CALIBRATE_NUM_ROWS = 15
KEPT = "calibration.json.partial"


@pytest.fixture
def judge(small: str, tmp_path: Path) -> Path:
    """Folder of a judge of hieval-qs that knows one rubric."""
    folder = tmp_path / "judge"
    backbone = load_backbone(small, dtype="float32", device="cpu")
    add_adapter(backbone.model, r=2, alpha=2).save_pretrained(str(folder))
    card = JudgeCard.for_rubrics(backbone, {"hieval-qs": ("plain/any",)}, response_budget=50)
    (folder / "judge.json").write_text(card.model_dump_json(), encoding="utf-8")
    return folder


class Scored:
    """Record of the rows that judges scored, a list for each call."""

    def __init__(self) -> None:
        self.calls: list[list[str | None]] = []
        self.stop_at: int | None = None

    def counting(self, logprobs: Callable[..., Any]) -> Callable[..., Any]:
        def count(judge: Judge, requests: Sequence[JudgeRequest]) -> Any:
            if self.stop_at == len(self.calls):
                raise KeyboardInterrupt
            self.calls.append([request.id for request in requests])
            return logprobs(judge, requests)

        return count


@pytest.fixture
def scored(monkeypatch: pytest.MonkeyPatch) -> Scored:
    scored = Scored()
    monkeypatch.setattr(Judge, "logprobs", scored.counting(Judge.logprobs))
    monkeypatch.setattr("cli.eval.CHUNK", CALIBRATE_BATCH)
    return scored


def test_it_goes_on_and_ends_with_the_same_file(
    judge: Path, scored: Scored, tmp_path: Path
) -> None:
    data = tmp_path / "cal.jsonl"
    write_records(data, [example(number) for number in range(CALIBRATE_NUM_ROWS)])
    result = succeed("calibrate", judge, "--data", data)
    assert f"{CALIBRATE_NUM_ROWS}/{CALIBRATE_NUM_ROWS}" in result.stderr, "a progress bar"
    whole = (judge / "calibration.json").read_bytes()
    in_one_run, scored.calls = scored.calls, []
    assert len(in_one_run) == 4

    scored.stop_at = 2
    assert custos("calibrate", judge, "--data", data).exit_code == 130
    with (judge / KEPT).open("ab") as file:
        file.write(b'{"row": 3, "ke')  # killed while it wrote
    scored.stop_at = None
    succeed("calibrate", judge, "--data", data)
    assert scored.calls == in_one_run, "nothing is scored twice"
    assert (judge / "calibration.json").read_bytes() == whole
    assert not (judge / KEPT).exists()


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (
            {"task": "truthful-pair", "responses": ("green", "brown"), "label": "A"},
            "field 'task': judge 'judge' was trained for hieval-qs, not 'truthful-pair'",
        ),
        (
            {"references": ("green", "red"), "reference_mode": "all"},
            "field 'reference_mode': judge 'judge' was trained for hieval-qs under plain/any",
        ),
        ({"references": ("green " * 5000,)}, "field 'references': the prompt has "),
    ],
)
def test_a_row_that_the_judge_cannot_take_is_named_before_any_is_scored(
    judge: Path, scored: Scored, tmp_path: Path, fields: dict[str, Any], message: str
) -> None:
    data = tmp_path / "cal.jsonl"
    write_records(data, [*map(example, range(9)), example(9, **fields)])
    result = custos("calibrate", judge, "--data", data)
    assert result.exit_code == 2
    assert result.stderr.startswith(f"error: {data}: row '9': {message}")
    assert scored.calls == []


def test_nothing_is_scored_where_all_rows_have_one_label(
    judge: Path, scored: Scored, tmp_path: Path
) -> None:
    data = tmp_path / "cal.jsonl"
    write_records(data, [example(3 * number) for number in range(9)])
    result = custos("calibrate", judge, "--data", data)
    assert result.exit_code == 2
    assert "all calibration rows are labelled 'Correct'" in result.stderr
    assert scored.calls == []
