"""The file of figures: whole at any time, and one for all files of tests on a machine."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.gpu import figures
from tests.gpu.figures import Figures


def _on(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(figures, "machine", lambda: {"device": device, "gpus": 1})


def _kept(path: Path) -> dict[str, Any]:
    kept: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return kept


def test_figures_of_several_runs_are_kept_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _on("NVIDIA H100", monkeypatch)
    path = tmp_path / "runs" / "figures.json"
    for value, cases in ((1.0, ("a", "b")), (2.0, ("b", "c"))):
        measured = Figures(path)
        for case in cases:
            measured.add("error", case, value, "nat", "< 3")
            assert case in {figure["case"] for figure in _kept(path)["figures"]}
    kept = _kept(path)
    assert kept["on"]["device"] == "NVIDIA H100"
    assert {f["case"]: f["value"] for f in kept["figures"]} == {"a": 1.0, "b": 2.0, "c": 2.0}
    assert [file.name for file in path.parent.iterdir()] == ["figures.json"]
    _on("NVIDIA L40", monkeypatch)
    Figures(path).add("error", "a", 3.0, "nat")
    assert [figure["value"] for figure in _kept(path)["figures"]] == [3.0], "none of another device"


def test_the_file_is_named_by_the_device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CUSTOS_CUDA_FIGURES", raising=False)
    monkeypatch.setattr(figures, "REHEARSAL", False)
    _on("NVIDIA H100 80GB HBM3", monkeypatch)
    assert figures.output_file() == Path("runs/cuda_nvidia-h100-80gb-hbm3.json")
    monkeypatch.setenv("CUSTOS_CUDA_FIGURES", "/elsewhere/figures.json")
    assert figures.output_file() == Path("/elsewhere/figures.json")
