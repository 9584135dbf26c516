"""Two processes that divide gradients and moments take the steps of a single one (DeepSpeed)."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.conftest import Folders
from tests.forks import run_together
from tests.train.sharding import learners
from tests.train.sharding.learners import FAMILIES, QUICK, SLOW, Case, run
from tests.train.sharding.test_fsdp2 import check_goes_on, check_plain_peft, check_steps, held
from train.setup.engines import ZERO

CASES = list({str(case): case for case in [*QUICK, *SLOW]}.values())

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(find_spec("deepspeed") is None, reason="DeepSpeed is not installed"),
]


@pytest.fixture(scope="module")
def together(tiny_folders: Folders, tmp_path_factory: pytest.TempPathFactory) -> Callable[[], Path]:
    """Run folders of two processes."""
    folders = {family: tiny_folders(family) for family in FAMILIES}

    @cache
    def made() -> Path:
        out = tmp_path_factory.mktemp("zero2")
        run(Case("focal", "qwen3_vl", killed_at=2), folders["qwen3_vl"], out / "begun-alone")
        run_together(2, learners.main, out, CASES, folders, ZERO, seconds=1200)
        return out

    return made


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_steps_are_those_of_one_process(
    case: Case, together: Callable[[], Path], tiny_folders: Folders, tmp_path: Path
) -> None:
    divided = together() / str(case)
    check_steps(case, divided, tiny_folders, tmp_path)
    assert held(divided)["weights"] == held(tmp_path)["weights"]
    assert held(divided)["optimizer"] == pytest.approx(held(tmp_path)["optimizer"] / 2, abs=64)


@pytest.mark.parametrize("case", QUICK, ids=str)
def test_plain_peft_loads_the_adapter(
    case: Case, together: Callable[[], Path], tiny_folders: Folders
) -> None:
    check_plain_peft(case, together() / str(case), tiny_folders)


@pytest.mark.parametrize("began", ["alone", "together"])
def test_another_number_of_processes_goes_on(
    began: str, together: Callable[[], Path], tiny_folders: Folders
) -> None:
    """Two steps by one process and the third by two that divide its moments, or the other way."""
    check_goes_on(began, together(), tiny_folders)
