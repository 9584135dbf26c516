"""The ablation on a tiny backbone, resumed; its table from made-up figures."""

from __future__ import annotations

import json
import subprocess
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from scipy import stats

from experiments.findings import ablation
from experiments.findings.ablation import (
    CELLS,
    COLUMNS,
    FULL,
    Cell,
    measure_cell,
    render,
    run_cells,
)
from judging.errors import CustosError
from judging.files.records import read_records
from judging.judge import Judge
from judging.types import LabelledExample
from tests.train.made_up import analysed, examples, write_split


def _results(**shifts: float) -> dict[str, list[dict[str, Any]]]:
    """Three seeds, each cell shifted from its full one by so much, never exactly."""
    return {
        cell.name: [
            {
                "seed": seed,
                "n": 100 * cell.stage,
                "seconds": 60.0,
                "quick score": base + shifts.get(cell.name, 0) + wobble,
                "S-Acc": None if cell.stage == 1 else base + shifts.get(cell.name, 0) + wobble,
                "A-Acc": None if cell.stage == 1 else base,
            }
            for seed, (base, wobble) in enumerate([(0.8, 0.0), (0.7, 0.01), (0.9, -0.01)])
        ]
        for cell in CELLS
    }


def _line(page: str, *starts: str) -> str:
    [line] = [line for line in page.splitlines() if line.startswith("| " + " | ".join(starts))]
    return line


def test_directions_are_paired_by_seed() -> None:
    page = render(
        _results(**{"no replay": -0.2, "no unlikelihood": 0.2, "all negatives": 0.1}), "x"
    )
    assert _line(page, "no replay", "S-Acc").endswith("| -0.386 | as published |")
    assert _line(page, "no unlikelihood", "S-Acc").endswith("| -0.028 | against the published |")
    assert _line(page, "all negatives", "S-Acc").endswith("| - | better |")
    assert _line(page, "hardest negatives", "S-Acc").endswith("| - | within noise |")
    assert _line(page, "no focal loss", "quick score").endswith("| -0.013 | within noise |")
    assert "measured on the same 100 items" in " ".join(page.split())
    assert "24 minutes" in page


def test_intervals_are_students() -> None:
    values = [0.8, 0.71, 0.89]
    low, high = stats.t.interval(0.95, 2, loc=0.8, scale=stats.sem(values))
    assert f"| 0.800 ± 0.090 [{low:.3f}, {high:.3f}] |" in _line(
        render(_results(), "x"), "HiEval-QS"
    )


def test_every_stage_has_one_full_cell() -> None:
    assert {stage: cell.name for stage, cell in FULL.items()} == {1: "HiEval-QS", 2: "HiEval-EA"}
    assert all(len(cell.published) == len(COLUMNS) for cell in CELLS)


def _recipes(folder: Path, backbone: str) -> list[str]:
    """The two recipes and their data, tiny; the arguments that use them."""
    qs = write_split(folder / "qs.jsonl", examples(16))
    qs_test = write_split(folder / "qs_test.jsonl", examples(6, 300))
    ea = write_split(folder / "ea.jsonl", analysed(folder, 12))
    ea_test = write_split(folder / "ea_test.jsonl", analysed(folder, 12, 300))
    common: dict[str, Any] = {
        "backbone": backbone,
        "optim": {"lr": 5e-3, "batch_size": 8, "token_budget": 800},
        "run": {"output": "replaced", "precision": "fp32"},
    }
    stages = {
        "ablation_qs.yaml": {
            "data": {"train": [qs], "val": qs, "allow_overlap": True},
            "adapter": {"r": 4, "alpha": 8, "dropout": 0.0},
        },
        "ablation_ea.yaml": {
            "data": {"train": [ea], "val": ea, "allow_overlap": True},
            "adapter": {"dropout": 0.0},
            "replay": {"train": [qs]},
        },
    }
    for name, own in stages.items():
        (folder / name).write_text(yaml.safe_dump(common | own), encoding="utf-8")
    return ["--recipes", str(folder), "--qs-test", qs_test, "--ea-test", ea_test, "--seeds", "1"]


