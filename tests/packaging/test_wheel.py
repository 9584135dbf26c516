"""The installed wheel is the whole product: every command works from an empty folder."""

import json
import os
import re
import subprocess
import sys
import sysconfig
import time
import urllib.error
import urllib.request
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from judging.models.fetched import cache_folder
from tests.packaging.test_wheel_files import PACKAGE_FOLDERS

pytestmark = pytest.mark.slow

QUESTION = {
    "question": "What is the capital of France?",
    "references": ["Paris"],
    "reference_mode": "any",
}
WHERE = """
import importlib
for name in {names}:
    print(importlib.import_module(name).__path__[0])
"""


@dataclass(frozen=True)
class Installation:
    """A virtual environment with the wheel, and an empty folder to work in."""

    bin: Path
    work: Path

    @property
    def environment(self) -> dict[str, str]:
        """Return the environment of a user who knows nothing of this checkout."""
        kept = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        return {**kept, "CUSTOS_CACHE": str(cache_folder())}

    def run(self, *command: str) -> str:
        """Run a program of the environment to its end and return what it printed."""
        done = subprocess.run(
            [str(self.bin / command[0]), *command[1:]],
            cwd=self.work,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout}\n{done.stderr}"
        return done.stdout


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Installation:
    """Install the wheel beside the libraries of this environment, which are not fetched again."""
    folder, work = tmp_path_factory.mktemp("venv"), tmp_path_factory.mktemp("work")
    venv.create(folder)
    libraries = sysconfig.get_paths()["purelib"]
    here = sysconfig.get_paths(vars={"base": str(folder), "platbase": str(folder)})
    # A .pth file adds a folder, but not what that folder's own .pth files add: the editable
    # installation of this checkout stays out of sight.
    Path(here["purelib"], "libraries.pth").write_text(f"{libraries}\n", encoding="utf-8")
    pip = [sys.executable, "-m", "pip", "--python", str(folder), "install", "--quiet"]
    # The checkout is installed among the libraries, in the same version: pip must not look there.
    subprocess.run([*pip, "--ignore-installed", "--no-deps", "--no-index", str(wheel)], check=True)
    return Installation(Path(here["scripts"]), work)


@contextmanager
def serving(installed: Installation) -> Iterator[str]:
    """Start the service with the judges it serves by default, and yield its address when ready."""
    command = [str(installed.bin / "custos"), "serve", "--port", "0"]
    with subprocess.Popen(
        command, cwd=installed.work, env=installed.environment, stdout=subprocess.PIPE, text=True
    ) as service:
        try:
            assert service.stdout
            url = next(re.finditer(r"http://\S+", service.stdout.readline()))[0]
            for _ in range(180):
                try:
                    fetch(f"{url}/health/ready")
                    break
                except urllib.error.URLError:
                    time.sleep(1)
            yield url
        finally:
            service.terminate()


def fetch(url: str, body: Any = None) -> str:
    """Return what an address answers; raise on any status but 200."""
    data = json.dumps(body).encode() if body is not None else None
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=120) as answer:
        return str(answer.read().decode())


def test_our_packages_come_from_the_wheel(installed: Installation) -> None:
    code = WHERE.format(names=PACKAGE_FOLDERS)
    folders = installed.run("python", "-c", code).splitlines()
    assert len(folders) == len(PACKAGE_FOLDERS)
    for folder in folders:
        assert Path(folder).is_relative_to(installed.bin.parent), folder


def test_the_shipped_judges_are_listed(installed: Installation) -> None:
    listed = installed.run("custos", "judges")
    assert all(name in listed for name in ("embedded-qs", "embedded-ea", "embedded-pair"))


def test_rows_are_graded_without_a_judge_being_named(installed: Installation) -> None:
    responses = ("It is Paris.", "It is Rome.")
    lines = [json.dumps({**QUESTION, "response": response}) for response in responses]
    (installed.work / "rows.jsonl").write_text("\n".join(lines), encoding="utf-8")
    installed.run("custos", "grade", "--in", "rows.jsonl", "--out", "v.jsonl")
    written = (installed.work / "v.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["label"] for line in written] == ["Correct", "Wrong"]


def test_the_service_has_its_pages_and_judges(installed: Installation) -> None:
    with serving(installed) as url:
        assert "<html" in fetch(f"{url}/")
        assert "embedded-ea" in fetch(f"{url}/pages/judges")
        assert fetch(f"{url}/health/ready")
        verdict = json.loads(fetch(f"{url}/judge", {**QUESTION, "response": "It is Paris."}))
    assert (verdict["status"], verdict["label"]) == ("scored", "Correct")


def test_recipes_are_listed_shown_and_copied(installed: Installation) -> None:
    assert "embedded/demo" in installed.run("custos", "recipe", "list")
    text = installed.run("custos", "recipe", "show", "embedded/demo")
    installed.run("custos", "recipe", "copy", "embedded/demo", "my.yaml")
    assert (installed.work / "my.yaml").read_text(encoding="utf-8") == text
    assert "backbone: embedded" in text


def test_a_judge_is_trained_by_the_name_of_its_recipe(installed: Installation) -> None:
    prep = ["prep", "synthetic", "--worlds", "open", "--rows", "200", "--out", "runs/demo/data"]
    installed.run("custos", *prep)
    installed.run(
        *("python", "-m", "accelerate.commands.accelerate_cli", "launch"),
        *("-m", "train.hieval_stage1", "--config", "embedded/demo"),
        *("optim.max_steps=2", "run.eval_every=2"),
        *("data.val_limit=8", "data.cal=null", "data.test=null"),
    )
    assert (installed.work / "runs/demo/judge/adapter_model.safetensors").is_file()
