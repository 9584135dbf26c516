"""The names that other people's programs import; each is loaded when it is first used."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from clients.judge_client import AsyncJudgeClient, JudgeClient
    from judging.judge import Judge
    from judging.types import JudgeRequest, LabelledExample, Verdict

__all__ = ["AsyncJudgeClient", "Judge", "JudgeClient", "JudgeRequest", "LabelledExample", "Verdict"]

_MODULES = {
    "AsyncJudgeClient": "clients.judge_client",
    "Judge": "judging.judge",
    "JudgeClient": "clients.judge_client",
    "JudgeRequest": "judging.types",
    "LabelledExample": "judging.types",
    "Verdict": "judging.types",
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used."""
    if name not in _MODULES:
        raise AttributeError(f"module 'custos' has no attribute '{name}'")
    return getattr(import_module(_MODULES[name]), name)


def __dir__() -> list[str]:
    """Return the public names."""
    return __all__
