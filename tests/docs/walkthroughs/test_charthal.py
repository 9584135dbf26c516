"""The programs of the page on ChartHal, beside a clone of its repository that is made up here."""

import json
from pathlib import Path

import pytest
import yaml

from judging.tasks import base as tasks
from judging.tasks import get_task
from judging.tasks.base import register_rubrics
from judging.types import JudgeRequest
from tests.docs.markdown_pages import DOCS, blocks
from tests.docs.walkthroughs.shell import run
from tests.published_files import needs_published, published

SCRIPTS = {block.title: block.text for block in blocks(DOCS / "charthal.md") if block.title}


def program(name: str, folder: Path) -> str:
    (folder / name).write_text(SCRIPTS[name], encoding="utf-8")
    return run(f"python {name}", folder)


def clone(folder: Path, graded: dict[str, dict[str, object]]) -> None:
    results = folder / "ChartHal" / "results" / "gpt-5-mini"
    results.mkdir(parents=True)
    (results / "eval.json").write_text(json.dumps(graded), encoding="utf-8")


def test_the_cut_keeps_the_items_of_its_figures(tmp_path: Path) -> None:
    figures = {"2_0": 2, "5_1": 5, "13_1": 13, "1307_0": 1307, "13_2": 13}
    clone(tmp_path, {key: {"figure_id": n, "score": n % 2} for key, n in figures.items()})
    assert "3 items, 2 graded 1" in program("cut.py", tmp_path)
    half = json.loads((tmp_path / "gpt-5-mini.dev.eval.json").read_text(encoding="utf-8"))
    assert list(half) == ["2_0", "13_1", "13_2"]


@needs_published("charthal")
def test_the_cut_of_all_items_is_the_half_that_was_measured(tmp_path: Path) -> None:
    items = json.loads((published("charthal") / "charthal.json").read_text(encoding="utf-8"))
    measured = json.loads(
        (published("charthal") / "gpt-5-mini.dev.eval.json").read_text(encoding="utf-8")
    )
    clone(
        tmp_path, {key: {**row, "score": 0, **measured.get(key, {})} for key, row in items.items()}
    )
    assert "542 items, 174 graded 1" in program("cut.py", tmp_path)
    half = json.loads((tmp_path / "gpt-5-mini.dev.eval.json").read_text(encoding="utf-8"))
    assert half == measured
    assert list(half) == list(measured)


def test_the_official_prompts_become_whole_messages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A made-up ``prompts.py`` with the names of the official one."""
    monkeypatch.setattr(tasks.TASKS, "entries", dict(tasks.TASKS.entries))
    (tmp_path / "ChartHal").mkdir()
    cells = [f"{a}_{b}" for a in ("desc", "open") for b in ("irrel", "inexist", "contra", "normal")]
    prompts = {cell: f"{cell}: <|QUESTION|> / <|REF_ANS|> / <|RESPONSE|>" for cell in cells}
    (tmp_path / "ChartHal" / "prompts.py").write_text(
        f"EVAL_RESP_MAP = {prompts!r}\nEVAL_SUFFIX = '\\nScore:'\n", encoding="utf-8"
    )
    program("official_rubrics.py", tmp_path)
    file = tmp_path / "official.yaml"
    assert len(yaml.safe_load(file.read_text(encoding="utf-8"))) == 7
    task = get_task(register_rubrics("charthal", file))
    request = JudgeRequest(
        task=task.name, variant="contradictory-open", question="Q?", references=("R",),
        responses=("A",),
    )  # fmt: skip
    assert task.whole_prompt(request) == "open_contra: Q? / R / A\nScore:"
    closed = request.model_copy(update={"variant": "normal-closed"})
    assert task.whole_prompt(closed) == "desc_normal: Q? / R / A\nScore:"
