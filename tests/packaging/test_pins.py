"""The pinned packages: installable on the oldest Python, and all of them in the image by hash."""

import re
import tomllib
from importlib.metadata import PackageNotFoundError, distribution

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from tests.build_context import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
OLDEST_PYTHON = PROJECT["requires-python"].removeprefix(">=") + ".0"
CONSTRAINTS = [
    Requirement(line) for line in (ROOT / "constraints.txt").read_text("utf-8").splitlines()
]


@pytest.mark.parametrize("pin", CONSTRAINTS, ids=lambda pin: pin.name)
def test_a_pin_is_one_version_for_the_oldest_python(pin: Requirement) -> None:
    [specifier] = pin.specifier
    assert specifier.operator == "=="
    try:
        needed = str(distribution(pin.name).metadata.json.get("requires_python", ""))
    except PackageNotFoundError:
        pytest.skip(f"{pin.name} is not installed here")
    assert SpecifierSet(needed).contains(OLDEST_PYTHON), needed


def test_every_direct_dependency_is_pinned_within_its_bounds() -> None:
    pins = {
        canonicalize_name(pin.name): str(pin.specifier).removeprefix("==") for pin in CONSTRAINTS
    }
    for text in (*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["dev"]):
        requirement = Requirement(text)
        assert requirement.specifier.contains(pins[canonicalize_name(requirement.name)]), text


ENTRY = re.compile(r"(\S+)==(\S+)((?: \\\n    --hash=sha256:[0-9a-f]{64})+)\n")
LOCK = (ROOT / "requirements.lock").read_text("utf-8")
PINS = {canonicalize_name(name): version for name, version, _ in ENTRY.findall(LOCK)}
UNLOCKED = re.compile(r"torch$|nvidia-|cuda-|triton$")
"""torch and what its CUDA build brings: every build of torch has other files."""


def needed_packages() -> set[str]:
    """Names of all that the project's dependencies bring, as what is installed here says."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    waiting = [Requirement(text) for text in project["dependencies"]]
    seen: set[tuple[str, str]] = set()
    while waiting:
        requirement = waiting.pop()
        name = canonicalize_name(requirement.name)
        for extra in ("", *requirement.extras):
            if (name, extra) in seen or UNLOCKED.match(name):
                continue
            seen.add((name, extra))
            for text in distribution(name).requires or ():
                needed = Requirement(text)
                if needed.marker is None or needed.marker.evaluate({"extra": extra}):
                    waiting.append(needed)
    return {name for name, _ in seen}


def test_every_line_is_a_pin_with_hashes() -> None:
    assert ENTRY.sub("", LOCK) == ""
    assert not any(map(UNLOCKED.match, PINS))


def test_it_is_complete_and_of_the_pinned_versions() -> None:
    assert needed_packages() <= PINS.keys()
    constraints = (ROOT / "constraints.txt").read_text("utf-8").splitlines()
    pinned = {canonicalize_name(pin.name): pin.specifier for pin in map(Requirement, constraints)}
    differing = [name for name, version in PINS.items() if version not in pinned.get(name, "")]
    assert differing == []
    assert "setuptools" in PINS  # builds the wheel in the image
