"""The page of a report, and its plots."""

from __future__ import annotations

import base64
import hashlib
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from evaluation.report.disagreements import find_disagreements
from evaluation.report.page import render_page, write_page
from evaluation.report.plots import (
    draw_learning_curve,
    draw_ranking,
    draw_risk_coverage,
)
from evaluation.report.report import build_report
from judging.types import LabelledExample, Verdict
from tests.evaluation.made_up import evaluation, example, scored, unscored

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
    page = page_of(*evaluation())
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
    plain, other = page_of(*evaluation()), page_of([hostile, example(id="2")], [verdict, failed])
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
