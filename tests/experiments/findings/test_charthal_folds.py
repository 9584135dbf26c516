"""Findings on made-up sets: five folds, quantised forms, coverage of intervals."""

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score

from benchmarks.charthal import CELLS
from evaluation.correction.scores import ppi_plus_plus
from experiments.findings import interval_coverage as coverage_simulation
from experiments.findings.charthal_folds import build_report, deal, kappa_within, load_graded, main
from experiments.findings.interval_coverage import (
    ITEMS,
    Setting,
    draw,
    draw_grouped,
    settings,
    simulate,
    summarise,
)
from experiments.findings.quantised_verdicts import MERGED, NF4, compare, render
from experiments.findings.question_coverage import simulate_questions
from judging import CustosError, LabelledExample, Verdict
from judging.judge import Judge
from tests.serve.made_up import FakeJudge


def made_up(folder: Path, figures: int = 20) -> Path:
    """Every figure has all twelve cells; a response that says "absent" is right."""
    rng = np.random.default_rng(0)
    rows = {}
    for figure in range(figures):
        for cell in CELLS:
            kind, relation = cell.split("_")
            good = bool(rng.random() < (0.8 if relation == "normal" else 0.2))
            rows[f"{figure}_{cell}"] = {
                "figure_id": figure,
                "q_type": kind,
                "q_relation": relation,
                "question": f"What is value {figure}?",
                "ref_answer": "Not there.",
                "response": "It is absent." if good else "It is 12.",
                "score": int(good),
            }
    rows["0_ungraded"] = {**rows["0_desc_irrel"], "score": -1}
    path = folder / "eval.json"
    path.write_text(json.dumps(rows))
    return path


class Reader(FakeJudge):
    """Reads the made-up rule."""

    def __init__(self) -> None:
        super().__init__(tasks=("charthal",))

    def verdict_on(self, request: Any, confidence: float) -> Verdict:
        label = "1" if "absent" in request.response else "0"
        return Verdict(id=request.id, status="scored", label=label, judge="reader")


def test_a_figure_is_in_one_fold_and_folds_are_alike(tmp_path: Path) -> None:
    examples = load_graded(made_up(tmp_path))
    assert len(examples) == 20 * 12
    fold_of = deal(examples, 5, seed=1)
    figures: dict[str, set[int]] = {}
    for example, fold in zip(examples, fold_of, strict=True):
        figures.setdefault(example.group, set()).add(fold)
    assert all(len(folds) == 1 for folds in figures.values())
    assert np.bincount(fold_of).tolist() == [48] * 5
    assert deal(examples, 5, seed=1) == fold_of


def test_every_item_is_judged_by_one_that_never_saw_its_figure(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    seen = []

    def train(folder: Path, overrides: Sequence[str]) -> Judge:
        files = {}
        for name in ("train", "val"):
            rows = [json.loads(line) for line in (folder / f"{name}.jsonl").open()]
            files[name] = {row["group"] for row in rows}
        assert not files["train"] & files["val"]
        seen.append(files["train"] | files["val"])
        assert overrides == ["optim.epochs=1"]
        return Reader()

    path, out = made_up(tmp_path), tmp_path / "out"
    command = ["--graded", str(path), "--out", str(out), "optim.epochs=1"]
    main(command, train)
    examples = load_graded(path)
    for fold in range(5):
        lines = (out / f"fold-{fold + 1}" / "verdicts.jsonl").open()
        ids = {json.loads(line)["id"] for line in lines}
        held_out = {example.group for example in examples if example.id in ids}
        assert seen[fold] == {str(figure) for figure in range(20)} - held_out
    report = json.loads((out / "report.json").read_text())
    assert (report["n"], report["figures"]) == (240, 20)
    assert report["judge"]["accuracy"]["value"] == report["kappa_within_cells"]["value"] == 1
    scores = [int(example.label) for example in examples]
    assert report["always_0"]["accuracy"]["value"] == pytest.approx(1 - np.mean(scores))
    normal = [example.metadata["cell"].endswith("normal") for example in examples]
    floor = np.mean([a == b for a, b in zip(scores, normal, strict=True)])
    assert report["majority_of_cell"]["accuracy"]["value"] == pytest.approx(floor)
    assert report["gain"]["value"] == pytest.approx(1 - floor)
    assert "The judge **beats** the majority of the cell" in capsys.readouterr().out

    seen.clear()
    main(command, train)
    assert seen == []  # nothing is trained twice


@pytest.mark.parametrize("change", ["seed", "items", "overrides", "unknown"])
def test_folds_of_another_run_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], change: str
) -> None:
    """With another deal, a fold's old judge has seen figures that are held out now."""
    trained = []

    def train(folder: Path, overrides: Sequence[str]) -> Judge:
        trained.append(folder)
        return Reader()

    path, out = made_up(tmp_path), tmp_path / "out"
    command = ["--graded", str(path), "--out", str(out)]
    main(command, train)
    trained.clear()
    if change == "seed":
        command += ["--seed", "1"]
    elif change == "items":  # the same ids, other responses
        path.write_text(path.read_text().replace("It is 12.", "It is 13."))
    elif change == "overrides":
        command += ["optim.epochs=3"]
    else:
        (out / "folds.json").unlink()
    with pytest.raises(CustosError, match=f"{out}: holds folds of other items"):
        main(command, train)
    assert trained == []


