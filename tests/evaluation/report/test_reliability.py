"""The reliability card: figures of its data sets, what is missing, and where it is shown."""

import json
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from evaluation.report.reliability import HEADING, remove_figures, render_card
from judging.judge import Judge
from serve.app import create_app
from serve.queue.service import Service
from tests.cli.made_up import custos, write_lines
from tests.cli.measuring.made_up import UnsteadyJudge
from tests.serve.made_up import FakeJudge, card_of, row


@pytest.fixture
def judge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeJudge:
    """A judge with a card of two rubrics, a folder, and no thresholds."""
    judge = FakeJudge("mine")
    judge.card = card_of({"hieval-qs": ("plain/all", "plain/any")})
    judge.folder = tmp_path / "mine"
    judge.folder.mkdir()
    (judge.folder / "README.md").write_text("# mine\n\nWhat it is.\n\nMade by hand.\n")
    (judge.folder / "report.json").write_text(json.dumps({"n": 1, "metrics": {}, "baselines": {}}))
    loads = {str(judge.folder): judge}
    monkeypatch.setattr(Judge, "load", lambda source, **_: loads.get(source, FakeJudge(source)))
    return judge


def write(path: Path, num_wrong: int) -> Path:
    """Twenty answers, on some of which people disagree with the judge."""
    rows: list[dict[str, Any]] = []
    for number in range(20):
        label = "Wrong" if number < num_wrong else "Correct"
        rows.append(row("Paris", question=f"Capital {number}?", label=label, id=str(number)))
    return write_lines(path, rows)


def card(folder: Path | str, out: Path | str, *options: str, **data: Path) -> Any:
    """Run ``custos card`` on data sets by name."""
    named = [part for name, path in data.items() for part in ("--data", f"{name}={path}")]
    return custos("card", folder, "--out", out, *named, *options)


def rate(hits: int, n: int) -> dict[str, Any]:
    return {"hits": hits, "n": n, "value": hits / n, "low": 0.01, "high": 0.2, "rule_of_three": 1}


def test_a_card_is_written_and_shown(judge: FakeJudge, tmp_path: Path) -> None:
    assert judge.folder
    attacks = tmp_path / "attacks.json"
    family = {"summary": "s", "called_correct": rate(5, 100)}
    attacks.write_text(
        json.dumps({"n": 1, "attacks": {"not_the_answer": family}, "controls": {"plain": family}})
    )
    rows = {name: write(tmp_path / f"{name}.jsonl", n) for name, n in (("first", 2), ("second", 5))}
    result = card(judge.folder, judge.folder, "--attacks", str(attacks), **rows)
    assert result.exit_code == 0
    assert "first: 20 rows, accuracy 0.900 [" in result.stdout
    assert "not measured: hieval-qs/plain/any" in result.stdout

    made = json.loads((judge.folder / "reliability.json").read_text())
    measured = {name: part["metrics"]["accuracy"]["value"] for name, part in made["data"].items()}
    assert measured == {"first": 0.9, "second": 0.75}
    assert "logistic_overlap" in made["data"]["first"]["baselines"]
    assert made["data"]["first"]["abstention"] is None, "this judge has no thresholds"
    assert made["data"]["first"]["seconds_per_1000"] > 0
    assert made["not_measured"] == ["hieval-qs/plain/any"]

    readme = (judge.folder / "README.md").read_text()
    assert readme.startswith("# mine\n\nWhat it is.") and readme.count(HEADING) == 1
    assert "| first | **mine** | 20 | 0.900 [" in readme
    assert "| not the answer | 100 | 0.050 [0.010, 0.200] |" in readme
    assert "Not measured on: hieval-qs/plain/any." in readme
    assert readme.count("What can be kept was not measured on") == 2
    assert "was not measured on second: the judge has no thresholds" in readme

    with TestClient(create_app(Service({"mine": judge}))) as client:
        page = client.get("/pages/judges").text
    assert "Reliability by data set" in page and '<th scope="row">second</th>' in page
    assert "Not measured by data set under hieval-qs/plain/any." in page
    assert page.count("Made by hand.") == 1 and "Brackets hold 95 % intervals, by" not in page


