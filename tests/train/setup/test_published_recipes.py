"""Recipes that are called published have the papers' own figures."""

from __future__ import annotations

import re
from typing import Any

import pytest
import yaml

from train.setup.recipe_files import find_recipe


def _values(name: str) -> dict[str, Any]:
    values: dict[str, Any] = yaml.safe_load(find_recipe(name).read_text(encoding="utf-8"))
    return values


@pytest.mark.parametrize(
    "name", ["truthful_judge", "truthful/pure_label", "truthful/critique_score"]
)
def test_truthful_judge_is_trained_to_the_end(name: str) -> None:
    values = _values(name)
    assert values["backbone"] == "Qwen/Qwen2.5-VL-7B-Instruct"
    assert (values["run"]["select"], values["optim"]["epochs"]) == ("last", 8)


def test_nine_tenths_of_the_pairs_are_trained_on() -> None:
    head = find_recipe("truthful_judge").read_text(encoding="utf-8")
    commands = re.findall(r"--val (\S+) --cal (\S+) --test (\S+)", head)
    assert len(commands) == 2
    for shares in commands:
        assert sum(map(float, shares)) == pytest.approx(0.1)


def test_the_published_keys_of_hieval() -> None:
    one, two = _values("hieval_stage1"), _values("hieval_stage2")
    assert one["adapter"] == {"r": 64, "alpha": 64, "dropout": 0.05}
    assert one["loss"] == {"gamma": 1.0, "t_max": 5.0}
    assert (one["optim"]["lr"], two["optim"]["lr"]) == (5e-5, 5e-5)
    assert (two["loss"]["unlikelihood"], two["replay"]["rho"]) == (0.3, 1.0)


@pytest.mark.parametrize(
    ("name", "base", "changed"),
    [
        ("no_focal", "hieval_stage1", {"loss"}),
        ("no_unlikelihood", "hieval_stage2", {"loss"}),
        ("no_replay", "hieval_stage2", {"replay"}),
    ],
)
def test_an_ablation_changes_one_thing(name: str, base: str, changed: set[str]) -> None:
    ablation, full = _values(f"ablation/{name}"), _values(base)
    different = {key for key in full if ablation[key] != full[key]}
    assert different == {*changed, "run"}
    assert {k: v for k, v in ablation["run"].items() if k != "output"} == {
        k: v for k, v in full["run"].items() if k != "output"
    }


@pytest.mark.parametrize(
    "name",
    ["hieval_stage1", "hieval_stage2", "truthful_judge", "bradley_terry", "truthful/pure_label"],
)
def test_a_head_parts_what_is_published_from_what_is_ours(name: str) -> None:
    head = find_recipe(name).read_text(encoding="utf-8").partition("backbone:")[0]
    assert "Published: " in head
    assert "Ours: " in head


@pytest.mark.parametrize(
    "name", ["bradley_terry", "truthful/pure_label", "truthful/critique_score"]
)
def test_what_the_paper_says_of_truthful_judge_alone_is_ours_elsewhere(name: str) -> None:
    """Appendix F.2 has the epochs and the end of training of TruthfulJudge, and of no other."""
    head = find_recipe(name).read_text(encoding="utf-8").partition("backbone:")[0]
    published = head.partition("Published: ")[2].partition("Ours: ")[0]
    assert "Table 2" in published
    assert "epochs" not in published
    assert "step" not in published
