"""The image without an engine that builds it: its steps in a clean environment, its settings."""

import json
import os
import re
import shutil
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

import pytest
import yaml

from serve import server
from serve.calls.limits import Limits
from serve.gate import connections
from serve.queue import worker
from serve.queue.service import Service
from tests.build_context import ROOT, build_context
from tests.serve.made_up import FakeJudge
from tests.serve.sockets import serving

DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")
KEY = "a-key-for-this-test-alone-0123456789"


def test_every_package_is_in_the_build(tmp_path: Path) -> None:
    import tomllib

    from setuptools import find_packages

    copied = build_context(tmp_path / "app")
    setuptools = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["setuptools"]
    packages = find_packages(str(ROOT), include=setuptools["packages"]["find"]["include"])
    assert {"custos", "judging.tasks", "serve.queue"} <= set(packages)
    for package in packages:
        assert (copied / package.replace(".", "/") / "__init__.py").is_file(), package
    assert list(copied.glob("judges/*/judge.json"))
    assert not (copied / "tests").exists()


def test_the_image_runs_as_nobody_and_is_watched() -> None:
    last_stage = DOCKERFILE.rpartition("\nFROM ")[2]
    assert re.search(r"^USER custos$", last_stage, re.MULTILINE)
    assert "HEALTHCHECK" in last_stage and '"/opt/custos/steps.sh", "healthy"' in last_stage
    assert "cp docker/steps.sh /opt/custos/steps.sh" in DOCKERFILE
    assert "docker/steps.sh install" in DOCKERFILE and "docker/steps.sh bake" in DOCKERFILE
    assert "ARG TORCH=cpu" in DOCKERFILE


def test_compose_asks_the_back_end_for_the_judges_it_serves() -> None:
    services = yaml.safe_load((ROOT / "compose.yaml").read_text("utf-8"))["services"]
    modules = set(services["vllm"]["command"].partition("--lora-modules ")[2].split())
    judges = set(re.findall(r"--judge (\S+)", services["custos"]["command"]))
    assert modules == judges
    assert "CUSTOS_API_KEYS" in services["custos"]["environment"]
    assert "ports" not in services["vllm"]


def test_compose_leaves_the_service_time_to_answer_and_bounds_it() -> None:
    services = yaml.safe_load((ROOT / "compose.yaml").read_text("utf-8"))["services"]
    custos = services["custos"]
    # After the drain come the last answers, and the end of what runs.
    longest = Limits().deadline_s + server.DRAIN_SPARE_S + server.LAST_ANSWERS_S + worker.CLOSE_S
    assert float(custos["stop_grace_period"].removesuffix("s")) > longest
    files = custos["ulimits"]["nofile"]["hard"]
    assert files >= connections.MAX_CONNECTIONS + connections.OTHER_FILES
    for service in services.values():
        assert service["restart"] == "unless-stopped"
        assert service["deploy"]["resources"]["limits"]["memory"]


def test_no_proxy_is_asked_whether_the_service_is_healthy(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/python").symlink_to(sys.executable)
    proxied = {**os.environ, "http_proxy": "http://127.0.0.1:9"}
    with serving(Service({"a": FakeJudge()})) as client:
        command = [str(ROOT / "docker/steps.sh"), "healthy", str(tmp_path), str(client.base_url)]
        subprocess.run(command, env=proxied, check=True)


VENV = """#!/bin/sh
mkdir -p "$3/bin"
printf '#!/bin/sh\necho "$@" >> "$0.log"\n' > "$3/bin/pip"
chmod +x "$3/bin/pip"
"""
"""A ``python3 -m venv`` whose pip notes what it is asked for."""


@pytest.mark.parametrize("sha256", ["", "0" * 64])
def test_only_wheels_are_installed_and_by_their_hashes(tmp_path: Path, sha256: str) -> None:
    sources, python = tmp_path / "src", tmp_path / "bin" / "python3"
    (sources / "docker").mkdir(parents=True)
    shutil.copy(ROOT / "docker" / "steps.sh", sources / "docker")
    shutil.copy(ROOT / "constraints.txt", sources)
    python.parent.mkdir()
    python.write_text(VENV)
    python.chmod(0o755)
    environment = {"PATH": f"{python.parent}:{os.environ['PATH']}", "TORCH_SHA256": sha256}
    command = [str(sources / "docker" / "steps.sh"), "install", str(tmp_path / "venv"), "cpu"]
    subprocess.run(command, check=True, env=environment)
    calls = (tmp_path / "venv" / "bin" / "pip.log").read_text().splitlines()
    installed = [call.split() for call in calls if call.startswith("install ")]
    *fetched, ours = installed
    assert ours[-1] == "." and {"--no-deps", "--no-build-isolation"} <= {*ours}
    assert all("--only-binary=:all:" in call for call in fetched)
    by_hash = [call[-1] for call in fetched if "--require-hashes" in call]
    assert by_hash == ["requirements.lock", *["torch.lock"] * bool(sha256)]
    [torch] = [call[-1] for call in fetched if "--require-hashes" not in call]
    assert torch.startswith("torch==") and torch.endswith("+cpu")
    if sha256:
        assert (sources / "torch.lock").read_text() == f"{torch} --hash=sha256:{sha256}\n"


@pytest.mark.slow
def test_the_steps_make_a_service_that_judges(tmp_path: Path) -> None:
    sources, venv = build_context(tmp_path / "src"), tmp_path / "venv"
    steps = tmp_path / "steps.sh"
    environment = {**os.environ, "CUSTOS_API_KEYS": KEY}
    environment.setdefault("CUSTOS_CACHE", str(Path.home() / ".cache" / "custos"))
    environment.pop("PYTHONPATH", None)

    def step(script: Path, *arguments: str) -> None:
        subprocess.run([str(script), *arguments], check=True, env=environment, cwd=tmp_path)

    step(sources / "docker" / "steps.sh", "install", str(venv), "cpu")
    shutil.copy(sources / "docker" / "steps.sh", steps)
    shutil.rmtree(sources)  # as in the image, which has no sources
    step(steps, "bake", str(venv))
    command = [str(venv / "bin" / "custos"), "serve", "--port", "0"]
    with subprocess.Popen(
        command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, text=True
    ) as service:
        try:
            assert service.stdout
            url = next(re.finditer(r"http://\S+", service.stdout.readline()))[0]
            for _ in range(120):
                check = [str(steps), "healthy", str(venv), url]
                health = subprocess.run(check, capture_output=True)
                if health.returncode == 0:
                    break
                time.sleep(1)
            assert health.returncode == 0, health.stderr
            verdict = ask(url)
        finally:
            service.terminate()
    assert service.returncode == 0
    assert (verdict["status"], verdict["label"]) == ("scored", "Correct")


def ask(url: str) -> Any:
    request = urllib.request.Request(
        f"{url}/judge",
        json.dumps(
            {
                "question": "What is the capital of France?",
                "references": ["Paris"],
                "reference_mode": "any",
                "response": "It is Paris.",
            }
        ).encode(),
        {"Content-Type": "application/json", "Authorization": f"Bearer {KEY}"},
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)
