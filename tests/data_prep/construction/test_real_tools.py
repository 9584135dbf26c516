"""Tasks and labels through the real Label Studio and Argilla, where they are installed.

Each has an environment of its own at the root: ``python -m venv .venv-harness-label_studio`` and
its ``pip install label-studio==1.23.2``; likewise ``argilla==2.8.0`` in ``.venv-harness-argilla``.
"""

import json
import os
import re
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from data_prep.tables.examples import read_examples
from judging.types import LabelledExample
from tests.cli.prep.made_up import run, write_rows
from tests.data_prep.construction.test_labelling_tools import choices

ROOT = Path(__file__).parents[3]
LABEL_STUDIO = ROOT / ".venv-harness-label_studio" / "bin" / "label-studio"
ARGILLA = ROOT / ".venv-harness-argilla" / "bin" / "python"
PASSWORD = "Right-Or-Wrong-1"

slow = pytest.mark.slow


def needs(program: Path) -> pytest.MarkDecorator:
    return pytest.mark.skipif(not program.exists(), reason=f"{program} is not installed")


class User:
    """A person with a session of their own at a Label Studio server."""

    def __init__(self, url: str, email: str) -> None:
        self.client = httpx.Client(base_url=url, timeout=60, follow_redirects=True)
        page = self.client.get("/user/signup/")
        token = re.findall(r'name="csrfmiddlewaretoken" value="([^"]+)"', page.text)[0]
        form = {"csrfmiddlewaretoken": token, "email": email, "password": PASSWORD}
        self.client.post("/user/signup/", data=form, headers={"referer": url}).raise_for_status()
        self.url = url

    def __call__(self, method: str, path: str, **arguments: Any) -> Any:
        token = self.client.cookies["csrftoken"]
        headers = {"x-csrftoken": token, "referer": self.url}
        answer = self.client.request(method, path, headers=headers, **arguments)
        assert answer.is_success, answer.text
        return answer.json() if answer.content else None

    def annotate(self, task: int, **given: str) -> None:
        body = {"result": choices(**given), "lead_time": 1}
        self("POST", f"/api/tasks/{task}/annotations/", json=body)


@pytest.fixture(scope="module")
def label_studio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address of a server over SQLite."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    folder = tmp_path_factory.mktemp("label-studio")
    settings = {
        **{"LABEL_STUDIO_BASE_DATA_DIR": str(folder), "DJANGO_DB": "sqlite", "SENTRY_DSN": ""},
        **{"COLLECT_ANALYTICS": "False", "LATEST_VERSION_CHECK": "False"},
        "FRONTEND_SENTRY_DSN": "",
    }
    command = [str(LABEL_STUDIO), "start", "--no-browser", "-p", str(port)]
    url = f"http://127.0.0.1:{port}"
    with (
        (folder / "log").open("wb") as log,
        subprocess.Popen(command, env={**os.environ, **settings}, stdout=log, stderr=log) as server,
    ):
        try:
            for _ in range(300):
                time.sleep(1)
                try:
                    httpx.get(f"{url}/health").raise_for_status()
                    break
                except httpx.HTTPError:
                    assert server.poll() is None, (folder / "log").read_text()
            yield url
        finally:
            server.terminate()


def read_back(table: Path, *options: object) -> list[LabelledExample]:
    out = table.with_name("labelled.csv")
    out.unlink(missing_ok=True)
    run("construct", "labelled", *options, "--in", table, "--out", out)
    return [row for _, row in read_examples(out)]


@slow
@needs(LABEL_STUDIO)
def test_labels_come_back_from_label_studio(label_studio: str, tmp_path: Path) -> None:
    rows = [
        {
            **{"id": f"q{n}", "task": "hieval-ea", "question": f"What is {n} + {n}?"},
            **{"references": [str(2 * n)], "response": f"It is <b>{n}</b> & {n}.\n2nd line"},
            "metadata": {"answerer": "model-a"},
        }
        for n in range(6)
    ]
    table = write_rows(tmp_path / "rows.jsonl", rows)
    out = tmp_path / "tasks"
    run("construct", "labelling", "label-studio", table, "--out", out)
    anna, ben = User(label_studio, "anna@lab.org"), User(label_studio, "ben@lab.org")
    config = (out / "labels.xml").read_text(encoding="utf-8")
    project = anna("POST", "/api/projects", json={"title": "Round", "label_config": config})["id"]
    tasks = json.loads((out / "tasks.json").read_text(encoding="utf-8"))
    anna("POST", f"/api/projects/{project}/import", json=tasks)
    listed = anna("GET", f"/api/tasks?project={project}")["tasks"]
    one, two, three, four, five, six = sorted(task["id"] for task in listed)
    right, wrong = {"score": "Correct"}, {"score": "Wrong", "error_type": "Other"}
    for task in (one, two, three):
        anna.annotate(task, **right)
    anna.annotate(three, **wrong)
    ben.annotate(one, **right)
    ben.annotate(two, **wrong)
    ben("POST", f"/api/tasks/{three}/annotations/", json={"result": [], "was_cancelled": True})
    ben("POST", f"/api/tasks/{four}/drafts", json={"result": choices(**right)})
    ben("POST", f"/api/tasks/{five}/annotations/", json={"result": choices(**wrong),
                                                         "ground_truth": True})  # fmt: skip
    anna.annotate(five, **right)
    anna("DELETE", f"/api/tasks/{six}/")

    names = ("--person", "1=anna", "--person", "2=ben")
    for kind in ("JSON", "JSON_MIN"):
        path = f"/api/projects/{project}/export?exportType={kind}&download_all_tasks=true"
        export = tmp_path / f"{kind}.json"
        export.write_text(json.dumps(anna("GET", path)), encoding="utf-8")
        labelled = {row.id: row for row in read_back(table, export, *names)}
        assert {name: row.annotator_labels for name, row in labelled.items()} == {
            "q0": {"anna": "Correct", "ben": "Correct"},
            "q1": {"anna": "Correct", "ben": "Wrong; Other"},
            "q2": {"anna": "Wrong; Other"},
            "q4": {"anna": "Correct", "ben": "Wrong; Other"},
        }
        assert labelled["q0"].response == rows[0]["response"]
        assert labelled["q0"].metadata == {"answerer": "model-a"}
        if kind == "JSON":  # the other one does not say which annotation is marked as right
            assert labelled["q4"].label == "Wrong; Other"


