"""A clean distributed state for every test; a backbone to read, and errors of scripts."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
from accelerate.state import AcceleratorState

from judging.models.backbones import Backbone, load_backbone
from train.setup.run_log import RUN_LOG


@pytest.fixture(scope="module")
def backbone(small: str) -> Backbone:
    return load_backbone(small, dtype="float32", device="cpu")


@pytest.fixture
def refusal(capsys: pytest.CaptureFixture[str]) -> Callable[[Any, Sequence[str]], str]:
    """Starts a script that must fail; returns its error line."""

    def start(script: Any, arguments: Sequence[str]) -> str:
        with pytest.raises(SystemExit) as ended:
            script.main(arguments)
        assert ended.value.code == 2
        *_, line = capsys.readouterr().err.splitlines()
        assert line.startswith("error: ")
        return str(line)

    return start


@pytest.fixture(autouse=True)
def fresh_accelerate_state() -> Iterator[None]:
    """Accelerate keeps precision and device in globals, the log lines; tests have their own."""
    AcceleratorState._reset_state(reset_partial_state=True)
    RUN_LOG.close_file()
    yield
    AcceleratorState._reset_state(reset_partial_state=True)
