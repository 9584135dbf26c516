from pathlib import Path

import pytest

from judging.errors import CustosError
from judging.tasks import task_names
from train.setup.recipe_files import (
    RECIPES,
    RECIPES_OF_TASKS,
    find_recipe,
    recipe_names,
    recipe_of_task,
    summary_of,
)


def test_names_are_paths_without_suffix() -> None:
    names = recipe_names()
    assert names == sorted(names)
    assert {"hieval_stage1", "embedded/demo", "truthful/pure_label"} <= set(names)
    assert all(find_recipe(name) == RECIPES / f"{name}.yaml" for name in names)


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


def test_a_name_like_no_other() -> None:
    with pytest.raises(CustosError, match="zzz: no such recipe; 'custos recipe list' names all"):
        find_recipe("zzz")


def test_a_folder_outside_is_no_recipe(tmp_path: Path) -> None:
    with pytest.raises(CustosError, match="no such recipe"):
        find_recipe("../pyproject")
    with pytest.raises(CustosError, match="no such recipe"):
        find_recipe(str(tmp_path))


@pytest.mark.parametrize("name", recipe_names())
def test_every_recipe_says_in_one_line_what_it_is_for(name: str) -> None:
    summary = summary_of(find_recipe(name))
    assert summary.startswith(("Train ", "Try ")) and summary.endswith(".")


def test_recipes_of_tasks_are_named_after_them() -> None:
    names = {path.stem for path in (RECIPES / RECIPES_OF_TASKS).iterdir()}
    assert "truthful-pair" in names and names <= set(task_names())
    assert recipe_of_task("truthful-pair") == "embedded/tasks/truthful-pair"
    assert recipe_of_task("hieval-qs") == "embedded/mine"
    assert recipe_of_task("hieval_stage1") is None


@pytest.mark.parametrize("text", ["", "backbone: embedded\n", "# mine\nbackbone: embedded\n"])
def test_a_recipe_without_a_summary(text: str, tmp_path: Path) -> None:
    (tmp_path / "x.yaml").write_text(text, encoding="utf-8")
    assert summary_of(tmp_path / "x.yaml") == ""
