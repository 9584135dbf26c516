"""Recipes that are called published have the papers' own figures."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from judging.errors import CustosError, FieldError
from train.methods import find_method
from train.methods.base import Method
from train.methods.focal import FocalRecipe
from train.methods.joint import JointRecipe
from train.setup.recipe import RECIPES, find_recipe, parse_recipe

MINIMAL: dict[str, Any] = {
    "backbone": "embedded",
    "data": {"train": ["train.jsonl"], "val": "val.jsonl"},
    "optim": {"lr": 1e-4},
    "run": {"output": "runs/x"},
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "x.yaml"
    file.write_text(yaml.safe_dump(MINIMAL), encoding="utf-8")
    return file


@pytest.mark.parametrize(
    ("override", "value"),
    [
        ("optim.lr=1e-3", 1e-3),
        ("optim.lr=5e-04", 5e-4),
        ("optim.epochs=3", 3),
        ("run.precision=fp32", "fp32"),
        ("run.gradient_checkpointing=true", True),
        ("data.limit=10", 10),
        ("data.cal=null", None),
        ("data.train=[a.jsonl, b.jsonl]", (Path("a.jsonl"), Path("b.jsonl"))),
        ("run.output=runs/a=b", Path("runs/a=b")),
        ('run.output="12e4"', Path("12e4")),
        ("data.exclude_answerer='7e1'", "7e1"),
        ("backbone=Qwen/Qwen3-VL-4B-Instruct", "Qwen/Qwen3-VL-4B-Instruct"),
    ],
)
def test_overrides(path: Path, override: str, value: object) -> None:
    setting: Any = parse_recipe(FocalRecipe, path, [override])
    for name in override.partition("=")[0].split("."):
        setting = getattr(setting, name)
    assert setting == value
    assert type(setting) is type(value) or isinstance(value, Path)


@pytest.mark.parametrize(
    ("override", "field", "message"),
    [
        ("optim.learning_rate=1", "optim.learning_rate", "known are optim.optimizer, optim.lr, "),
        ("optim.lrr=1", "optim.lrr", "the nearest is 'optim.lr'"),
        ("run.max_steps=3", "run.max_steps", "the nearest is 'optim.max_steps'"),
        ("run.votes=most", "run.votes", "the nearest is 'data.votes'"),
        ("colour=red", "colour", "known are method, backbone, "),
        ("data.mapping={label: {}}", None, "the nearest is 'labels'"),
        ("optim.lr=0", "optim.lr", "(got 0)"),
        ("optim.lr=inf", "optim.lr", "(got 'inf')"),
        ("optim.lr=null", "optim.lr", "got null"),
        ("adapter.modules=[x]", "adapter.modules.0", ""),
        ("data.train=[]", "data.train", ""),
        ("optim.lr", None, "key.path=value"),
        ("backbone.size=3", None, "'backbone' is not a section"),
        ("data.train=[", None, "not valid YAML"),
    ],
)
def test_mistakes_are_named(path: Path, override: str, field: str | None, message: str) -> None:
    with pytest.raises(CustosError) as caught:
        parse_recipe(FocalRecipe, path, [override])
    assert message in str(caught.value)
    if field:
        assert isinstance(caught.value, FieldError) and caught.value.field == field


@pytest.mark.parametrize("key", ["data.train", "replay.train"])
def test_a_file_that_is_given_twice(path: Path, key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(path.parent)
    Path("a.jsonl").touch()
    Path("link.jsonl").symlink_to("a.jsonl")
    for again in ("a.jsonl", "b/../a.jsonl", "link.jsonl"):
        with pytest.raises(FieldError, match=f"{again} is given twice") as caught:
            parse_recipe(JointRecipe, path, [f"{key}=[a.jsonl, c.jsonl, {again}]"])
        assert caught.value.field == key


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(CustosError, match=r"none\.yaml: no such recipe"):
        parse_recipe(FocalRecipe, tmp_path / "none.yaml")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("backbone: embedded\n", "field 'data': Field required"),
        ("a: [1", "not valid YAML"),
        ("optim:\n  lr: 1e-4\n  lr: 5e-4\n", "not valid YAML: the key 'lr' occurs twice"),
    ],
)
def test_a_file_that_is_no_recipe_is_named(path: Path, text: str, message: str) -> None:
    path.write_text(text, encoding="utf-8")
    with pytest.raises(CustosError, match=rf"x\.yaml: {message}"):
        parse_recipe(FocalRecipe, path)


def _method(path: Path) -> type[Method]:
    """Return the method of a recipe, whose first line must start its script with it."""
    first = path.read_text(encoding="utf-8").splitlines()[0]
    started = r"# (?:accelerate launch|python) .*train/(\w+)\.py( --config (\S+))?.*"
    launch = re.fullmatch(started, first)
    assert launch, f"{path}: the first line must be its launch command, got {first!r}"
    if launch[3]:
        assert RECIPES.parent / launch[3] == path, f"{path}: its launch command names another file"
    else:
        assert path.stem == launch[1], f"{path}: only a script's own recipe needs no --config"
    method = find_method(yaml.safe_load(path.read_text(encoding="utf-8"))["method"])
    assert method is not None and method.script == launch[1]
    return method


SHIPPED = sorted(
    path
    for path in RECIPES.rglob("*.yaml")
    if not {"accelerate", "deepspeed"} & set(path.relative_to(RECIPES).parts)
)


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: str(path.relative_to(RECIPES)))
def test_every_shipped_recipe_is_valid(path: Path) -> None:
    parse_recipe(_method(path).recipe_class, path)


def test_a_file_wins_over_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert find_recipe("hieval_stage1").parent == RECIPES
    (tmp_path / "hieval_stage1").write_text("")
    assert find_recipe("hieval_stage1") == Path("hieval_stage1")


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("embedded/dmo", "embedded/demo"),
        ("demo", "embedded/demo"),
        ("recipes/embedded/demo.yaml", "embedded/demo"),
        ("hieval-stage1", "hieval_stage1"),
    ],
)
def test_the_nearest_recipe_is_named(
    name: str, nearest: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(CustosError, match=f"{name}: no such recipe; the nearest is '{nearest}'"):
        find_recipe(name)


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


def test_the_published_keys_of_hieval(path: Path) -> None:
    one, two = _values("hieval_stage1"), _values("hieval_stage2")
    default = parse_recipe(FocalRecipe, path).model_dump()
    assert one["adapter"] == {"r": 64, "alpha": 64, "dropout": 0.05}
    assert one["loss"] == {"gamma": 1.0, "t_max": 5.0}
    for section in ("adapter", "loss"):
        assert one[section].items() <= default[section].items()
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
