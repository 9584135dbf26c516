from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
import yaml

from data_prep.tables import source
from evaluation.report.evaluate import grade_examples
from judging.judge import Judge
from judging.types import LabelledExample, Verdict
from tests.train.made_up import examples, write_recipe
from train import hieval_stage1
from train.finish import grading as kept_grades
from train.finish import report

REPOSITORY = Path(__file__).parents[2]


@pytest.mark.usefixtures("forking_python")
def test_the_script_leaves_a_judge_that_loads(small: str, tmp_path: Path) -> None:
    recipe = write_recipe(tmp_path, small)
    command = [
        *(sys.executable, "-m", "accelerate.commands.launch", "--cpu", "--num_processes", "1"),
        *("train/hieval_stage1.py", "--config", str(recipe), "optim.lr=1e-2"),
    ]
    done = subprocess.run(
        command,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    run = tmp_path / "run"
    for name in (
        "adapter_model.safetensors",
        "adapter_config.json",
        "judge.json",
        "recipe.yaml",
        "calibration.json",
        "report.json",
        "README.md",
    ):
        assert (run / name).is_file(), name
        assert (run / name).stat().st_mode & 0o044 == 0o044, name  # a service is another user
    assert not list(run.glob(".*partial*"))

    resolved = yaml.safe_load((run / "recipe.yaml").read_text(encoding="utf-8"))
    assert resolved["optim"]["lr"] == 1e-2
    assert resolved["provenance"]["packages"].keys() >= {"torch", "transformers", "peft"}
    assert resolved["provenance"]["arithmetic"] == "float32"
    hashes = resolved["provenance"]["sha256"]
    assert {Path(path).stem for path in hashes} == {"train", "val", "cal", "test"}
    assert all(len(digest) == 64 for digest in hashes.values())

    result = json.loads((run / "report.json").read_text(encoding="utf-8"))
    assert result["n"] == 9
    assert 0 <= result["metrics"]["accuracy"]["value"] <= 1
    card = (run / "README.md").read_text(encoding="utf-8")
    assert "Measured on 9 items" in card, "its questions are those of the training"
    assert "- overlap: of 9 test rows, 9 are rows of train too" in card
    assert f"test.jsonl ({hashes[str(tmp_path / 'test.jsonl')][:12]}) | 9 | 4 |" in card
    assert "Wrong 16, Correct 8 |" in card
    assert "Labels with fewer than 20 training rows: Wrong 16, Correct 8." in card
    assert (run / "question_hashes.bin").stat().st_size == 4 * 8
    assert "hieval-qs (plain/any)" in card

    judge = Judge.load(str(run), device="cpu")
    assert judge.calibration is not None
    verdicts = list(judge.grade(row.request() for row in examples(9, 300)))
    assert [verdict.status for verdict in verdicts] == ["scored"] * 9
    assert verdicts[0].probabilities != verdicts[0].passes[0].posterior, "calibration applies"


def test_rows_of_the_hub(small: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [row.model_dump(include=row.model_fields_set) for row in examples(24)]
    monkeypatch.setattr(source, "hub_rows", lambda *_: enumerate(rows, 1))
    recipe = write_recipe(tmp_path, small)
    splits = ["data.train=lab/rivers", "data.cal=null", "data.test=null"]
    hieval_stage1.main(["--config", str(recipe), *splits, "optim.max_steps=1"])
    run = tmp_path / "run"
    assert "| train | lab/rivers | 24 |" in (run / "README.md").read_text(encoding="utf-8")
    resolved = yaml.safe_load((run / "recipe.yaml").read_text(encoding="utf-8"))
    assert [Path(path).name for path in resolved["provenance"]["sha256"]] == ["val.jsonl"]


def test_a_run_that_is_stopped_while_it_grades_goes_on(
    small: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nine test rows in windows of four; the second window is never finished the first time."""
    recipe = write_recipe(tmp_path, small)
    monkeypatch.setattr(kept_grades, "WINDOW", 4)
    sizes: list[int] = []
    stopped_at: int | None = 2

    def count(judge: Judge, rows: Sequence[LabelledExample], **options: bool) -> list[Verdict]:
        sizes.append(len(rows))
        if len(sizes) == stopped_at:
            raise ConnectionError("the machine is gone")
        return grade_examples(judge, rows, **options)

    monkeypatch.setattr(report, "grade_examples", count)
    with pytest.raises(SystemExit):
        hieval_stage1.main(["--config", str(recipe)])
    assert sizes == [4, 4]
    sizes.clear()
    stopped_at = None
    hieval_stage1.main(["--config", str(recipe)])
    assert sizes == [4, 1]
    run = tmp_path / "run"
    result = json.loads((run / "report.json").read_text(encoding="utf-8"))
    assert (result["n"], result["seconds"]) == (9, None)
    assert not (run / "graded").exists()
