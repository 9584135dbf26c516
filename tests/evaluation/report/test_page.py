"""The page of a report, its plots, and the table of disagreements."""

import base64
import csv
import hashlib
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from data_prep.tables.examples import read_examples
from evaluation.report.evaluate import FILE, find_disagreements, write_disagreements
from evaluation.report.page import render_page, write_page
from evaluation.report.plots import draw_learning_curve, draw_ranking, draw_risk_coverage
from evaluation.report.report import build_report
from judging.types import LabelledExample, Verdict
from tests.evaluation.made_up import evaluation, example, scored, unscored
from tests.evaluation.pairs.made_up import pair

HOSTILE = "</script><script>alert('x')</script><img src=x onerror=alert(1)>\" ' & {{ 7*7 }}"


class Tags(HTMLParser):
    """The tags of a page with their attributes, and all of its text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


def page_of(examples: list[LabelledExample], verdicts: list[Verdict], source: str = "x.csv") -> str:
    report = build_report(examples, verdicts, seconds=1, command="custos eval x")
    return render_page(report, find_disagreements(examples, verdicts), source)


def test_the_page_holds_figures_and_every_disagreement(tmp_path: Path) -> None:
    examples, verdicts = evaluation(unscored_every=9)
    report = build_report(examples, verdicts, seconds=1, command="custos eval x")
    disagreements = find_disagreements(examples, verdicts)
    path = write_page(report, disagreements, "labels.csv", tmp_path)
    page = path.read_text(encoding="utf-8")
    accuracy = report["metrics"]["accuracy"]
    assert f'<p class="figure">{accuracy["value"]:.3f}</p>' in page
    assert f"{accuracy['low']:.3f} to {accuracy['high']:.3f}, n = 160" in page
    assert page.count('<details class="item"') == len(disagreements)
    confidences = re.findall(r'<span class="id">(0\.\d{3})</span>', page)
    assert confidences == sorted(confidences, reverse=True)
    assert len(confidences) == len(disagreements)
    assert "By answerer" in page
    assert "20 failed: no label in the text" in page
    for name in report["baselines"]:
        assert f"<th>{name.replace('_', ' ')}</th>" in page
    assert "nan" not in Tags(page).text.lower().split()


def test_nothing_comes_from_elsewhere_and_only_our_script_may_run() -> None:
    page = page_of(*evaluation(questions=8))
    tags = Tags(page).tags
    policy = next(a["content"] for tag, a in tags if a.get("http-equiv")) or ""
    script = page.rpartition("<script>")[2].partition("</script>")[0]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert "default-src 'none'" in policy
    assert f"script-src 'sha256-{digest}'" in policy
    for tag, attributes in tags:
        assert tag not in ("link", "iframe", "object", "a")
        assert (attributes.get("src") or "data:").startswith("data:")
        assert not any(name.startswith("on") for name in attributes)


def test_hostile_texts_stay_texts() -> None:
    hostile = example(
        "Wrong",
        id=HOSTILE,
        question=HOSTILE,
        references=(HOSTILE,),
        responses=(HOSTILE,),
        metadata={"answerer": HOSTILE, HOSTILE: [HOSTILE]},
        images=(HOSTILE,),
    )
    verdict = scored("Correct", 0.9, id=HOSTILE, critique=HOSTILE, judge_name=HOSTILE)
    failed = unscored("2").model_copy(update={"message": HOSTILE})
    plain, other = (
        page_of(*evaluation(questions=8)),
        page_of([hostile, example(id="2")], [verdict, failed]),
    )
    assert "<img src=x" not in other
    assert other.count("<script") == plain.count("<script") == 2
    assert HOSTILE in Tags(other).text
    assert not any(name == "onerror" for _, a in Tags(other).tags for name in a)


def test_pictures_travel_in_the_page(tmp_path: Path) -> None:
    from PIL import Image

    Image.new("RGB", (2000, 1000), "red").save(tmp_path / "a.png")
    source = str(tmp_path / "a.png")
    page = page_of([example("Wrong", images=(source,))], [scored("Correct", 0.9)])
    assert f'data-image="{source}"' in page
    assert "data:image/jpeg;base64," in page


def test_learning_curve_of_incomplete_history(tmp_path: Path) -> None:
    history = [{"step": 1.0, "train_loss": 0.7}, {"step": 2.0, "val_nll": 0.6}, {"step": 3.0}]
    draw_learning_curve(history, tmp_path / "new" / "curve.png")
    assert (tmp_path / "new" / "curve.png").read_bytes().startswith(b"\x89PNG")


def test_what_is_kept_stands_on_the_curve(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows without a label are not on it: half of all rows may be all verdicts."""
    marks: list[tuple[Any, Any]] = []
    monkeypatch.setattr("matplotlib.axes.Axes.errorbar", lambda _, x, y, **kw: marks.append((x, y)))
    curve = {"n": 4, "coverage": [0.25, 1.0], "error": [0.0, 0.25], "aurc": 0.1}
    error = {"value": 0.25, "low": 0.0, "high": 0.5, "n": 4}
    kept = {"value": 0.5, "low": 0.3, "high": 0.7, "n": 8}
    abstention = {"risk": 0.05, "kept": kept, "error": error}
    draw_risk_coverage(curve, abstention, tmp_path / "r.png")
    assert marks == [([1.0], [0.25])]


