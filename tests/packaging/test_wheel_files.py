"""The wheel holds every file that the product reads, and nothing else."""

import tomllib
import zipfile
from pathlib import Path

import pytest

from tests.build_context import ROOT

MAX_MEGABYTES = 62
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PACKAGES = PROJECT["tool"]["setuptools"]["packages"]["find"]["include"]
PACKAGE_FOLDERS = sorted({name.removesuffix("*") for name in PACKAGES})


@pytest.fixture(scope="module")
def files(wheel: Path) -> set[str]:
    """Return the names of the wheel's files, its metadata left out."""
    with zipfile.ZipFile(wheel) as archive:
        return {name for name in archive.namelist() if ".dist-info/" not in name}


def test_every_file_of_every_package_is_in_it(files: set[str]) -> None:
    expected = {
        path.relative_to(ROOT).as_posix()
        for folder in PACKAGE_FOLDERS
        for path in (ROOT / folder).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert files == expected


@pytest.mark.parametrize(
    "name",
    [
        "judges/embedded-qs/adapter_model.safetensors",
        "judges/embedded-ea/calibration.json",
        "judges/embedded-pair/README.md",
        "recipes/hieval_stage1.yaml",
        "recipes/embedded/demo.yaml",
        "judging/models/weights/embedded-2-vision.safetensors",
        "serve/pages/templates/playground.html",
        "serve/pages/static/playground.js",
        "benchmarks/framework/report/templates/page.html",
        "benchmarks/framework/report/templates/report.md",
        "evaluation/report/templates/report.md",
        "train/hieval_stage1.py",
    ],
)
def test_what_a_command_reads_is_in_it(name: str, files: set[str]) -> None:
    assert name in files


def test_it_holds_no_tests_and_no_experiments(files: set[str]) -> None:
    assert {name.partition("/")[0] for name in files} == set(PACKAGE_FOLDERS)
    assert not {"tests", "experiments"} & set(PACKAGE_FOLDERS)


def test_it_is_small(wheel: Path) -> None:
    assert wheel.stat().st_size < MAX_MEGABYTES * 1_000_000
