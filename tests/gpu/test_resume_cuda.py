"""A run on a GPU that is killed goes on: ``pytest -m cuda -s tests/gpu/test_resume_cuda.py``."""

from pathlib import Path

import pytest
from safetensors.torch import load_file

from tests.gpu import recipes
from tests.gpu.figures import ON_GPU, Figures
from tests.gpu.programs import run_python
from tests.gpu.steps import relative_error

pytestmark = ON_GPU


@pytest.mark.parametrize("name", recipes.RUNS)
def test_a_killed_run_goes_on(
    name: str, checkpoints: Path, tmp_path: Path, figures: Figures
) -> None:
    recipes.skip_without_bitsandbytes(name)
    recipe, _ = recipes.RUNS[name]
    run_python("-m", "tests.gpu.recipes", name, str(checkpoints), str(tmp_path), status=-9)
    assert not (tmp_path / "run" / "judge.json").exists()
    recipes.train(recipe, recipes.keys_of(name, checkpoints, tmp_path, graded=False))
    log = (tmp_path / "run" / "train.log").read_text(encoding="utf-8")
    assert f"at step {recipes.KILLED_BEFORE - 2}" in log
    whole = tmp_path / "whole"
    recipes.train(recipe, recipes.keys_of(name, checkpoints, whole, graded=False))
    resumed, expected = (
        load_file(run / "adapter_model.safetensors") for run in (tmp_path / "run", whole / "run")
    )
    error = relative_error(resumed, expected)
    figures.add("adapter after kill and resume", name, error, "of norm", "< 0.05")
    assert error < 0.05
