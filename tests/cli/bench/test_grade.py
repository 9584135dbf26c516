"""Responses under a judge, own rubrics or a service: up to the table; what is refused."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from benchmarks.framework.base import BENCHMARKS, get_benchmark
from judging.judge import Judge
from judging.tasks import TASKS, get_task
from judging.tasks import base as tasks
from serve.queue.service import Service
from tests.cli.bench.made_up import Grader, charthal_responses, fail_on, grade, read, run, write
from tests.cli.made_up import succeed
from tests.clients.fake_server import FakeServer, Say, completion
from tests.conftest import Folders
from tests.serve.made_up import card_of
from tests.serve.sockets import serving

MINE = ("--judge", "j")


def test_charthal_from_responses_to_the_table(judge: Grader, tmp_path: Path) -> None:
    responses = charthal_responses("right", "wrong", "right", "", "right")
    done = grade(tmp_path, responses, *MINE)
    out, table = tmp_path / "out.json", tmp_path / "table.json"
    assert done.exit_code == 0, done.stderr
    assert f"5 items graded, 0 without a label: {out}" in done.stdout
    graded = read(out)
    assert [row["score"] for row in graded.values()] == [1, 0, 1, 0, 1]
    for key, row in responses.items():
        assert {name: graded[key][name] for name in row} == row
    run_file = tmp_path / "out.json.run.json"
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["in.json", out.name, run_file.name]
    assert (read(run_file)["cost"], read(run_file)["requests"]) == ("free", 5)
    assert read(run_file)["seconds"] > 0

    shown = succeed("bench", "table", "charthal", "--graded", out, "--json", table)
    assert read(table)["overall"] == {"correct": 3, "total": 5, "score": 60}
    assert read(table)["per_cell"]["desc_irrel"] == {"correct": 0, "total": 2, "score": 0}
    for text in ("100.0% scored", "judges: fake/charthal", "GPT-5-mini", "27.02"):
        assert text in shown.stdout


def test_rules_grade_without_a_judge(judge: Grader, tmp_path: Path) -> None:
    rows = [
        {"data_id": 1, "language": "EN", "question": "q1", "answer": "Elm", "response": "An elm."},
        {"data_id": 2, "language": "CN", "question": "q2", "answer": "榆树", "response": "橡树"},
        {"data_id": 3, "language": "EN", "question": "q3", "answer": "Elm", "response": "No idea"},
    ]
    done = grade(tmp_path, rows, "--judge", "rules", name="simplevqa")
    assert done.exit_code == 0, done.stderr
    labels = [row["verdicts"]["simplevqa"]["label"] for row in read(tmp_path / "out.json")]
    assert labels == ["Correct", "Incorrect", "Not attempted"]
    assert "rules: not a judge" in done.stdout
    assert judge.loaded == []


def test_chartom_asks_the_judge_only_for_what_rules_leave(judge: Grader, tmp_path: Path) -> None:
    common = {"kind": "bar", "question": "?", "question_type": "number", "answer": 5, "hmi": 0.9}
    said = {"fact_response": "9", "mind_response": "0.8 right"}
    rows = [
        {**common, "id": "A_1", "fact_response": "5"},
        {**common, "id": "B_1", "fact_response": "4 or 5, right"},
        {**common, "id": "B_2", "manipulation": "inverted y-axis", **said},
    ]
    grade(tmp_path, rows, *MINE, name="chartom")
    assert judge.batches == [["B_1", "B_2"]]
    graded = read(tmp_path / "out.json")
    assert [row["fact_correct"] for row in graded] == [True, True, False]
    assert graded[2]["justification_named"] is True
    shown = run("table", "chartom", "--graded", tmp_path / "out.json")
    assert "overall / fact_accuracy" in shown.stdout
    assert "inverted y-axis" in shown.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["charthal", "--judge", "http://127.0.0.1:9/v1"], "--model: name the model"),
        (["charthal", "--judge", "m=r", "--engine", "openai"], "--engine openai and --base-url"),
        (["truthfulvqa", "--rubric-file", "x"], "only charthal and simplevqa"),
        (["vqa", *MINE], "benchmark 'vqa' is not one of"),
        (["charthal"], "--judge: 'charthal' needs one, for charthal"),
        (["charthal", *MINE, "--out", "x.csv"], "--out 'x.csv'"),
        (["simplevqa", *MINE], "item '0_0': fields 'answer', 'language' are"),
    ],
)
def test_mistakes_are_one_line(
    judge: Grader, tmp_path: Path, arguments: list[str], message: str
) -> None:
    name, *options = arguments
    done = grade(tmp_path, charthal_responses("x"), *options, name=name)
    assert done.exit_code == 2
    assert message in done.stderr
    assert done.stderr.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["in.json"]


def test_a_judge_that_was_not_measured_on_the_task_says_so(judge: Grader, tmp_path: Path) -> None:
    said, out = charthal_responses("right", "wrong"), tmp_path / "out.json"
    done = grade(tmp_path, said, *MINE)
    line = "judge fake: not measured on this task (charthal)"
    assert line in done.stdout
    [told] = read(tmp_path / "out.json.run.json")["measured"]
    assert told.startswith(f"{line}; measured without training: embedded@1 on ")
    assert line in run("table", "charthal", "--graded", out).stdout

    part = {"n": 542, "accuracy": {"value": 0.825, "low": 0.793, "high": 0.858, "n": 542}}
    judge.folder = tmp_path / "run"
    judge.folder.mkdir()
    write(judge.folder / "report.json", {"slices": {"task": {"charthal/normal-open": part}}})
    done = grade(tmp_path, said, *MINE)
    measured = "accuracy 0.825 [0.793, 0.858] on 542 rows (normal-open)"
    assert f"judge fake on charthal: {measured}" in done.stdout


def test_grading_asks_again_only_for_what_failed(fake: FakeServer, tmp_path: Path) -> None:
    out, partial = tmp_path / "out.json", tmp_path / "out.json.partial"
    said, server = charthal_responses("one", "two", "three"), ("--judge", fake.url, "--model", "m")
    fail_on("two", fake)
    done = grade(tmp_path, said, *server)
    assert (done.exit_code, len(fake.seen)) == (0, 3)
    assert f"1 failed, kept in {partial}; --retry-failed grades them again\n" in done.stderr
    first = read(out)
    fail_on("nothing", fake)
    assert grade(tmp_path, said, *server).exit_code == 0
    assert (fake.seen, read(out)) == ([], first)
    assert grade(tmp_path, said, *server, "--retry-failed").exit_code == 0
    assert ["two" in seen.text for seen in fake.seen] == [True]
    assert [row["score"] for row in read(out).values()] == [1, 1, 1]
    assert not partial.exists()


def test_grading_without_a_single_verdict_fails(fake: FakeServer, tmp_path: Path) -> None:
    fail_on("Who won?", fake)
    said = charthal_responses("one", "two")
    done = grade(tmp_path, said, "--judge", fake.url, "--model", "m")
    assert done.exit_code == 1
    assert done.stderr.endswith(f"error: {tmp_path / 'in.json'}: no row got a verdict\n")
    assert (tmp_path / "out.json.partial").exists()


RUBRICS = {name: f"OUR OWN {name}" for name in get_task("charthal").variants}


@pytest.fixture
def rubrics(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tasks.TASKS, "entries", dict(tasks.TASKS.entries))
    path = tmp_path / "rubrics.yaml"
    path.write_text(yaml.safe_dump(RUBRICS))
    return path


def test_a_users_wording_reaches_a_server(fake: FakeServer, rubrics: Path, tmp_path: Path) -> None:
    """The whole way over a socket: own instructions out, digits back, cost kept."""
    fake.answer = lambda seen: Say(
        body=completion("Score: 1" if "right" in seen.text else "maybe", 100, 10)
    )
    said, out = charthal_responses("right", "wrong", ""), tmp_path / "out.json"
    server = ("--judge", fake.url, "--model", "m")
    priced = ("--prompt-price", "1", "--completion-price", "10")
    done = grade(tmp_path, said, *server, "--rubric-file", rubrics, *priced)
    assert done.exit_code == 0, done.stderr
    rows = list(read(out).values())
    assert [row["score"] for row in rows] == [1, -1, 0]
    assert "in.json row 2: no label in the answer: maybe" in done.stderr
    for seen in fake.seen:
        system, user = seen.body["messages"]
        assert system["content"] == "OUR OWN irrelevant"
        assert user["content"].startswith("Question: Who won?\nResponse: ")
        assert seen.body["temperature"] == 0
    assert read(tmp_path / "out.json.run.json")["cost"] == pytest.approx(2 * (100 + 10 * 10) / 1e6)

    plain = tmp_path / "plain.json"
    assert grade(tmp_path, said, *server, "--out", plain).exit_code == 0
    judges = {
        path: {row["verdicts"]["charthal"]["judge"] for row in read(path).values()}
        for path in (out, plain)
    }
    assert all(len(found) == 1 for found in judges.values())
    assert judges[out] != judges[plain]


def test_a_zero_shot_judge_takes_a_users_wording(
    tiny_folders: Callable[[str], str], rubrics: Path, tmp_path: Path
) -> None:
    found = []
    for more in (("--rubric-file", rubrics), ()):
        said, judge = charthal_responses("It is unrelated."), tiny_folders("qwen2_5_vl")
        assert grade(tmp_path, said, "--judge", judge, *more).exit_code == 0
        found.append(read(tmp_path / "out.json")["0_0"]["verdicts"]["charthal"])
    assert found[0]["judge"] != found[1]["judge"]
    assert found[0]["probabilities"] != found[1]["probabilities"]


OFFICIAL = "Is it unrelated?\nQ: <|QUESTION|>\nR: <|RESPONSE|>\n\nScore it."


@pytest.fixture
def official(rubrics: Path) -> Path:
    rubrics.write_text(yaml.safe_dump({**RUBRICS, "irrelevant": OFFICIAL}))
    return rubrics


@pytest.mark.parametrize(
    ("reply", "score"),
    [
        ("Score: 1\nIt says so.", 1),
        ("**Score**: 0", 0),
        ("1", 1),
        ("Reason: none.\n\nscore - 1", 1),
        ("Score: 10", -1),
        ("a\nb\nc\nScore: 1", -1),
        ("Score: 0.5", -1),
    ],
)
def test_a_prompt_with_the_official_marks_is_the_whole_message(
    fake: FakeServer, official: Path, tmp_path: Path, reply: str, score: int
) -> None:
    fake.answer = lambda seen: Say(body=completion(reply))
    server = ("--judge", fake.url, "--model", "m", "--rubric-file", official)
    grade(tmp_path, charthal_responses("See <|QUESTION|>: 3 apples."), *server)
    [message] = fake.seen[0].body["messages"]
    assert message == {
        "role": "user",
        "content": "Is it unrelated?\nQ: Who won?\nR: See <|QUESTION|>: 3 apples.\n\nScore it.",
    }
    assert [row["score"] for row in read(tmp_path / "out.json").values()] == [score]


def test_local_judges_refuse_whole_prompts_and_trained_ones_every_wording(
    judge: Grader, official: Path, tmp_path: Path
) -> None:
    trained = card_of({"charthal": ("desc",)})
    for card, fault in ((None, "holds whole prompts"), (trained, "under other instructions")):
        judge.card = card
        done = grade(tmp_path, charthal_responses("x"), *MINE, "--rubric-file", official)
        assert done.exit_code == 2
        assert fault in done.stderr
        assert judge.batches == []


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "cannot be read"),
        ("- a", "expected every rubric's name"),
        (yaml.safe_dump({**RUBRICS, "mine": "x"}), "rubric 'mine' is not one of normal-closed"),
        (yaml.safe_dump({**RUBRICS, "normal-open": " "}), "rubric 'normal-open' has no text"),
    ],
)
def test_rubric_files_that_cannot_be_used(
    judge: Grader, tmp_path: Path, content: str, message: str
) -> None:
    own = tmp_path / "own.yaml"
    own.write_text(content)
    done = grade(tmp_path, charthal_responses("x"), "--judge", "j", "--rubric-file", own)
    assert done.exit_code == 2
    assert message in done.stderr


def items_of(name: str) -> list[dict[str, Any]]:
    """Return the benchmark's examples; where rules decide those, some that are harder too."""
    *others, item = get_benchmark(name).example
    if name == "chartom":
        said = {"fact_response": "I cannot tell.", "mind_response": "0.8: the axis."}
        others.append({**item, **said, "id": "3_1", "hmi": 0.7, "manipulation": "a cut axis"})
    if name == "truthfulvqa":
        texts = ("The answer is B.", "I do not know", "a cup", "B, because A is wrong")
        others += [{**item, "question_id": text, "response": text} for text in texts]
    return [*others, item]


