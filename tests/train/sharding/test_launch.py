"""A launch in which processes share the model, from the command to the finished judge."""

import json
import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file

from judging.judge import Judge
from tests.conftest import Folders
from tests.forks import ROOT
from tests.gpu.steps import relative_error
from tests.tiny import Family
from tests.train.made_up import recipe_file
from tests.train.sharding.learners import FAMILIES, rows
from tests.train.sharding.test_fsdp2 import ADAPTER
from train import bradley_terry, hieval_stage1, hieval_stage2, truthful_judge

SCRIPTS: dict[str, tuple[Any, str]] = {
    "focal": (hieval_stage1, "hieval_stage1"),
    "joint": (hieval_stage2, "hieval_stage2"),
    "text": (truthful_judge, "truthful_judge"),
    "reward": (bradley_terry, "bradley_terry"),
}


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("kind", SCRIPTS)
def test_custos_train_shares_the_model(
    kind: str, family: Family, tiny_folders: Folders, tmp_path: Path
) -> None:
    check_launch("fsdp2", kind, family, tiny_folders, tmp_path)


@pytest.mark.slow
@pytest.mark.skipif(
    not (find_spec("deepspeed") and find_spec("ninja") and shutil.which("g++")),
    reason="DeepSpeed is not installed, or what it compiles with on a CPU",
)
@pytest.mark.parametrize("kind", ["focal", "reward"])
def test_custos_train_divides_moments(kind: str, tiny_folders: Folders, tmp_path: Path) -> None:
    check_launch("zero2", kind, "qwen3_vl", tiny_folders, tmp_path)


def check_launch(
    file: str, kind: str, family: Family, tiny_folders: Folders, tmp_path: Path
) -> None:
    """Compare the judge of two processes with that of one, which trains with the same recipe."""
    main, script = SCRIPTS[kind]
    recipe = _recipe(kind, script, tiny_folders(family), tmp_path)
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
    main.main(["--config", str(recipe), f"run.output={tmp_path / 'alone'}"])
    adapters = [
        {n: t for n, t in load_file(folder / "adapter_model.safetensors").items() if "lora_B" in n}
        for folder in (tmp_path / "shared", tmp_path / "alone")
    ]
    assert relative_error(*adapters) < ADAPTER
    Judge.load(str(tmp_path / "shared"), device="cpu")
    if kind != "reward":
        reports = [
            json.loads((folder / "report.json").read_text())
            for folder in (tmp_path / "shared", tmp_path / "alone")
        ]
        for name in ("accuracy", "nll"):
            of_both = [report["metrics"].get(name, {}).get("value") for report in reports]
            assert of_both[0] == pytest.approx(of_both[1], abs=1e-3)
        starts = [report["against_start"]["second"]["value"] for report in reports]
        assert starts[0] == pytest.approx(starts[1])


def _recipe(kind: str, script: str, backbone: str, folder: Path) -> Path:
    splits = {"train": 24, "val": 6, "cal": 18, "test": 12}
    if kind == "reward":
        del splits["cal"], splits["test"]
    parts = {
        split: rows(kind, folder, count, 100 * number)
        for number, (split, count) in enumerate(splits.items())
    }
    path = recipe_file(
        folder,
        backbone,
        parts,
        data={"allow_overlap": True},
        optim={"lr": 5e-3, "token_budget": 300, "max_steps": 3},
        run={"select": "last", "trackers": []},
    )
    header = f"# accelerate launch -m train.{script} --config tiny\n"
    path.write_text(header + path.read_text(encoding="utf-8"), encoding="utf-8")
    shutil.rmtree(folder / "run", ignore_errors=True)
    return path
