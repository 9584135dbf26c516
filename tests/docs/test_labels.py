"""The pages on labels and on benchmark scripts agree with fields, tasks and contracts."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, get_args

import pytest

from cli.service.doctor import contract_models, model_names
from cli.tasks import describe
from judging.judge import Judge
from judging.judge.card import SHIPPED, JudgeCard
from judging.models.backbones import Backbone
from judging.tasks import TASKS, get_task, task_names
from judging.tasks.hieval_ea import ERROR_TYPES
from judging.types import JudgeRequest, ReferenceMode, Status, Verdict
from serve.chat.contract import CHAT_CONTRACTS
from serve.chat.models import ModelNames
from serve.queue.service import Service
from tests.docs.markdown_pages import DOCS
from tests.serve.chat.made_up import KnowingJudge
from tests.serve.made_up import FakeJudge
from tests.serve.sockets import serving_judges

PAGE = DOCS / "labels.md"
EXAMPLES_PER_LABEL = 3


@dataclass(frozen=True)
class LabelExample:
    """One row of a table of examples."""

    section: str
    label: str
    cells: tuple[str, ...]

    def request(self, task: str, mode: ReferenceMode) -> JudgeRequest:
        """Return the example as a request."""
        question, references, response, _ = self.cells
        separator = " / " if mode == "any" else "; "
        return JudgeRequest(
            task=task,
            question=question,
            references=tuple(references.split(separator)),
            reference_mode=mode,
            responses=(response.replace("\\|", "|"),),
        )


def test_every_field_and_status_is_explained_once_and_in_order() -> None:
    names = [cells[0].strip("`") for section, cells in tables() if section == "The fields"]
    assert names == list(Verdict.model_fields)
    statuses = [cells[0].strip("`") for section, cells in tables() if section == "Status"]
    assert sorted(statuses) == sorted(get_args(Status))


@pytest.mark.parametrize(
    ("section", "task", "mode"),
    [
        ("Correct and Wrong", "hieval-qs", "any"),
        ("Correct, Partial and Wrong", "hieval-qs", "all"),
    ],
)
def test_every_label_of_the_quick_score_has_examples(
    section: str, task: str, mode: ReferenceMode
) -> None:
    rows = [row for row in examples() if row.section == section]
    request = rows[0].request(task, mode)
    for row in rows:
        get_task(task).check(row.request(task, mode))
    labels = get_task(task).labels(get_task(task).rubric(request))
    assert [row.label for row in rows] == [
        label for label in labels for _ in range(EXAMPLES_PER_LABEL)
    ]


def test_every_type_of_error_has_examples() -> None:
    rows = [row for row in examples() if row.section == "The five types of error"]
    assert [row.label for row in rows] == [
        error for error in ERROR_TYPES for _ in range(EXAMPLES_PER_LABEL)
    ]


@pytest.mark.slow
def test_the_shipped_judge_decides_as_the_page_says(embedded: Backbone) -> None:
    rows = [row for row in examples() if row.section == "Correct and Wrong"]
    verdicts = Judge.load("embedded-qs").grade([row.request("hieval-qs", "any") for row in rows])
    agree = [verdict.label == row.label for verdict, row in zip(verdicts, rows, strict=True)]
    assert agree == [True] * 6


def examples() -> Iterator[LabelExample]:
    """Yield the examples of the page, with the label that stands above their table."""
    section = label = ""
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            section, label = line.removeprefix("## "), ""
        elif heading := re.match(r"\*\*([A-Z][\w ]+)\*\*:", line):
            label = heading[1]
        elif label and line.startswith("| ") and not line.startswith("| question"):
            yield LabelExample(section, label, _cells(line))


def tables() -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the rows of the tables of fields and statuses, without headings."""
    section = ""
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            section = line.lstrip("# ").removesuffix(" of a verdict")
        elif line.startswith("| `"):
            yield section, _cells(line)


def _cells(line: str) -> tuple[str, ...]:
    return tuple(cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1])


HARNESSES_PAGE = Path("docs/harnesses.md").read_text(encoding="utf-8")
MODEL = re.compile(r"custos/(?!custos/)([a-z][a-z-]*)")
JUDGES = (
    "embedded-benchmarks",
    "embedded-criterion",
    "embedded-ea",
    "embedded-pair",
    "embedded-qs",
)


def models_of(judges: dict[str, FakeJudge]) -> dict[str, str]:
    """Return the names of GET /v1/models with the model that answers."""
    return {name: model.name for name, model in ModelNames(Service(judges), {}).items()}


def shipped() -> dict[str, FakeJudge]:
    judges = {}
    for name in JUDGES:
        card = JudgeCard.model_validate_json((SHIPPED / name / "judge.json").read_bytes())
        judges[name] = FakeJudge(name, tuple(card.tasks))
        judges[name].card = card
        calibration = SHIPPED / name / "calibration.json"
        if calibration.exists():
            known: Any = SimpleNamespace(rubrics=json.loads(calibration.read_bytes())["rubrics"])
            judges[name].calibration = known
    return judges


def test_the_table_names_the_model_of_every_script() -> None:
    table = [line for line in HARNESSES_PAGE.splitlines() if line.startswith("| ")]
    assert {name for line in table for name in MODEL.findall(line)} == set(CHAT_CONTRACTS.names())
    assert contract_models() == {f"custos/{name}" for name in CHAT_CONTRACTS.names()}


def test_every_contract_is_of_a_task_that_custos_tasks_shows() -> None:
    shown = {describe(task)["name"] for task in TASKS}
    assert shown == set(task_names()) >= {contract.task for contract in CHAT_CONTRACTS}


def test_an_untrained_model_answers_every_name_and_its_own() -> None:
    names = set(models_of({"embedded": FakeJudge("embedded", task_names())}))
    assert names == contract_models() | {"embedded"}


def test_what_works_without_training_is_what_the_shipped_judges_answer() -> None:
    _, _, section = HARNESSES_PAGE.partition("### What works without training")
    section = section.partition("\n### ")[0]
    listed, _, others = section.partition("The other names")
    models = models_of(shipped())
    for item in listed.split("\n- ")[1:]:
        judge = re.findall(r"`(embedded-[a-z]+)`", item)[0]
        for name in MODEL.findall(item):
            assert models[f"custos/{name}"] == f"custos/{name}@{judge}", item
    answered = {name for name in models if "@" not in name}
    assert answered == {f"custos/{name}" for name in MODEL.findall(listed)}
    named = set(re.findall(r"`([a-z-]+)`", others))
    unanswered = {contract.name for contract in CHAT_CONTRACTS} - {
        name.removeprefix("custos/") for name in answered
    }
    assert unanswered - {"chartom"} <= named  # it is named by its task


def test_the_doctor_asks_each_judge_once_under_each_name() -> None:
    models = models_of(shipped())
    names = model_names(models)
    assert set(names) >= contract_models()
    assert "custos/qa@embedded-ea" in names
    assert "custos/qa@embedded-qs" not in names  # custos/qa asks it
    assert {models[name] for name in names if name in models} == set(models.values())


def test_the_schema_of_the_page_is_filled(capsys: pytest.CaptureFixture[str]) -> None:
    [block] = [part for part in HARNESSES_PAGE.split("```python\n") if "class Grade" in part]
    code, _, _ = block.partition("```")
    with serving_judges({"knowing": KnowingJudge()}) as address:
        exec(
            compile(code.replace("http://127.0.0.1:8000", address), "page", "exec"),
            {"__name__": "page"},
        )
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2
    assert all("passed=False score=1 verdict='fail'" in line for line in lines)
