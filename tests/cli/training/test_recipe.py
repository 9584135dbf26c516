import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cli.main import app
from train.setup.recipe import RECIPES, recipe_names


def test_the_list_says_what_each_recipe_is_for() -> None:
    result = CliRunner().invoke(app, ["recipe", "list"])
    assert result.exit_code == 0
    heading, *lines = result.stdout.splitlines()
    assert heading.split()[0] == "recipe"
    by_name = {line.split()[0]: line for line in lines if line}
    assert set(recipe_names()) <= set(by_name)
    assert by_name["embedded/demo"].split()[1] == "focal"
    assert "make demo" in by_name["embedded/demo"]
    assert "custos train RECIPE --train TABLE" in lines[-1]


def test_a_recipe_is_shown_as_it_is() -> None:
    result = CliRunner().invoke(app, ["recipe", "show", "embedded/demo"])
    assert result.exit_code == 0
    assert result.stdout == (RECIPES / "embedded" / "demo.yaml").read_text(encoding="utf-8")


def test_a_recipe_is_copied_and_never_over_another_file(tmp_path: Path) -> None:
    target = tmp_path / "my.yaml"
    arguments = ["recipe", "copy", "hieval_stage1", str(target)]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0
    assert f"custos train {target} --train TABLE" in result.stdout
    assert target.read_bytes() == (RECIPES / "hieval_stage1.yaml").read_bytes()
    target.write_text("mine", encoding="utf-8")
    result = CliRunner().invoke(app, arguments)
    assert (result.exit_code, target.read_text(encoding="utf-8")) == (2, "mine")
    assert f"error: {target}: this file exists already; name another" in result.stderr


@pytest.mark.parametrize("verb", ["show", "copy"])
def test_a_misspelt_name_brings_the_nearest(verb: str, tmp_path: Path) -> None:
    more = [str(tmp_path / "my.yaml")] if verb == "copy" else []
    result = CliRunner().invoke(app, ["recipe", verb, "embedded/deno", *more])
    assert result.exit_code == 2
    assert "embedded/deno: no such recipe; the nearest is 'embedded/demo'" in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_every_key_of_a_recipe_is_explained_on_eighty_columns() -> None:
    result = CliRunner().invoke(app, ["recipe", "keys"])
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert max(map(len, lines)) <= 80
    assert "`" not in result.stdout
    assert lines.count("optim:") == 1
    assert any(line.startswith("  optim.lr: number, > 0; required") for line in lines)
    parsed = json.loads(CliRunner().invoke(app, ["recipe", "keys", "--json"]).stdout)
    assert all(key["meaning"] and key["value"] and key["default"] for key in parsed)
    assert {"loss.gamma", "loss.margin", "replay.rho"} <= {key["name"] for key in parsed}


def test_keys_of_one_recipe_and_single_keys() -> None:
    result = CliRunner().invoke(app, ["recipe", "keys", "embedded/mine", "loss", "--json"])
    names = {key["name"] for key in json.loads(result.stdout)}
    assert "loss.gamma" in names
    assert "loss.margin" not in names
    result = CliRunner().invoke(app, ["recipe", "keys", "optim.lr"])
    assert "Highest learning rate" in result.stdout
    assert "optim.epochs" not in result.stdout
    result = CliRunner().invoke(app, ["recipe", "keys", "optim.lrr"])
    assert result.exit_code != 0
    assert "optim.lrr: no such key; the nearest is 'optim.lr'" in result.stderr
