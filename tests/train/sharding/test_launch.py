"""A launch in which processes share the model, from the command to the finished judge."""

import json
import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from itertools import product
from pathlib import Path

import pytest
from safetensors.torch import load_file

from judging.judge import Judge
from tests.conftest import Folders
from tests.forks import ROOT
from tests.gpu.steps import relative_error
from tests.tiny import Family
from tests.train.made_up import recipe_file
from tests.train.sharding.learners import FAMILIES, METHODS, rows
from tests.train.sharding.test_fsdp2 import ADAPTER
from train.run import main

ZERO2 = (
    pytest.mark.slow,
    pytest.mark.skipif(
        not (find_spec("deepspeed") and find_spec("ninja") and shutil.which("g++")),
        reason="DeepSpeed is not installed, or what it compiles with on a CPU",
    ),
)


@pytest.mark.parametrize(
    ("file", "kind", "family"),
    [
        *(
            pytest.param("fsdp2", kind, family, marks=pytest.mark.slow)
            for kind, family in product(METHODS, FAMILIES)
        ),
        *(pytest.param("zero2", kind, "qwen3_vl", marks=ZERO2) for kind in ("focal", "reward")),
    ],
)
def test_custos_train_leaves_the_judge_of_one_process(
    file: str, kind: str, family: Family, tiny_folders: Folders, tmp_path: Path
) -> None:
    """Two processes share the model or divide moments, and train with the same recipe."""
    recipe = _recipe(kind, tiny_folders(family), tmp_path)
    cli = (sys.executable, "-c", "from cli.main import app; app()")
    launch = ("--config-file", file, "--processes", "2", "--out", str(tmp_path / "shared"))
    done = subprocess.run(
        [*cli, "train", str(recipe), *launch],
        env=os.environ
        | {"GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1"}
        | {"PYTHONPATH": f"{ROOT}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    log = tmp_path / "shared" / "launch.log"
    assert done.returncode == 0, done.stderr + (log.read_text()[-5000:] if log.exists() else "")
    main(["--config", str(recipe), f"run.output={tmp_path / 'alone'}"])
    adapters = [
        {n: t for n, t in load_file(folder / "adapter_model.safetensors").items() if "lora_B" in n}
        for folder in (tmp_path / "shared", tmp_path / "alone")
    ]
    assert relative_error(*adapters) < ADAPTER
    Judge.load(str(tmp_path / "shared"), device="cpu")
    if kind in ("focal", "joint"):  # one token of a critique may turn by rounding
        reports = [
            json.loads((folder / "report.json").read_text())
            for folder in (tmp_path / "shared", tmp_path / "alone")
        ]
        for name in ("accuracy", "nll"):
            of_both = [report["metrics"].get(name, {}).get("value") for report in reports]
            assert of_both[0] == pytest.approx(of_both[1], abs=1e-3)
        starts = [report["against_start"]["second"]["value"] for report in reports]
        assert starts[0] == pytest.approx(starts[1])


def _recipe(kind: str, backbone: str, folder: Path) -> Path:
    splits = {"train": 24, "val": 6, "cal": 18, "test": 12}
    if kind == "reward":
        del splits["cal"], splits["test"]
    parts = {
        split: rows(kind, folder, count, 100 * number)
        for number, (split, count) in enumerate(splits.items())
    }
    return recipe_file(
        folder,
        backbone,
        parts,
        method=METHODS[kind].name,
        data={"allow_overlap": True},
        optim={"lr": 5e-3, "token_budget": 300, "max_steps": 3},
        run={"select": "last", "trackers": []},
    )
