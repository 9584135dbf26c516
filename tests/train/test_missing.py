"""Recipes start without their data or backbone and say, on one line, what runs instead."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from tests.train.made_up import critique_pair, examples, write_split
from train import bradley_terry, hieval_stage1, hieval_stage2, truthful_judge
from train.methods import methods
from train.setup.recipe_files import find_recipe

SCRIPTS = (truthful_judge, bradley_terry, hieval_stage1, hieval_stage2)


def _fails(script: object, argv: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    with pytest.raises(SystemExit) as ended:
        script.main(argv)  # type: ignore[attr-defined]
    assert ended.value.code == 2
    line = capsys.readouterr().err
    assert line.count("\n") == 1
    return line


@pytest.mark.parametrize("script", SCRIPTS)
def test_a_missing_split_is_named(
    script: object, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    missing = tmp_path / "none.jsonl"
    line = _fails(script, [f"data.train=[{missing}]"], capsys)
    assert line.startswith(f"error: {missing}: no such split; make it with 'custos prep', or ")
    assert "as the comment at the top of the recipe says; without it: " in line
    assert "accelerate launch -m train." in line.splitlines()[-1]


@pytest.mark.parametrize("script", SCRIPTS)
def test_a_missing_backbone_is_named(
    script: object, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pairs = [critique_pair(number) for number in range(4)]
    rows = pairs if script is bradley_terry else examples(4)
    split = write_split(tmp_path / "rows.jsonl", rows)
    given = [f"data.train=[{split}]", f"data.val={split}", "data.cal=null", "data.test=null"]
    given.append("data.allow_overlap=true")
    if script is hieval_stage2:
        given += ["adapter.init=null", "replay.train=[]", "replay.val=null"]
    line = _fails(script, [*given, f"backbone={tmp_path / 'nothing'}"], capsys)
    assert line.startswith(f"error: backbone '{tmp_path / 'nothing'}' cannot be loaded")
    assert "without it: custos prep" in line


@pytest.mark.parametrize("script", SCRIPTS)
def test_what_runs_instead_is_there(script: object) -> None:
    name = script.__name__.removeprefix("train.")  # type: ignore[attr-defined]
    [method] = [method for method in methods().values() if method.script == name]
    *preps, train = method.without_hub.split(" && ")
    words = shlex.split(train)
    assert words[:4] == ["accelerate", "launch", "-m", script.__name__]  # type: ignore[attr-defined]
    text = find_recipe(words[-1]).read_text(encoding="utf-8")
    assert "backbone: embedded" in text
    for prep in preps:
        words = shlex.split(prep)
        assert f"{words[words.index('--out') + 1]}/train.jsonl" in text
        assert prep in text.replace("\n# ", " ") or script is not truthful_judge


def test_a_typing_mistake_offers_nothing_else(capsys: pytest.CaptureFixture[str]) -> None:
    line = _fails(truthful_judge, ["optim.lrr=1"], capsys)
    assert "optim.lrr" in line
    assert "without it" not in line
