"""The pinned packages can be installed on the oldest Python that custos promises to run on."""

from __future__ import annotations

import tomllib
from importlib.metadata import PackageNotFoundError, distribution

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from tests.build_context import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
OLDEST_PYTHON = PROJECT["requires-python"].removeprefix(">=") + ".0"
PINS = [Requirement(line) for line in (ROOT / "constraints.txt").read_text("utf-8").splitlines()]


@pytest.mark.parametrize("pin", PINS, ids=lambda pin: pin.name)
def test_a_pin_is_one_version_for_the_oldest_python(pin: Requirement) -> None:
    [specifier] = pin.specifier
    assert specifier.operator == "=="
    try:
        needed = str(distribution(pin.name).metadata.json.get("requires_python", ""))
    except PackageNotFoundError:
        pytest.skip(f"{pin.name} is not installed here")
    assert SpecifierSet(needed).contains(OLDEST_PYTHON), needed


def test_every_direct_dependency_is_pinned_within_its_bounds() -> None:
    pins = {canonicalize_name(pin.name): str(pin.specifier).removeprefix("==") for pin in PINS}
    for text in (*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["dev"]):
        requirement = Requirement(text)
        assert requirement.specifier.contains(pins[canonicalize_name(requirement.name)]), text