def test_names_with_letters_that_no_font_has_give_no_warning(
    tmp_path: Path, recwarn: pytest.WarningsRecorder
) -> None:
    share = {"value": 0.5, "low": 0.4, "high": 0.6}
    answerers = {name: {"n": 1, "people": share, "judge": share} for name in ("模型", "\x1b[31m")}
    draw_ranking({"answerers": answerers, "kendall_tau": share}, tmp_path / "r.png")
    assert not recwarn.list


def read(folder: Path) -> list[dict[str, str]]:
    with (folder / FILE).open(encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file))


def test_the_most_confident_come_first_and_those_without_confidence_last() -> None:
    examples = [example("Wrong", id=str(i)) for i in range(6)]
    verdicts = [
        scored("Correct", 0.6, id="0"),
        Verdict(id="1", status="scored", label="Correct"),
        scored("Correct", 0.6, id="2", confidence=0.9),
        scored("Wrong", 0.99, id="3"),
        unscored("4"),
        scored("Correct", 0.6, id="5"),
    ]
    rows = find_disagreements(examples, verdicts)
    assert [row.example.id for row in rows] == ["2", "0", "5", "1"]
    assert [row.confidence for row in rows] == [0.9, 0.6, 0.6, None]
    assert rows[0].pair == "people Wrong, judge Correct"


def test_a_second_person_who_differs_from_the_judge_is_a_disagreement() -> None:
    examples = [example("Correct", id="0", second_label="Wrong"), example("Correct", id="1")]
    [row] = find_disagreements(examples, [scored("Correct", id="0"), scored("Correct", id="1")])
    assert (row.pair, row.sides_with) == (
        "first person Correct, second person Wrong, judge Correct",
        "first",
    )


@pytest.mark.parametrize(
    ("labels", "decided", "judge", "pair"),
    [
        ("CCW", "Correct", "Wrong", "2 people Correct, 1 Wrong, judge Wrong"),
        ("CCW", "Wrong", "Correct", "2 people Correct, 1 Wrong, decided Wrong, judge Correct"),
        ("CW", "Correct", "Correct", "1 person Correct, 1 Wrong, judge Correct"),
        ("CCC", "Correct", "Wrong", "people Correct, judge Wrong"),
        ("CCW", "Correct", "Correct", None),
    ],
)
def test_several_people(labels: str, decided: str, judge: str, pair: str | None) -> None:
    """One who differs from most is no disagreement of the judge with people; a tie is one."""
    words = {"C": "Correct", "W": "Wrong"}
    given = {f"p{number}": words[letter] for number, letter in enumerate(labels)}
    rows = find_disagreements([example(decided, annotator_labels=given)], [scored(judge)])
    assert [row.pair for row in rows] == ([] if pair is None else [pair])


def test_labels_of_people_are_columns_that_are_read_again(tmp_path: Path) -> None:
    examples = [
        example("Wrong", id="0", annotator_labels={"anna": "Wrong", "ben": "Wrong"}),
        example("Wrong", id="1", annotator_labels={"ben": "Wrong", "carla": "Correct"}),
    ]
    verdicts = [scored("Correct", 0.9, id="0", critique="So."), scored("Correct", 0.8, id="1")]
    write_disagreements(tmp_path, find_disagreements(examples, verdicts))
    again = [row for _, row in read_examples(tmp_path / FILE)]
    assert [row.annotator_labels for row in again] == [row.annotator_labels for row in examples]
    assert {(row.confidence, row.critique) for row in again} == {(None, None)}, "the judge's alone"


def test_the_table_holds_the_callers_columns_and_no_formula(tmp_path: Path) -> None:
    given = {"answerer": "ant", "note": "=HYPERLINK(0)", "label": "mine", "list": [1, "é"], "n": 2}
    examples = [
        example("Wrong", id="0", responses=("-1+1\n|x",), metadata=given),
        example("Wrong", id="1", metadata={"late": True}),
    ]
    verdicts = [scored("Correct", 0.75, id="0", critique="@fine"), scored("Correct", 0.7, id="1")]
    write_disagreements(tmp_path, find_disagreements(examples, verdicts))
    first, second = read(tmp_path)
    assert list(first) == [
        *("id", "question", "references", "response", "label", "judge_label", "judge_confidence"),
        *("judge_critique", "answerer", "note", "metadata.label", "list", "n", "late"),
    ]
    assert first["response"] == "~'-1+1\n|x"
    assert first["judge_critique"] == "~'@fine"
    assert first["note"] == "~'=HYPERLINK(0)"
    assert (first["metadata.label"], first["label"], first["judge_label"]) == (
        "mine",
        "Wrong",
        "Correct",
    )
    assert (first["list"], first["n"], float(first["judge_confidence"])) == ('[1, "é"]', "2", 0.75)
    assert (second["late"], second["note"]) == ("True", "")


def test_pairs_have_two_responses_and_pictures_are_not_pasted_into_cells(tmp_path: Path) -> None:
    row = pair("A", "1", task="truthful-pair", images=("data:image/png;base64,AAAA", "/x/y.png"))
    write_disagreements(tmp_path, find_disagreements([row], [scored("B", 0.8, "A")]))
    [cells] = read(tmp_path)
    assert (cells["response_a"], cells["response_b"]) == ("red", "blue")
    assert cells["images"] == "data:image/png;base64; /x/y.png"