def test_labels_are_equal(tiny_folders: Folders, tmp_path: Path) -> None:
    source = tiny_folders("qwen2_5_vl")
    num_compared = 0
    with serving(Service({"untrained": Judge.load(source)})) as client:
        for benchmark in BENCHMARKS:
            items = items_of(benchmark.name)
            done = grade(tmp_path, items, "--judge", source, name=benchmark.name)
            assert done.exit_code == 0, done.output
            graded = read(tmp_path / "out.json")
            rows = list(graded.values()) if benchmark.keyed else graded
            for row, item in zip(rows, items, strict=True):
                for request in benchmark.requests(item):
                    body = request.model_dump(mode="json", exclude_defaults=True)
                    answer = client.post("/judge", json=body)
                    assert answer.status_code == 200, answer.text
                    assert row["verdicts"][request.task]["label"] == answer.json()["label"], body
                    num_compared += 1
                if benchmark.name == "truthfulvqa":
                    fields = {"choices": item["options"], "references": item["answer"]}
                    fields |= {key: item[key] for key in ("question", "response")}
                    option = {"task": "truthful-option", "variant": "official"}
                    label = client.post("/judge", json=option | fields).json()["label"]
                    assert row["is_correct"] == (label == "Correct"), fields
        for task in TASKS:
            verdict = client.post("/judge", json={**task.example_row(), "mode": "score"}).json()
            assert verdict["label"] in {
                label.partition(";")[0]
                for rubric in task.rows_by_rubric()
                for label in task.labels(rubric)
            }
            by_rule = verdict["posterior"] is None
            assert by_rule or "not measured on this task" in verdict["message"]
        # A judge is not asked what rules read.
        body = {"task": "chartom-fact", "variant": "number", "question": "How much rain?"}
        for reference, response, label in (
            ("40 mm", "41 mm", "Correct"),
            ("1,200 km", "1300000 m", "Correct"),
            ("40 mm", "50", "Incorrect"),
        ):
            row = {**body, "references": [reference], "response": response}
            verdict = client.post("/judge", json=row).json()
            assert (verdict["label"], verdict["posterior"]) == (label, None)
    assert num_compared == 8