def test_a_file_that_is_no_report_on_attacks_is_refused(judge: FakeJudge, tmp_path: Path) -> None:
    wrong = tmp_path / "attacks.json"
    wrong.write_text('{"attacks": {"x": {}}}')
    d, out = write(tmp_path / "d.jsonl", 1), tmp_path / "out"
    result = card(judge.folder or "", out, "--attacks", str(wrong), d=d)
    assert result.exit_code == 2
    assert "attacks.json" in result.stderr and "attacks.x.called_correct" in result.stderr
    assert not (tmp_path / "out").exists()


def test_files_that_are_no_card_are_not_replaced(judge: FakeJudge, tmp_path: Path) -> None:
    assert judge.folder
    page = judge.folder / "reliability.md"
    page.write_text("mine")
    data = write(tmp_path / "d.jsonl", 1)
    result = card(judge.folder, judge.folder, d=data)
    assert result.exit_code == 2
    assert "files of yours that would be replaced (reliability.md); name a new" in result.stderr
    page.unlink()
    for _ in range(2):  # its own card is replaced
        assert card(judge.folder, judge.folder, d=data).exit_code == 0


def test_a_stopped_card_goes_on_where_it_stopped(
    judge: FakeJudge, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    stopped = UnsteadyJudge("mine")
    stopped.card = judge.card
    monkeypatch.setattr(Judge, "load", lambda source, **_: stopped)
    data = {name: write(tmp_path / f"{name}.jsonl", 3) for name in ("first", "second")}
    cards = []
    for stop_at in (-1, 3):
        out, stopped.batches, stopped.stop_at = tmp_path / str(stop_at), [], stop_at
        codes: list[int] = []
        while not codes or codes[-1] == 130:
            codes.append(card("mine", out, "--no-zero-shot", "--batch", "5", **data).exit_code)
            stopped.stop_at = -1
        assert codes == ([0] if stop_at == -1 else [130, 0])
        assert len(stopped.batches) == 8, "no row is graded twice"
        assert {path.name for path in out.iterdir()} == {"reliability.json", "reliability.md"}
        cards.append(json.loads((out / "reliability.json").read_text()))
    seconds = [
        [part.pop("seconds_per_1000") is not None for part in made["data"].values()]
        for made in cards
    ]
    assert seconds == [[True, True], [False, True]], "two runs shared the work on the first"
    assert cards[0] == cards[1]


SHIPPED = Path(__file__).parents[3] / "judges"


@pytest.mark.parametrize(
    "path", sorted(SHIPPED.glob("*/reliability.json")), ids=lambda path: path.parent.name
)
def test_pages_of_shipped_judges_say_what_their_figures_say(path: Path) -> None:
    shown = render_card(json.loads(path.read_text())).strip()
    for page in ("README.md", "reliability.md"):
        assert shown in path.with_name(page).read_text(encoding="utf-8"), page


@pytest.mark.parametrize(
    ("before", "top"),
    [
        ("---\n# of the hub\nlicense: mit\n---\n# mine\n\nText.\n", 5),
        ("\n# mine\n\nText.\n", 1),
        ("Text.\n\n```\n# a comment\ncustos judges\n```\n", 0),
        ("", 0),
    ],
)
def test_one_note_of_a_new_calibration_stands_below_header_and_title(
    before: str, top: int, tmp_path: Path
) -> None:
    readme = tmp_path / "README.md"
    readme.write_text(before, encoding="utf-8")
    for data in ("first.jsonl", "second.jsonl"):
        remove_figures(tmp_path, (), data)
    lines = readme.read_text(encoding="utf-8").splitlines()
    [place] = [n for n, line in enumerate(lines) if line.startswith("**Calibrated again on ")]
    assert "second.jsonl" in lines[place]
    wanted = before.strip().splitlines()
    assert [line for line in lines[:place] if line] == wanted[:top]
    assert [line for line in lines[place + 1 :] if line] == [each for each in wanted[top:] if each]
