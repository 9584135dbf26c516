"""YAML that people write, in which no key may occur twice."""

from __future__ import annotations

import pytest
import yaml

from judging.files.yaml_text import load_yaml


@pytest.mark.parametrize(
    "text",
    [
        "a: 1\na: 2",
        "a: {b: 1, 'b': 2}",
        "x: &x {b: 1, b: 2}\ny: *x",
    ],
)
def test_a_key_twice_in_one_mapping_is_refused(text: str) -> None:
    with pytest.raises(yaml.YAMLError, match="the key '[ab]' occurs twice"):
        load_yaml(text)


def test_one_key_in_several_mappings_and_merged_ones_are_read() -> None:
    text = "x: &x {a: 1, b: 2}\ny: {<<: *x, a: 3}\nz: [{a: 1}, {a: 2}, *x]"
    assert load_yaml(text) == yaml.safe_load(text)
    assert load_yaml("") is None
    assert load_yaml("a: yes\n1: 2", yaml.BaseLoader) == {"a": "yes", "1": "2"}


def test_nested_aliases_cost_no_time() -> None:
    """A document of a few lines stands for more parts than can be visited."""
    lines = ["a0: &a0 {x: 1}"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 30)]
    assert len(load_yaml("\n".join(lines))) == 30


@pytest.mark.parametrize(
    "text",
    [
        "a: " + "[" * 50_000 + "]" * 50_000,
        "a: " + "9" * 5000,
        "a: 2024-13-45",
        "a: !!int ''",
    ],
)
def test_whatever_cannot_be_read_is_an_error_of_yaml(text: str) -> None:
    with pytest.raises(yaml.YAMLError):
        load_yaml(text)
