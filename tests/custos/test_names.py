"""``custos`` is what other people's programs import: light, complete, and nothing else."""

import importlib
import subprocess
import sys

import pytest

import custos

NAMES = {
    *("AsyncJudgeClient", "Judge", "JudgeClient", "JudgeRequest", "LabelledExample", "Verdict")
}
HEAVY = ("torch", "transformers", "peft", "datasets", "fastapi", "matplotlib", "sklearn", "pandas")


def test_every_name_is_the_one_of_its_module() -> None:
    assert custos.__all__ == sorted(custos.__all__)
    assert set(custos.__all__) == NAMES
    assert dir(custos) == custos.__all__
    for name in custos.__all__:
        value = getattr(custos, name)
        assert value is getattr(importlib.import_module(value.__module__), name)


def test_other_names_are_errors() -> None:
    with pytest.raises(AttributeError, match="module 'custos' has no attribute 'judge'"):
        custos.judge  # noqa: B018


def modules_after(statement: str) -> set[str]:
    code = f"{statement}\nimport sys; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_importing_it_loads_none_of_its_names() -> None:
    assert not {"judging", "clients", *HEAVY} & modules_after("import custos")


def test_its_names_load_no_model_library() -> None:
    assert not {*HEAVY} & modules_after(f"from custos import {', '.join(custos.__all__)}")
