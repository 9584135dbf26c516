"""Changed verdicts by hand, and forms of a tiny judge that differ as they should."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

from experiments.findings import quantised_verdicts
from experiments.findings.quantised_verdicts import FORMS, MERGED, NF4, compare, form_judges, render
from judging import CustosError, LabelledExample, Verdict
from judging.judge.card import JudgeCard
from judging.models.adapters import add_adapter
from judging.models.backbones import load_backbone
from tests.train.made_up import examples


def verdicts(*probabilities: float) -> list[Verdict]:
    return [
        Verdict(
            status="scored",
            label="Correct" if p > 0.5 else "Wrong",
            probabilities={"Correct": p, "Wrong": 1 - p},
        )
        for p in probabilities
    ]


def labelled(*labels: str) -> list[LabelledExample]:
    return [
        LabelledExample(
            id=str(n), question=f"q{n}", references=("a",), responses=("a",), label=label
        )
        for n, label in enumerate(labels)
    ]


def test_changes_by_hand() -> None:
    given = {
        MERGED: verdicts(0.9, 0.8, 0.3, 0.6),
        NF4: verdicts(0.8, 0.4, 0.3, 0.7),
    }
    forms = compare(given, labelled("Correct", "Correct", "Wrong", "Wrong"))
    assert [forms[form]["accuracy"]["value"] for form in given] == [0.75, 0.5]
    assert forms[NF4]["changed"][MERGED]["value"] == 0.25
    assert forms[MERGED]["changed"][NF4]["value"] == 0.25
    assert forms[NF4]["changed"][NF4]["value"] == 0
    assert forms[NF4]["moved"][MERGED]["value"] == pytest.approx((0.1 + 0.4 + 0 + 0.1) / 4)
    assert all(0 <= forms[NF4]["changed"][MERGED][end] <= 1 for end in ("low", "high"))
    lines = render(forms).splitlines()
    assert len([line for line in lines if line.startswith("| ")]) >= 3


def test_without_bitsandbytes_it_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("judging.models.adapters.find_spec", lambda name: None)
    with pytest.raises(CustosError, match="bitsandbytes is not installed"):
        quantised_verdicts.main(["embedded-qs", "--data", "none.jsonl"])


@pytest.mark.skipif(find_spec("bitsandbytes") is None, reason="bitsandbytes is not installed")
def test_every_form_of_a_tiny_judge_grades(tiny_folder: str, tmp_path: Path) -> None:
    backbone = load_backbone(tiny_folder, dtype="float32", device="cpu")
    add_adapter(backbone.model, r=2, alpha=2).save_pretrained(str(tmp_path))
    card = JudgeCard.for_rubrics(backbone, {"hieval-qs": ("plain/all",)}, 1024)
    (tmp_path / "judge.json").write_text(card.model_dump_json(), encoding="utf-8")
    rows = examples(4)
    given = {form: list(load().grade(rows)) for form, load in form_judges(str(tmp_path)).items()}
    assert tuple(given) == FORMS
    forms = compare(given, rows)
    assert forms[NF4]["moved"][NF4]["value"] == 0 < forms[NF4]["moved"][MERGED]["value"] < 0.5
