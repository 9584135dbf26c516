"""The command line as a whole: its help, its examples, its tasks and backbones."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from cli.main import app
from judging.judge import Judge
from judging.judge.card import shipped_judges, shipped_judges_on_embedded
from judging.tasks import get_task, task_names
from judging.types import JudgeRequest
from tests.cli.made_up import custos, succeed
from tests.real_weights.made_up import MARKS

OUTPUTS = ("json_out", "markdown_out", "html_out")
"""Files that are written only if they are named."""
HEAVY = ("torch", "transformers", "peft", "datasets", "matplotlib", "sklearn", "scipy", "fastapi")


def verbs(command: Any, path: str = "custos") -> Iterator[tuple[str, Any]]:
    """Yield every verb with its name in full."""
    for name, child in getattr(command, "commands", {}).items():
        if child.hidden:
            continue
        if hasattr(child, "commands"):
            yield from verbs(child, f"{path} {name}")
        else:
            yield f"{path} {name}", child


EVERY_VERB = dict(verbs(get_command(app)))
EVERY_GROUP = {
    f"custos {name}": group
    for name, group in get_command(app).commands.items()  # type: ignore[attr-defined]
    if hasattr(group, "commands")
}


def test_every_verb_and_option_explains_itself_with_an_example_that_works() -> None:
    for verb, command in EVERY_VERB.items():
        summary, *_, example = command.help.strip().split("\n\n")
        assert summary[0].isupper() and summary.endswith("."), verb
        assert example.startswith(f"Example: {verb}"), verb
        words = " ".join(command.help.split("Example: ")[1].split()).removeprefix(verb).split()
        names = {name for option in command.params for name in option.opts}
        assert {word for word in words if word.startswith("--")} <= names, verb
        for option in command.params:
            if option.name == "help":
                continue
            assert option.help and option.help[0].isalpha(), (verb, option.name)
            has_default = option.default is not None or option.required or option.name == "key"
            is_explained = "Default:" in option.help or option.name in OUTPUTS
            assert has_default or is_explained, (verb, option.name)


def test_a_seed_below_0_is_refused_at_once() -> None:
    """Random numbers of NumPy take none, and those of Python take -1 for 1."""
    seeded = [verb for verb, c in EVERY_VERB.items() if any(o.name == "seed" for o in c.params)]
    assert len(seeded) > 10
    for verb in seeded:
        result = custos(*verb.split()[1:], "--seed", "-1")
        message = " ".join(result.stderr.replace("│", " ").split())
        assert result.exit_code == 2 and "'--seed'" in message, verb
        assert "greater than or equal to 0" in message, verb


def test_help_cuts_nothing_on_80_columns() -> None:
    for verb in ("", *EVERY_GROUP, *EVERY_VERB):
        shown = CliRunner().invoke(app, [*verb.split()[1:], "--help"], env={"COLUMNS": "80"}).stdout
        letters = "".join(shown.split())  # lines end after spaces and hyphens
        command = EVERY_VERB.get(verb) or EVERY_GROUP.get(verb, get_command(app))
        children = getattr(command, "commands", {}).values()
        texts = [c.help.partition("\n\n")[0].rstrip(".") for c in children if not c.hidden]
        texts += [option.help or "" for option in command.params]
        assert [text for text in texts if "".join(text.split()) not in letters] == [], verb


def test_version() -> None:
    result = custos("--version")
    assert (result.exit_code, result.stdout) == (0, "custos 0.1.0\n")


def test_help_loads_nothing_heavy() -> None:
    code = f"import sys, cli.main; print([name for name in {HEAVY} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


@pytest.mark.usefixtures("forking_python")
def test_ctrl_c_ends_quietly(tmp_path: Path) -> None:
    rows, out = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    rows.write_text('{"question": "q", "references": ["a"], "response": "a"}\n')
    code = (
        "import sys, time\n"
        "from judging.judge import Judge\n"
        "def load(source):\n"
        "    print('loading', flush=True)\n"
        "    time.sleep(60)\n"
        "Judge.load = load\n"
        "from cli.main import app\n"
        f"app(['grade', '--judge', 'run', '--in', {str(rows)!r}, '--out', {str(out)!r}])\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "loading\n"
    time.sleep(0.1)
    os.kill(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=20)
    assert (process.returncode, errors) == (130, "")


@pytest.mark.parametrize(
    ("command", "suggestion"),
    [
        ("gradee", "grade"),
        ("task", "tasks"),
        ("prep evona", "evouna"),
        ("bench tabel", "table"),
        ("serve --prot 80", "--port"),
        ("grade --judeg x", "--judge"),
        ("tasks --jsn", "--json"),
    ],
)
def test_what_is_misspelt_suggests_the_nearest(command: str, suggestion: str) -> None:
    result = custos(*command.split())
    assert result.exit_code != 0
    assert suggestion in result.stderr.partition("Error")[2]


EXPECTED = {
    # A rule reads 41 mm for 40 mm; with no options or order in the row the judge decides.
    "embedded-benchmarks": {
        *(("chartom-fact", "Correct"), ("chartom-fact", "Incorrect"), ("simplevqa", "Correct"))
    },
    "embedded-criterion": {("criterion", "Pass")},
    "embedded-ea": {("hieval-ea", "Wrong"), ("hieval-qs", "Correct")},
    "embedded-pair": {("truthful-pair", "A")},
    "embedded-qs": {("hieval-qs", "Correct")},
    "qwen-qs": {("hieval-qs", "Correct")},
}
"""Labels of the example rows, which are plain cases."""


def shown(*arguments: str) -> str:
    result = succeed("tasks", *arguments)
    return result.stdout


def described() -> list[dict[str, Any]]:
    descriptions: list[dict[str, Any]] = json.loads(shown("--json"))
    return descriptions


def shown_rows() -> list[dict[str, Any]]:
    """Return the rows of the text, as a user would copy them."""
    return [
        json.loads(line[line.index("{") :])
        for line in shown().splitlines()
        if line.lstrip().startswith("row ")
    ]


def test_every_task_is_shown_with_a_row_that_it_takes() -> None:
    rows = shown_rows()
    assert [row["task"] for row in rows] == list(task_names())
    assert rows == [description["row"] for description in described()]
    for row in rows:
        get_task(row["task"]).check(JudgeRequest.model_validate(row))


def test_each_rubric_has_a_row_and_its_labels() -> None:
    for description in described():
        task = get_task(description["name"])
        rows = task.rows_by_rubric()
        assert next(iter(rows.values())) == description["row"]
        assert list(rows) == list(description["rubrics"])
        for rubric, row in rows.items():
            request = JudgeRequest.model_validate(row)
            task.check(request)
            assert task.rubric(request) == rubric
            assert list(task.labels(rubric)) == description["rubrics"][rubric]
        assert description["variants"] == list(task.variants)
        assert all(row.get(field) for row in rows.values() for field in description["required"])


def test_the_judges_are_those_whose_cards_name_the_task() -> None:
    judges = {each["name"]: each["judges"] for each in described()}
    assert judges["hieval-ea"]["embedded-ea"] == ["plain/all"]
    assert "plain/any" in judges["hieval-qs"]["embedded-qs"]
    assert {name for known in judges.values() for name in known} == set(shipped_judges())
    assert judges["charthal"] == {}


def test_one_task_in_words() -> None:
    text = shown("charthal")
    assert text.startswith("charthal\n  for ")
    assert "references under normal-closed, contradictory-closed" in text
    assert "none is shipped" in text
    assert "hieval" not in text
    assert "Correct; Wrong with one of Reasoning Error" in " ".join(shown("hieval-ea").split())
    assert "10 to 0" in shown("truthful-critique-score")


@pytest.mark.usefixtures("embedded")
@pytest.mark.parametrize(
    "name", [*shipped_judges_on_embedded(), pytest.param("qwen-qs", marks=MARKS)]
)
def test_a_shipped_judge_grades_the_rows_of_its_tasks(name: str) -> None:
    judge = Judge.load(name)
    assert judge.card
    rows = [row for row in shown_rows() if row["task"] in judge.tasks]
    for task, rubrics in judge.card.tasks.items():
        of_rubrics = [get_task(task).rows_by_rubric()[rubric] for rubric in rubrics]
        rows += [row for row in of_rubrics if row not in rows]
    verdicts = judge.grade(map(JudgeRequest.model_validate, rows))
    labels = [(row["task"], verdict.label) for row, verdict in zip(rows, verdicts, strict=True)]
    assert set(labels) == EXPECTED[name]


def test_the_embedded_backbone_is_described_and_answers() -> None:
    result = succeed("backbone", "--smoke")
    facts = dict(line.split(maxsplit=1) for line in result.stdout.splitlines()[:8])
    assert facts["name"] == facts["version"] == "embedded@1"
    assert int(facts["vocabulary"].replace(",", "")) == 49_156
    assert int(facts["parameters"].replace(",", "")) > 130_000_000
    assert Path(facts["folder"], "config.json").is_file()
    assert "Paris" in result.stdout.splitlines()[-1]


def test_an_unknown_backbone(tmp_path: Path) -> None:
    result = custos("backbone", str(tmp_path))
    assert result.exit_code == 2
    assert f"error: backbone '{tmp_path}' cannot be loaded" in result.stderr


def test_backbones_are_listed_with_what_is_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUSTOS_CACHE", str(tmp_path))
    (tmp_path / "qwen2.5-coder-0.5b@1").mkdir()
    (tmp_path / "qwen2.5-coder-0.5b@1/config.json").touch()
    result = custos("backbones")
    here = {line.split()[0]: line.split()[-1] for line in result.stdout.splitlines()[1:]}
    assert here.pop("qwen2.5-coder-0.5b") == "yes"
    assert here == dict.fromkeys(("embedded@1", "embedded@2", "qwen2.5-coder-1.5b"), "no")
