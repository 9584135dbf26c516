"""The page on training: its plans run as they stand there, its two machines as processes here."""

import os
import re
import socket
import stat
import subprocess
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cli.main import app
from tests.docs.markdown_pages import DOCS, blocks, commands_of
from tests.docs.walkthroughs.shell import environment
from tests.train.made_up import write_recipe

PAGE = DOCS / "training.md"
PLANS = [words[1:] for words in commands_of(PAGE) if words[:2] == ["custos", "plan"]]
SCRIPTS = {block.title: block.text for block in blocks(PAGE) if block.title}
# What Slurm does on a cluster of two machines that are this one.
SRUN = '#!/bin/bash\n"$@" & first=$!\n"$@" && wait $first\n'
SCONTROL = "#!/bin/bash\nprintf '127.0.0.1\\n127.0.0.1\\n'\n"


@pytest.mark.slow  # half a minute each; tests/cli/training/test_plan.py plans a small model
@pytest.mark.parametrize("arguments", [plan for plan in PLANS if len(plan) > 1], ids=" ".join)
def test_a_plan_of_the_page_runs(arguments: list[str]) -> None:
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    last = result.stdout.splitlines()[-1]
    assert last.endswith(": fits") or "set optim.token_budget=" in last
    assert last in PAGE.read_text(encoding="utf-8"), "the page quotes the last line"


@pytest.mark.slow
@pytest.mark.parametrize("title", ["two-nodes.sh", "two-nodes.slurm"])
def test_two_machines_train_together(title: str, small: str, tmp_path: Path) -> None:
    """One process a machine on the CPU; the recipe is a tiny one."""
    recipe = write_recipe(tmp_path, small, optim__max_steps=2)
    script = re.sub(r"--nproc-per-node \d+", "--nproc-per-node 1", SCRIPTS[title])
    script = script.replace("--config hieval_stage1", f"--config {recipe}")
    script = script.replace("29500", str(_free_port()))
    for name, text in (("job", script), ("srun", SRUN), ("scontrol", SCONTROL)):
        (tmp_path / name).write_text(text, encoding="utf-8")
        (tmp_path / name).chmod(stat.S_IRWXU)
    variables = environment() | {
        **{"HEAD": "127.0.0.1", "GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1"},
        **{"SLURM_JOB_NODELIST": "node[1-2]", "SLURM_JOB_NUM_NODES": "2", "SLURM_JOB_ID": "7"},
    }
    variables["PATH"] = f"{tmp_path}{os.pathsep}{variables['PATH']}"
    command = ["bash", "job"] if title.endswith("slurm") else ["srun", "bash", "job"]
    done = subprocess.run(
        command,
        cwd=tmp_path,
        env=variables,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert (tmp_path / "run" / "judge.json").is_file()
    assert done.stdout.count("step      2/2  loss") == 1, "one process reports"
    assert "processes busy" not in done.stdout


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])
