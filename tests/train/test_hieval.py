"""Both stages of HiEval, from the launch to the judge, on one process and on two."""

import json
import os
import subprocess
import sys
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import pytest
import torch
import yaml
from safetensors.torch import load_file

from data_prep.tables import source
from judging.errors import CustosError
from judging.files.records import write_json
from judging.judge import Judge
from judging.judge.card import CARD_FILE, JudgeCard
from judging.models.adapters import add_adapter
from judging.models.backbones import load_backbone
from tests.forks import run_together
from tests.train.made_up import analysed, examples, recipe_file, write_recipe, write_split
from train import hieval_stage1, hieval_stage2
from train.launch.run_plan import plan_run
from train.methods.joint import JointRecipe
from train.setup.recipe import parse_recipe
from train.setup.starting_adapter import with_adapter

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
        *("adapter_model.safetensors", "adapter_config.json", "judge.json", "recipe.yaml"),
        *("calibration.json", "report.json", "README.md"),
    ):
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


def _write_recipe_of_stage2(folder: Path, backbone: str) -> Path:
    adapted = add_adapter(load_backbone(backbone, dtype="float32").model, r=4, alpha=8)
    adapted.save_pretrained(str(folder / "stage1"))
    splits = {"train": (18, 0), "val": (6, 100), "cal": (12, 200), "test": (12, 300)}
    return recipe_file(
        folder,
        backbone,
        {name: analysed(folder, *part) for name, part in splits.items()},
        replay={
            "train": [write_split(folder / "qs.jsonl", examples(30))],
            "val": write_split(folder / "qs_val.jsonl", examples(6, 900)),
        },
        adapter={"init": str(folder / "stage1")},
        optim={"lr": 5e-3, "batch_size": 6, "token_budget": 300},
        run={"save_every": 2},
    )


def test_two_processes_train_the_judge_that_one_does(small: str, tmp_path: Path) -> None:
    recipe = _write_recipe_of_stage2(tmp_path, small)
    two = tmp_path / "two"
    hieval_stage2.main(["--config", str(recipe)])
    run_together(2, hieval_stage2.main, ["--config", str(recipe), f"run.output={two}"])
    run = tmp_path / "run"
    expected, parameters = (
        load_file(p / "checkpoint-000006/adapter.safetensors") for p in (run, two)
    )
    start = load_file(tmp_path / "stage1" / "adapter_model.safetensors")
    torch.testing.assert_close(parameters, expected, rtol=1e-3, atol=1e-5)
    moved = {name.removeprefix("backbone."): p for name, p in expected.items()}
    assert any(not torch.equal(p, start[name.replace(".default", "")]) for name, p in moved.items())

    history, of_two = (
        json.loads((folder / "history.json").read_text(encoding="utf-8")) for folder in (run, two)
    )
    # New and replayed rows are micro-batches of their own; the loss told is that of all of them.
    losses = [[e["train_loss"] for e in h if "train_loss" in e] for h in (history, of_two)]
    assert losses[0] == pytest.approx(losses[1], rel=1e-4)
    assert all("stage1_accuracy" in entry for entry in history if "val_nll" in entry)
    card = (run / "README.md").read_text(encoding="utf-8")
    assert f"| stage1 | 6 | {history[0]['stage1_accuracy']:.3f} [" in card
    resolved = yaml.safe_load((run / "recipe.yaml").read_text(encoding="utf-8"))
    read = {Path(path).stem for path in resolved["provenance"]["sha256"]}
    assert read >= {"train", "val", "cal", "test", "qs", "qs_val", "adapter_model"}
    report = json.loads((run / "report.json").read_text(encoding="utf-8"))
    assert {"score_accuracy", "type_accuracy"} <= report["metrics"].keys()

    judge = Judge.load(str(run), device="cpu")
    assert judge.tasks == ("hieval-ea", "hieval-qs")
    assert judge.calibration is not None
    assert judge.calibration.error_types.keys() == {"hieval-ea/plain/any"}
    requests = [row.request() for row in [*analysed(tmp_path, 6, 300), *examples(3, 300)]]
    verdicts = list(judge.grade(requests))
    assert [verdict.status for verdict in verdicts] == ["scored"] * 9
    assert len(verdicts[0].probabilities) == 6
    assert len(verdicts[-1].probabilities) == 2


def test_the_plan_counts_the_steps_of_mixed_rows(small: str, tmp_path: Path) -> None:
    """18 new and 18 replayed rows are five steps of at most eight, not three and three."""
    path = _write_recipe_of_stage2(tmp_path, small)
    keys = ["method=joint", "optim.batch_size=8", "optim.epochs=2"]
    assert plan_run(str(path), keys, gpus=0, memory=8.0, rate=None).steps == 10
    keys.append("replay.rho=0")
    assert plan_run(str(path), keys, gpus=0, memory=8.0, rate=None).steps == 6


@pytest.mark.parametrize(
    ("trained_on", "here", "refusal"),
    [
        ("embedded@1", "embedded@2", None),  # another vision tower
        ("a1", "a1", None),
        ("a1", "a2", r"stage1: trained on version a1, .* than version a2"),
    ],
)
def test_an_adapter_starts_on_the_text_weights_that_it_was_trained_on(
    small: str, tmp_path: Path, trained_on: str, here: str, refusal: str | None
) -> None:
    path = _write_recipe_of_stage2(tmp_path, small)
    card = JudgeCard(backbone=trained_on, backbone_version=trained_on, tasks={}, instructions={})
    write_json(tmp_path / "stage1" / CARD_FILE, card.model_dump(mode="json"))
    backbone = replace(load_backbone(small, dtype="float32"), version=here)
    with pytest.raises(CustosError, match=refusal) if refusal else nullcontext():
        with_adapter(backbone, parse_recipe(JointRecipe, path))