@pytest.mark.usefixtures("forking_python")
def test_a_cell_is_trained_once_and_keeps_what_it_measured(
    small: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    cells = tuple(cell for cell in CELLS if cell.name in ("HiEval-QS", "HiEval-EA"))
    monkeypatch.setattr(ablation, "CELLS", cells)
    out = tmp_path / "out"
    arguments = [*_recipes(tmp_path, small), "--out", str(out)]
    ablation.main(arguments)
    found = json.loads((out / "ablation.json").read_text(encoding="utf-8"))["cells"]
    [quick], [full] = found["HiEval-QS"], found["HiEval-EA"]
    assert quick["n"] == 6 and quick["S-Acc"] is None
    assert full["n"] == 12 and 0 <= full["A-Acc"] <= 1
    # After either stage the quick score is of the same rows, replayed task or not.
    tests = {
        stage: [row for _, row in read_records(tmp_path / name, LabelledExample)]
        for stage, name in ((1, "qs_test.jsonl"), (2, "ea_test.jsonl"))
    }
    judge = Judge.load(str(out / "HiEval-EA" / "0"))
    said = [verdict.label for verdict in judge.grade([row.request() for row in tests[1]])]
    right = sum(label == row.label for label, row in zip(said, tests[1], strict=True))
    assert full["quick score"] == pytest.approx(right / 6)
    forgetful = out / "HiEval-EA" / "0" / "judge.json"
    described = json.loads(forgetful.read_text(encoding="utf-8"))
    del described["tasks"]["hieval-qs"]
    forgetful.write_text(json.dumps(described), encoding="utf-8")
    assert measure_cell(forgetful.parent, tests, 2)["quick score"] == full["quick score"]
    # Stage 2 began where stage 1 of its seed ended.
    card = (out / "HiEval-EA" / "0" / "recipe.yaml").read_text(encoding="utf-8")
    assert yaml.safe_load(card)["adapter"]["init"] == str(out / "HiEval-QS" / "0")

    def never(*arguments: Any, **options: Any) -> None:
        raise AssertionError("nothing is to be trained again")

    page = (out / "ablation.md").read_text(encoding="utf-8")
    monkeypatch.setattr(subprocess, "run", never)
    ablation.main(arguments)
    assert (out / "ablation.md").read_text(encoding="utf-8") == page
    # Nothing measured on other rows is passed off as this.
    with pytest.raises(CustosError, match=f"{out / 'HiEval-QS' / '0'}: measured with another"):
        ablation.main([*arguments, "--limit", "5"])
    recipe = tmp_path / "ablation_ea.yaml"
    recipe.write_text(recipe.read_text(encoding="utf-8") + "\nloss: {unlikelihood: 0.7}\n")
    with pytest.raises(CustosError, match=f"{out / 'HiEval-EA' / '0'}: measured with another"):
        ablation.main(arguments)


def test_cells_at_once_wait_for_the_first_stage_of_their_seed() -> None:
    log: list[tuple[str, str, int]] = []

    def run(cell: Cell, seed: int) -> dict[str, Any]:
        log.append(("began", cell.name, seed))
        time.sleep(0.01)
        log.append(("ended", cell.name, seed))
        return {"seed": seed, "cell": cell.name}

    results = run_cells(run, seeds=3, jobs=4)
    assert results == {
        cell.name: [{"seed": seed, "cell": cell.name} for seed in range(3)] for cell in CELLS
    }
    assert len(log) == 2 * 3 * len(CELLS)  # each once
    for seed in range(3):
        first = log.index(("ended", FULL[1].name, seed))
        others = [cell.name for cell in CELLS if cell is not FULL[1]]
        assert all(log.index(("began", name, seed)) > first for name in others)
    running = np.cumsum([1 if what == "began" else -1 for what, *_ in log])
    assert running.max() == 4


def test_a_failed_cell_stops_those_not_begun() -> None:
    begun: list[tuple[str, int]] = []

    def run(cell: Cell, seed: int) -> dict[str, Any]:
        begun.append((cell.name, seed))
        time.sleep(0.01)
        if cell is not FULL[1]:
            raise CustosError("training failed")
        return {}

    with pytest.raises(CustosError, match="training failed"):
        run_cells(run, seeds=3, jobs=1)
    assert len(begun) < 3 + 4


def test_a_failed_cell_names_its_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(command: list[str], **options: Any) -> subprocess.CompletedProcess[str]:
        return subprocess.CompletedProcess(command, 2)

    monkeypatch.setattr(subprocess, "run", fails)
    log = tmp_path / "out" / "HiEval-QS" / "0" / "log.txt"
    with pytest.raises(CustosError, match=f"HiEval-QS, seed 0: training failed, see {log}"):
        ablation.main([*_recipes(tmp_path, "unused"), "--out", str(tmp_path / "out")])
