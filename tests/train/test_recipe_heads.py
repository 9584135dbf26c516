"""Data commands in the heads of recipes: they run, and ask for the sizes of HiEval's Table 1."""

import json
import re
import shlex
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from cli.main import app
from data_prep.splits.splits import SPLITS, class_of, item_of
from judging.files.records import read_records
from judging.tasks import get_task
from judging.tasks.hieval_ea import ERROR_TYPES
from judging.types import LabelledExample
from tests.tiny import save_picture
from train import hieval_stage1
from train.setup.recipe import find_recipe

TABLE_1 = {"QS": (21_996, 2_000, 2_000), "EA": (8_545, 1_000, 1_000)}


def _commands(recipe: str) -> list[list[str]]:
    """Return the words of the custos commands in a recipe's head."""
    head = find_recipe(recipe).read_text(encoding="utf-8").replace("\\\n#", "")
    return [shlex.split(line) for line in re.findall(r"^#   custos (.+)$", head, re.M)]


def _number(command: list[str], option: str) -> int:
    return int(command[command.index(option) + 1])


def _run(command: list[str], **numbers: int) -> None:
    """Run a command with other numbers: ``val=10`` stands for ``--val 10``."""
    for name, number in numbers.items():
        command[command.index(f"--{name.replace('_', '-')}") + 1] = str(number)
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 0, result.output


def _splits(folder: str) -> dict[str, list[LabelledExample]]:
    return {
        split: [row for _, row in read_records(Path(folder, f"{split}.jsonl"), LabelledExample)]
        for split in SPLITS
    }


def _row(number: int, label: str, response: str = "") -> dict[str, Any]:
    return {
        "id": f"r{number}",
        "question": f"What stands at position {number * 7919}?",
        "answer": "19",
        "response": response or f"I think that it is {number}",
        "label": label,
    }


def _write(name: str, rows: list[dict[str, Any]]) -> None:
    Path(name).write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")


def test_the_sizes_are_those_of_table_1() -> None:
    """The calibration takes its rows from the paper's validation."""
    [quick] = [words for words in _commands("hieval_stage1") if words[:2] == ["prep", "hieval"]]
    train, val, test = TABLE_1["QS"]
    assert _number(quick, "--val") + _number(quick, "--cal") == val
    assert _number(quick, "--test") == test
    assert train + val + test == 25_996, "train is what the others leave of the paper's rows"
    [types] = [words for words in _commands("hieval_stage2") if words[1] == "error-types"]
    train, val, test = TABLE_1["EA"]
    assert _number(types, "--per-class") * len(ERROR_TYPES) == train
    assert _number(types, "--val") + _number(types, "--cal") == val
    assert "--published-test" in types


def test_the_commands_of_both_stages_on_made_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hundredth of the sizes, from a file with columns as the heads name them."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("cli.prep.tables.PUBLISHED_TEST", dict.fromkeys(ERROR_TYPES, 5))
    labels = ("Wrong", "Partial", "Wrong", "Correct")
    contested = [_row(number, labels[number % 4]) for number in range(260)]
    agreed, trivial = _row(900, "Wrong"), _row(901, "Wrong", "(B)")
    _write("FILE.jsonl", [*contested, agreed, trivial])
    verdicts: dict[str, list[str]] = {}
    for number, row in enumerate(contested):
        others = [label for label in ("Wrong", "Partial", "Correct") if label != row["label"]]
        verdicts[row["id"]] = [others[number % 2]] * 3 + [row["label"]] * 3
    verdicts |= {row["id"]: ["Wrong"] * 4 + ["Partial"] * 2 for row in (agreed, trivial)}
    Path("data/judges").mkdir(parents=True)
    Path("data/judges/verdicts.json").write_text(json.dumps(verdicts), encoding="utf-8")
    [judges, quick] = _commands("hieval_stage1")
    assert judges[:3] == ["prep", "construct", "verdicts"]
    assert judges.count("--model") == 6
    quick[quick.index("FILE")] = "FILE.jsonl"
    _run(quick, val=10, cal=10, test=20)
    made = _splits("data/hieval")
    assert [len(made[split]) for split in SPLITS] == [220, 10, 10, 20]
    assert {row.id for rows in made.values() for row in rows} == {row["id"] for row in contested}

    hard = [row for row in made["test"] if row.label != "Correct"]
    seen = [row for row in made["train"] if row.label != "Correct"]
    typed = [
        {**_row(int(row.id[1:]), row.label), "error_type": ERROR_TYPES[number % 5]}
        for rows in (hard, seen)
        for number, row in enumerate(rows)
    ]
    typed += [{**_row(n, "Wrong"), "error_type": ERROR_TYPES[n % 5]} for n in range(1000, 1020)]
    _write(
        "TYPES.jsonl",
        [{**row, "image": save_picture(tmp_path / f"{row['id']}.png", 30, 30)} for row in typed],
    )
    [with_types, types] = _commands("hieval_stage2")
    with_types[with_types.index("FILE")] = "TYPES.jsonl"
    _run(with_types)
    _run(types, per_class=17, val=5, cal=5)
    analysed = _splits("data/hieval_ea")
    counts = {split: Counter(map(class_of, rows)) for split, rows in analysed.items()}
    each = {"train": 17, "val": 1, "cal": 1, "test": 5}
    assert counts == {split: dict.fromkeys(ERROR_TYPES, count) for split, count in each.items()}
    num_hard = sum(item_of(row) in set(map(item_of, hard)) for row in analysed["test"])
    assert num_hard == 15
    assert all(row.images for rows in analysed.values() for row in rows)


def test_benchmarks_are_trained_on_a_qwen_vl_backbone(
    tiny_folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two steps on the made rows, and on a row of CHARTOM's justifications."""
    monkeypatch.chdir(tmp_path)
    [command] = _commands("benchmarks")
    _run(command, rows=60, val=9, cal=0, test=9)
    task = get_task("chartom-justification")
    example = LabelledExample.model_validate({**task.example, "task": task.name, "label": "x"})
    row = {**task.example, "task": task.name}
    names = enumerate(task.labels(task.rubric(example)))
    _write("reasons.jsonl", [{**row, "id": f"m{n}", "label": name} for n, name in names])
    values = yaml.safe_load(find_recipe("benchmarks").read_text(encoding="utf-8"))
    assert values["backbone"].startswith("Qwen/Qwen3-VL")
    hieval_stage1.main(
        [
            *("--config", str(find_recipe("benchmarks"))),
            *(f"backbone={tiny_folder}", "optim.max_steps=2", "optim.batch_size=4"),
            *("adapter.r=4", "adapter.alpha=4", "run.precision=fp32", "run.output=run"),
            *("data.train=[data/benchmarks/train.jsonl,reasons.jsonl]", "data.test=null"),
            *("data.allow_overlap=true", "run.response_budget=64"),
        ]
    )
    history = json.loads(Path("run/history.json").read_text(encoding="utf-8"))
    assert [entry["step"] for entry in history if "train_loss" in entry][-1] == 2
    card = json.loads(Path("run/judge.json").read_text(encoding="utf-8"))
    trained = {"charthal", "simplevqa", "chartom-fact", "chartom-justification"}
    assert card["tasks"].keys() == trained
