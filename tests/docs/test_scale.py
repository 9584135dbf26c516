"""The files for clusters on the page about scale can be read by what they are for."""

import shlex
import subprocess
from typing import Any

import yaml

from docs.hooks.commands import commands, option_names
from tests.docs.markdown_pages import DOCS, blocks

PAGE = DOCS / "scale.md"
FILES = {block.title: block.text for block in blocks(PAGE)}
OPTIONS = option_names(dict(commands())["custos grade"])


def grade_options(words: list[str]) -> set[str]:
    start = words.index("custos")
    assert words[start + 1] == "grade"
    return {word for word in words[start:] if word.startswith("--")}


def test_slurm_starts_the_command_on_a_cluster() -> None:
    script = FILES["grade.slurm"]
    subprocess.run(["bash", "-n"], input=script, text=True, check=True, timeout=20)
    words = shlex.split(script.replace("\\\n", " "), comments=True)
    assert {"--ray", "--in", "--out"} <= grade_options(words) <= OPTIONS


def test_kuberay_starts_the_command_on_workers_with_gpus() -> None:
    job: dict[str, Any] = yaml.safe_load(FILES["grade.yaml"])
    assert (job["apiVersion"], job["kind"]) == ("ray.io/v1", "RayJob")
    assert {"--ray", "--in", "--out"} <= grade_options(shlex.split(job["spec"]["entrypoint"]))
    assert grade_options(shlex.split(job["spec"]["entrypoint"])) <= OPTIONS
    cluster = job["spec"]["rayClusterSpec"]
    [group] = cluster["workerGroupSpecs"]
    pods = [cluster["headGroupSpec"], group]
    images = {pod["template"]["spec"]["containers"][0]["image"] for pod in pods}
    assert len(images) == 1, "all machines have the same versions of packages"
    limits = group["template"]["spec"]["containers"][0]["resources"]["limits"]
    assert limits["nvidia.com/gpu"] == "1"