PROGRAM = """
import json, sys
from unittest.mock import MagicMock
import argilla as rg
from datasets import Dataset
from argilla.client import Argilla
from argilla.records._io import GenericIO, JsonIO
from argilla._models import DatasetModel

Argilla._get_default = classmethod(lambda cls: MagicMock())  # no server is asked
folder = sys.argv[1]
settings = rg.Settings.from_json(f"{folder}/.argilla/settings.json")
settings.validate()
DatasetModel(**json.load(open(f"{folder}/.argilla/dataset.json")))
records = JsonIO._records_from_json(f"{folder}/records.json")
names = {field.name for field in settings.fields}
needed = {field.name for field in settings.fields if field.required}
options = {
    question.name: [option["value"] for option in question._model.settings.options]
    for question in settings.questions
    if hasattr(question._model.settings, "options")
}
for record in records:
    assert needed <= record.fields.keys() <= names
    for suggestion in record.suggestions:
        assert suggestion.value in options[suggestion.question_name]
users = [f"00000000-0000-0000-0000-00000000000{n}" for n in (1, 2, 3)]
answers = json.loads(sys.argv[2])
for record, given in zip(records, answers):
    for user, (status, values) in zip(users, given):
        for question, value in values.items():
            record.responses.add(rg.Response(question, value, user_id=user, status=status))
JsonIO.to_json(records, f"{folder}/nested.json")
rows = Dataset.from_dict(GenericIO.to_dict(records, flatten=True))  # what to_datasets does
rows.to_json(f"{folder}/flat.jsonl")
rows.to_parquet(f"{folder}/flat.parquet")
"""


def in_argilla(folder: Path, answers: list[Any]) -> None:
    command = [str(ARGILLA), "-c", PROGRAM, str(folder), json.dumps(answers)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@slow
@needs(ARGILLA)
def test_labels_come_back_from_argilla(tmp_path: Path) -> None:
    rows = [
        {"id": f"q{n}", "question": f"Is it {n}?", "references": ["a", "b"], "response": "no"}
        for n in range(4)
    ]
    table = write_rows(tmp_path / "rows.jsonl", rows)
    out = tmp_path / "tasks"
    run("construct", "labelling", "argilla", table, "--task", "hieval-ea", "--out", out)
    right, wrong = {"score": "Correct"}, {"score": "Wrong", "error_type": "Other"}
    answers = [
        [("submitted", right), ("submitted", wrong), ("submitted", wrong)],
        [("submitted", right), ("discarded", {"score": None}), ("draft", wrong)],
        [("submitted", right | {"error_type": "Other"})],  # shown though it is not asked for
        [],
    ]
    in_argilla(out, answers)
    ids = ("1=anna", "2=ben", "3=carla")
    names = [
        part for each in ids for part in ("--person", f"00000000-0000-0000-0000-00000000000{each}")
    ]
    for export in ("flat.jsonl", "flat.parquet"):
        labelled = read_back(table, out / export, *names, "--task", "hieval-ea")
        assert {row.id: (row.label, row.annotator_labels) for row in labelled} == {
            "q0": (
                "Wrong; Other",
                {"anna": "Correct", "ben": "Wrong; Other", "carla": "Wrong; Other"},
            ),
            "q1": ("Correct", {"anna": "Correct"}),
            "q2": ("Correct", {"anna": "Correct"}),
        }
    nested = read_back(table, out / "nested.json", *names, "--task", "hieval-ea")
    assert nested[0].annotator_labels == labelled[0].annotator_labels