def test_an_item_without_a_label_is_wrong_in_accuracy_and_gain_alike(tmp_path: Path) -> None:
    examples = load_graded(made_up(tmp_path))
    verdicts = [Verdict(id=e.id, status="scored", label=e.label) for e in examples]
    num_lost = 12
    verdicts[:num_lost] = [
        Verdict(id=e.id, status="judge_error", message="gone") for e in examples[:num_lost]
    ]
    report = build_report(examples, verdicts)
    accuracy = report["judge"]["accuracy"]
    assert accuracy["value"] == pytest.approx(1 - num_lost / len(examples))
    assert accuracy["n"] == len(examples)
    floor = report["majority_of_cell"]["accuracy"]["value"]
    assert report["gain"]["value"] == pytest.approx(accuracy["value"] - floor)
    cells = report["cells"].values()
    assert sum(cell["accuracy"]["n"] for cell in cells) == len(examples)
    right = sum(cell["accuracy"]["value"] * cell["accuracy"]["n"] for cell in cells)
    assert right == pytest.approx(len(examples) - num_lost)


def test_kappa_within_one_cell_is_cohens() -> None:
    rng = np.random.default_rng(3)
    a, b = rng.integers(0, 2, 80), rng.integers(0, 2, 80)
    table = np.zeros((1, 2, 2))
    np.add.at(table[0], (a, b), 1)
    assert kappa_within(table) == pytest.approx(cohen_kappa_score(a, b), rel=1e-12)


def test_kappa_within_cells_by_hand() -> None:
    """Chance agrees on (6*7 + 4*3)/10 = 5.4 of 10, and on 10 of 10; seen: 8 and 10."""
    tables = np.array([[[5.5, 0.5], [1.5, 2.5]], [[0, 0], [0, 10]], [[0, 0], [0, 0]]])
    assert kappa_within(tables) == pytest.approx((18 - 15.4) / (20 - 15.4), rel=1e-12)


@pytest.mark.slow
def test_the_recipe_trains_a_fold(tiny_folders: Callable[[str], str], tmp_path: Path) -> None:
    overrides = [
        f"backbone={tiny_folders('qwen2_5_vl')}",
        *("adapter.init=null", "adapter.r=4", "optim.max_steps=2", "run.precision=fp32"),
    ]
    main(["--graded", str(made_up(tmp_path, 10)), "--out", str(tmp_path / "out"), *overrides])
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    assert report["n"] == 120
    assert set(report["cells"]) == set(CELLS)


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
    given = {MERGED: verdicts(0.9, 0.8, 0.3, 0.6), NF4: verdicts(0.8, 0.4, 0.3, 0.7)}
    forms = compare(given, labelled("Correct", "Correct", "Wrong", "Wrong"))
    assert [forms[form]["accuracy"]["value"] for form in given] == [0.75, 0.5]
    assert forms[NF4]["changed"][MERGED]["value"] == 0.25
    assert forms[MERGED]["changed"][NF4]["value"] == 0.25
    assert forms[NF4]["changed"][NF4]["value"] == 0
    assert forms[NF4]["moved"][MERGED]["value"] == pytest.approx((0.1 + 0.4 + 0 + 0.1) / 4)
    assert all(0 <= forms[NF4]["changed"][MERGED][end] <= 1 for end in ("low", "high"))
    lines = render(forms).splitlines()
    assert len([line for line in lines if line.startswith("| ")]) >= 3


