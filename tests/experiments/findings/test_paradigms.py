"""Four paradigms on one set of pairs: what is asked, how scores order pairs, what is resumed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from evaluation.estimate import without_nan
from evaluation.pairs.paradigms import PARADIGMS
from experiments.findings import paradigms
from experiments.findings.paradigm_tables import PUBLISHED_PARADIGMS, render_paradigms
from judging.errors import CustosError
from judging.judge import Judge
from judging.tasks.truthful import TruthfulPureLabel
from judging.types import LabelledExample, Verdict
from tests.conftest import Folders


def _pair(number: int) -> LabelledExample:
    return LabelledExample(
        id=str(number),
        task="truthful-pair",
        question=f"Which river is number {number}?",
        references=("green",) if number % 2 else (),
        responses=("green", "brown"),
        label=("A", "B", "None")[number % 3],
        metadata={"evidence": "reference" if number % 2 else "description"},
    )


@pytest.fixture(scope="module")
def folder(tiny_folders: Folders) -> str:
    return tiny_folders("qwen2_5_vl")


@pytest.fixture(scope="module")
def judge(folder: str) -> Judge:
    return Judge.load(folder, dtype="float32", device="cpu")


@pytest.mark.parametrize("name", PARADIGMS)
def test_a_pair_is_judged_as_its_responses_are(judge: Judge, name: str) -> None:
    paradigm = PARADIGMS[name]
    examples = [_pair(i).model_copy(update={"critique_tokens": 4}) for i in range(3)]
    verdicts = paradigms.judge_pairs(judge, examples, paradigm)
    assert [v.id for v in verdicts] == ["0", "1", "2"]
    for example, verdict in zip(examples, verdicts, strict=True):
        changed = {"task": paradigm.task, "mode": paradigm.mode}
        request = example.request().model_copy(update=changed)
        assert sum(verdict.probabilities.values()) == pytest.approx(1)
        if paradigm.order is None:
            [alone] = judge.grade([request])
            assert alone.probabilities == pytest.approx(verdict.probabilities, abs=1e-5)
            continue
        both = judge.grade(
            [request.model_copy(update={"responses": (r,)}) for r in example.responses],
        )
        first, second = (one.score for one in both)
        assert first is not None and second is not None
        assert verdict.label == ("A" if first > second else "B")


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """How many requests were graded, call by call."""
    calls: list[int] = []
    grade = Judge.grade

    def counting(self: Judge, requests: Any, **options: Any) -> Any:
        calls.append(len(requests))
        return grade(self, requests, **options)

    monkeypatch.setattr(Judge, "grade", counting)
    yield calls


def test_the_command_resumes_cell_by_cell(
    tmp_path: Path, folder: str, counted: list[int], capsys: pytest.CaptureFixture[str]
) -> None:
    data, out = tmp_path / "test.jsonl", tmp_path / "out"
    data.write_text("\n".join(_pair(i).model_dump_json() for i in range(6)), encoding="utf-8")
    command = ["--data", str(data), "--out", str(out), "--original", folder, "--pairs", "6"]
    command += ["--sampled-pairs", "2", "--critique-tokens", "3"]
    command += ["--judge", f"pure-label={folder}"]
    paradigms.main(command)
    # The trained one; two single-response paradigms, two of both at once with five samples each.
    assert counted == [6, 10, 12, 12, 6, 10, 6, 10]
    first = json.loads((out / "paradigms.json").read_text(encoding="utf-8"))
    cell = first["cells"]["critique-label"]["original"]
    assert cell["order"]["flip_rate"]["n"] == 6
    assert cell["self_consistency"]["n"] == 2
    assert {kind: found["n"] for kind, found in cell["by_evidence"].items()} == {
        "description": 3,
        "reference": 3,
    }
    assert "trained" in first["cells"]["pure-label"]
    counted.clear()
    paradigms.main(command)
    assert counted == []
    again = json.loads((out / "paradigms.json").read_text(encoding="utf-8"))
    assert again == first
    (out / "pure-label" / "trained" / "cell.json").unlink()
    paradigms.main(command)
    assert counted == [6]
    counted.clear()
    paradigms.main([*command, "--critique-tokens", "2", "--pairs", "5"])
    assert len(counted) == 8
    shown = capsys.readouterr().out
    for figure in ("0.721", "0.558", "0.575", "0.884", "TruthfulJudge, published"):
        assert figure in shown


def test_a_cell_is_of_its_instructions_and_pictures(
    folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    picture = tmp_path / "river.png"
    picture.write_bytes(b"green")
    pairs = [_pair(i).model_copy(update={"images": (str(picture),)}) for i in range(2)]

    def key() -> str:
        return paradigms.cell_key(Judge.load(folder), pairs, PARADIGMS["pure-label"], tokens=3)

    before = key()
    assert key() == before
    picture.write_bytes(b"brown")
    repainted = key()
    assert repainted != before
    monkeypatch.setattr(TruthfulPureLabel, "instruction", lambda self, rubric: "Which is better?")
    assert key() not in (before, repainted)


def test_a_cell_that_was_cut_off_is_not_taken_for_done(
    judge: Judge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pairs, paradigm = [_pair(0), _pair(1)], PARADIGMS["pure-label"]
    paradigms.measure_cell(judge, pairs, paradigm, tmp_path, 3)

    def killed(*given: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(paradigms, "save_evaluation", killed)
    with pytest.raises(KeyboardInterrupt):
        paradigms.measure_cell(judge, pairs[:1], paradigm, tmp_path, 3)
    assert not (tmp_path / "cell.json").exists()


@pytest.mark.parametrize("name", ["pure-label", "bradley-terry"])
def test_a_cell_that_was_cut_off_goes_on(
    judge: Judge, name: str, tmp_path: Path, counted: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    pairs, paradigm = [_pair(i) for i in range(5)], PARADIGMS[name]
    monkeypatch.setattr(paradigms, "PAIRS_AT_ONCE", 2)
    whole = paradigms.measure_cell(judge, pairs, paradigm, tmp_path / "whole", 3)
    judge_pairs = paradigms.judge_pairs

    def killed_in_the_third_block(judge: Judge, block: Any, *more: Any) -> list[Verdict]:
        if len(block) == 1:
            raise KeyboardInterrupt
        return judge_pairs(judge, block, *more)

    monkeypatch.setattr(paradigms, "judge_pairs", killed_in_the_third_block)
    with pytest.raises(KeyboardInterrupt):
        paradigms.measure_cell(judge, pairs, paradigm, tmp_path / "cut", 3)
    monkeypatch.setattr(paradigms, "judge_pairs", judge_pairs)
    counted.clear()
    resumed = paradigms.measure_cell(judge, pairs, paradigm, tmp_path / "cut", 3)
    assert counted == [1 if name == "pure-label" else 2]
    assert sorted(path.name for path in (tmp_path / "cut").iterdir()) == sorted(
        path.name for path in (tmp_path / "whole").iterdir()
    )
    for measured in (whole, resumed):
        assert measured.pop("seconds_per_pair") > 0
    assert without_nan(resumed) == without_nan(whole)


def test_published_figures_are_the_papers() -> None:
    best = max(PUBLISHED_PARADIGMS, key=lambda name: PUBLISHED_PARADIGMS[name][1])
    assert best == "critique-label"
    assert list(PUBLISHED_PARADIGMS) == list(PARADIGMS)


def test_a_published_calibration_error_is_beside_those_of_stated_confidence() -> None:
    cells = {"critique-label": {"trained": _cell(0.5)}}
    shown = render_paradigms({"n": 1, "critique_tokens": 1, "cells": cells})
    header, row = (
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in shown.splitlines()
        if line.startswith(("| judge | accuracy |", "| TruthfulJudge, published |"))
    )
    published = dict(zip(header, row, strict=True))
    assert published["ECE"] == published["ECE, stated"] == "-"
    assert float(published["ECE, stated, bins of equal width"]) == 0.11


def test_orders_are_compared_only_where_there_are_two() -> None:
    assert "no order to compare" in render_paradigms(
        {"n": 1, "critique_tokens": 1, "cells": {"pure-label": {"original": _cell(0.5)}}}
    )
    cells = {
        "bradley-terry": {"trained": _cell(0.9)},
        "critique-label": {"trained": _cell(0.8)},
    }
    shown = render_paradigms({"n": 1, "critique_tokens": 1, "cells": cells})
    assert "bradley-terry, critique-label; published: critique-label, bradley-terry; not" in shown


def _cell(value: float) -> dict[str, Any]:
    names = ("counted", "excluded", "half")
    found = {"value": value, "low": value, "high": value, "n": 3}
    return {
        **{f"accuracy_ties_{name}": found for name in names},
        **dict.fromkeys(("kappa", "fpr_ours", "ece_model"), found),
        **dict.fromkeys(("ece_stated", "ece_stated_equal_width"), found),
        "seconds_per_pair": 0.1,
        "by_evidence": {},
    }


def test_a_judge_needs_a_paradigm(tmp_path: Path) -> None:
    with pytest.raises(CustosError, match="--judge 'best=runs/x': expected one of bradley-terry"):
        paradigms.trained_judges(["best=runs/x"])
    with pytest.raises(CustosError, match="--judge 'x': expected"):
        paradigms.main(["--data", "no.jsonl", "--out", str(tmp_path), "--judge", "x"])