@pytest.mark.parametrize(
    "prompt",
    [
        "问题: <|QUESTION|>\n正确答案: <|REF_ANS|>\n预测答案: \n[预测答案0]：<|RESPONSE|>",
        '用{"预测答案0": "正确"}回答',  # without marks the question and the answers follow it
    ],
)
def test_simplevqas_official_replies_are_read(
    fake: FakeServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, prompt: str
) -> None:
    monkeypatch.setattr(tasks.TASKS, "entries", dict(tasks.TASKS.entries))
    rubrics = tmp_path / "official.yaml"
    rubrics.write_text(yaml.safe_dump({"english": prompt, "chinese": prompt}, allow_unicode=True))
    fake.answer = lambda seen: Say(
        body=completion('{"预测答案0": "正确"}' if "Seine" in seen.text else "A: Correct")
    )
    item = {"language": "EN", "question": "Which river?", "answer": "Loire"}
    items = [{**item, "data_id": str(n), "response": text} for n, text in enumerate(["Seine", "x"])]
    server = ("--judge", fake.url, "--model", "m", "--rubric-file", rubrics)
    done = grade(tmp_path, items, *server, name="simplevqa")
    assert done.exit_code == 0, done.stderr
    rows = read(tmp_path / "out.json")
    conclusions = [part for row in rows for part in row["judge_res"].values()]
    assert conclusions == [{"conclusion": "正确"}] * 2