@pytest.fixture(scope="module")
def rows() -> list[dict[str, Any]]:
    """Three rates of every setting with independent items, 300 benchmarks each."""
    rng = np.random.default_rng(11)
    chosen = [s for s in settings() if s.group_size == 1 and s.rate in (0.1, 0.5, 0.9)]
    return [simulate(setting, 300, rng) for setting in chosen]


def test_intervals_hold_the_truth_as_often_as_they_say(rows: list[dict[str, Any]]) -> None:
    summary = summarise(rows)
    for method in ("ppi", "labels_alone"):
        assert 0.93 <= summary[method]["coverage"] <= 0.97, method
    assert summary["raw"]["coverage"] < 0.5
    # 300 draws of a coverage of .93 fall below .88 once in a thousand settings.
    assert summary["ppi"]["lowest"] > 0.88


def test_ppi_is_never_wider_than_the_labels_and_narrower_with_a_good_judge(
    rows: list[dict[str, Any]],
) -> None:
    summary = summarise(rows)
    assert summary["widest_ppi_to_labels_alone"] <= 1.02
    assert summary["widest_at_accuracy_80_and_100_labels"] < 0.97


def test_groups_need_to_be_known() -> None:
    """Whole groups of ten labelled: as independent items they would be far too sure."""
    setting = Setting(0.9, "alike", 0.5, 500, "groups", group_size=10)
    cells = draw_grouped(setting, 300, np.random.default_rng(1))
    known = ppi_plus_plus(cells).rates
    ignored = ppi_plus_plus(replace(cells, starts=None)).rates
    assert np.mean((known.low <= 0.5) & (known.high >= 0.5)) > 0.91
    assert np.mean((ignored.low <= 0.5) & (ignored.high >= 0.5)) < 0.85


def test_drawn_benchmarks_are_what_the_setting_says() -> None:
    setting = Setting(0.8, "misses", 0.3, 200, "random")
    assert (setting.sensitivity, setting.specificity) == pytest.approx((0.7, 0.9))
    counts = draw(setting, 4000, np.random.default_rng(0)).counts
    assert (counts.sum(axis=1) == ITEMS).all()
    assert (counts[:, :4].sum(axis=1) == 200).all()
    zeros, alarms, misses, hits = counts[:, :4].mean(axis=0)
    assert hits / (hits + misses) == pytest.approx(0.7, abs=0.01)
    assert zeros / (zeros + alarms) == pytest.approx(0.9, abs=0.01)
    assert (hits + misses) / 200 == pytest.approx(0.3, abs=0.01)
    called = counts[:, [1, 3, 5]].sum(axis=1).mean() / ITEMS
    assert called == pytest.approx(0.3 * 0.7 + 0.7 * 0.1, abs=0.01)


def test_promises_on_questions_are_kept_now_and_were_not_before() -> None:
    rows = simulate_questions(60, 5, ("tests", "accuracies", "risk", "gate", "wordings"))
    rows += simulate_questions(60, 11, ("people",))
    by_promise: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        by_promise.setdefault(row["promise"], []).append(row)
    for promise, of_promise in by_promise.items():
        before, now = (np.mean([row[when] for row in of_promise]) for when in ("before", "now"))
        if of_promise[0]["wanted"] == ".95":
            assert now > 0.92 and now > before, promise
        else:
            assert now < 0.08 and now <= before, promise


def test_command_writes_every_setting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(coverage_simulation, "ACCURACIES", (0.8, 0.9))
    monkeypatch.setattr(coverage_simulation, "GROUPED_ACCURACIES", (0.9,))
    for name in "ab":
        options = ["--out", str(tmp_path / f"{name}.json"), "--benchmarks", "20", "--draws", "2"]
        coverage_simulation.main(options)
    first, second = (json.loads((tmp_path / f"{name}.json").read_text()) for name in "ab")
    assert len(first["settings"]) == 2 * 3 * 5 * 4 + 3 * 2 * 4
    assert first["benchmarks"] == 120 * 20 + 24 * 4
    assert first["settings"] == second["settings"]
    assert first["questions"] == second["questions"]
    assert "PPI++, grouped, whole groups" in capsys.readouterr().out
