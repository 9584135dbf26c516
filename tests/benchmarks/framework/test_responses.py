"""A model answers: over a real socket, or as a tiny local backbone; in our words or a user's."""

import base64
import json
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from benchmarks.framework.base import get_benchmark
from benchmarks.framework.responses import (
    ask_backbone,
    build_questions,
    join_answers,
    read_wording,
)
from clients.chat import JobResult, Reply
from clients.messages import Decoding
from judging.errors import CustosError, FieldError
from judging.files.kept_work import locked
from judging.tasks import get_task
from judging.types import Verdict
from tests.cli.bench.made_up import read, run, write
from tests.clients.conftest import fake as fake
from tests.clients.fake_server import FakeServer, Say, Seen, completion

OPTIONS = ["a fish", "a bird", "a stone", "a cloud"]
RED = (200, 30, 40)


def charthal(folder: Path, count: int) -> Path:
    items = {}
    for number in range(count):
        Image.new("RGB", (8, 8), RED).save(folder / f"{number}.png")
        items[f"{number}_0"] = {
            "figure_id": number,
            "figure_path": f"{number}.png",
            "subq_idx": 0,
            "q_type": "desc",
            "q_relation": "normal",
            "question": f"What is value {number}?",
            "ref_answer": "12",
        }
    return write(folder / "items.json", items)


def ask(fake: FakeServer, name: str, items: Path, *options: str | Path) -> Any:
    """Have a model on the server answer items, into ``out.json`` beside them."""
    server = ("--base-url", fake.url, "--model", "m")
    files = ("--items", items, "--out", items.parent / "out.json")
    return run("respond", name, *files, *server, *options)


def test_the_bare_question_and_its_picture(fake: FakeServer, tmp_path: Path) -> None:
    fake.answer = lambda seen: Say(body=completion(f"{seen.text} 12"))
    items, prices = charthal(tmp_path, 3), ("--prompt-price", "10", "--completion-price", "100")
    done = ask(fake, "charthal", items, *prices)
    assert done.exit_code == 0, done.stderr
    answers = read(tmp_path / "out.json")
    official = read(items)
    assert {key: row["response"] for key, row in answers.items()} == {
        key: f"{row['question']} 12" for key, row in official.items()
    }
    for key, row in official.items():
        assert {name: answers[key][name] for name in row} == row
    body = fake.seen[0].body
    assert body["temperature"] == 0
    [message] = body["messages"]
    picture, text = message["content"]
    assert text["text"].startswith("What is value")
    header, _, content = picture["image_url"]["url"].partition(",")
    assert header == "data:image/png;base64"
    with Image.open(BytesIO(base64.b64decode(content))) as shown:
        assert shown.getpixel((3, 3)) == RED
    manifest = read(tmp_path / "out.json.manifest.json")
    assert manifest["usage"] == {"prompt_tokens": 300, "completion_tokens": 30}
    assert manifest["cost"] == pytest.approx((300 * 10 + 30 * 100) / 1e6)
    assert (manifest["responses"], manifest["failed"], manifest["images"]) == (3, 0, True)


def test_without_pictures_nothing_is_shown(fake: FakeServer, tmp_path: Path) -> None:
    row = {"data_id": 7, "question": "Who built it?", "answer": "x", "language": "EN"}
    Image.new("RGB", (8, 8)).save(tmp_path / "a.png")
    items = write(tmp_path / "items.json", [{**row, "image": "a.png"}])
    out = tmp_path / "out.jsonl"
    assert ask(fake, "simplevqa", items, "--no-image", "--out", out).exit_code == 0
    assert fake.seen[0].body["messages"] == [{"role": "user", "content": "Who built it?"}]
    assert read(tmp_path / "out.jsonl.manifest.json")["images"] is False
    answered = json.loads(out.read_text())
    assert (answered["response"], answered["without_image"]) == ("Hello.", True)
    assert ask(fake, "simplevqa", items).exit_code == 0
    assert "without_image" not in read(tmp_path / "out.json")[0]


def test_what_failed_is_listed_and_asked_again(fake: FakeServer, tmp_path: Path) -> None:
    def answer(seen: Seen) -> Say:
        if "value 1" in seen.text:
            return Say(400, "too hot")
        return Say(body=completion("" if "value 2" in seen.text else "12"))

    fake.answer = answer
    items, out = charthal(tmp_path, 4), tmp_path / "out.json"
    done = ask(fake, "charthal", items)
    assert done.exit_code == 1
    assert "items.json row 2: item '1_0': the server answered 400: too hot" in done.stderr
    assert "4 items, 3 responses, 1 failed, 1 empty, 0 cut off" in done.stdout
    assert list(read(out)) == ["0_0", "2_0", "3_0"]
    assert read(out)["2_0"]["response"] == ""
    [error] = [json.loads(line) for line in (tmp_path / "out.json.errors.jsonl").open()]
    assert error["row"] == 2

    fake.seen.clear()
    fake.answer = lambda seen: Say(body=completion("now"))
    assert ask(fake, "charthal", items).exit_code == 0
    assert [seen.text for seen in fake.seen] == ["What is value 1?"]
    assert list(read(out)) == ["0_0", "1_0", "2_0", "3_0"]
    assert not (tmp_path / "out.json.errors.jsonl").exists()


def test_one_run_at_a_time_writes_a_file(fake: FakeServer, tmp_path: Path) -> None:
    items = charthal(tmp_path, 1)
    with locked(tmp_path / "out.json"):
        second = ask(fake, "charthal", items)
    assert (second.exit_code, fake.seen) == (2, [])
    assert f"error: {tmp_path / 'out.json'}: another run is writing it" in second.stderr
    assert ask(fake, "charthal", items).exit_code == 0


def test_nothing_limits_an_answer_unless_asked(fake: FakeServer, tmp_path: Path) -> None:
    fake.answer = lambda seen: Say(body=completion("12"))
    items = charthal(tmp_path, 1)
    assert ask(fake, "charthal", items).exit_code == 0
    body = fake.seen[-1].body
    assert not {"max_tokens", "max_completion_tokens", "top_p", "reasoning_effort"} & body.keys()

    options = ("--top-p", "0.9", "--max-tokens", "7", "--reasoning-effort", "high")
    assert ask(fake, "charthal", items, "--out", tmp_path / "b.json", *options).exit_code == 0
    body = fake.seen[-1].body
    assert (body["top_p"], body["max_tokens"], body["reasoning_effort"]) == (0.9, 7, "high")
    refused = ask(fake, "charthal", items, "--decoding", "mulberry")
    assert refused.exit_code == 2
    assert "--decoding 'mulberry': 'charthal' has published" in refused.stderr


def test_a_papers_decoding_and_its_exact_words(fake: FakeServer, tmp_path: Path) -> None:
    fake.answer = lambda seen: Say(body=completion("(B)"))
    items, wording = write(tmp_path / "items.json", [truthful()]), tmp_path / "wording.yaml"
    wording.write_text("response: 'Q: {question} (A){Option_A} (B){option_b} {x}'")
    options = ("--decoding", "mulberry", "--wording", wording, "--temperature", "0.5")
    assert ask(fake, "truthfulvqa", items, *options).exit_code == 0
    body = fake.seen[-1].body
    assert (body["temperature"], body["top_p"], body["max_tokens"]) == (0.5, 0.9, 8192)
    assert body["messages"][0]["content"] == "Q: What is it? (A)a fish (B)a bird {x}"
    wording.write_text("other: text")
    refused = ask(fake, "truthfulvqa", items, *options)
    assert refused.exit_code == 2
    assert "has no text for 'response'" in refused.stderr


def test_an_answer_at_the_limit_is_marked_and_read_by_no_rule(
    fake: FakeServer, tmp_path: Path
) -> None:
    def answer(seen: Seen) -> Say:
        return Say(body=completion("Is it (B)? Let me").replace('"stop"', '"length"'))

    fake.answer = answer
    row = {**truthful(), "level": 1, "category": "c", "subcategory": "s"}
    done = ask(fake, "truthfulvqa", write(tmp_path / "items.json", [row]))
    assert done.exit_code == 0
    assert "1 cut off" in done.stdout
    [answered] = read(tmp_path / "out.json")
    assert answered["cut_off"] == ["response"]
    benchmark = get_benchmark("truthfulvqa")
    graded = benchmark.graded_row(answered, [])
    assert (graded["extracted_answer"], graded["is_correct"]) == (None, False)
    table = benchmark.table([graded])
    assert (table["cut_off"], table["coverage"]) == (1, 0)
    whole = benchmark.graded_row({**answered, "cut_off": []}, [])
    assert whole["is_correct"]


def truthful() -> dict[str, Any]:
    return {"question_id": "q1", "question": "What is it?", "options": OPTIONS, "answer": "B"}


@pytest.mark.parametrize(
    ("style", "marks"),
    [("standard", "At the end of your reply"), ("confidence", "[0.85]"), ("cot", "step by step")],
)
def test_the_styles_of_truthfulvqa(style: str, marks: str) -> None:
    benchmark = get_benchmark("truthfulvqa")
    [question] = build_questions(benchmark, [truthful()], style)
    [message] = question.chat.messages
    asked, *options, closing = message.text.split("\n")
    assert asked == "What is it?"
    assert options == ["(A) a fish", "(B) a bird", "(C) a stone", "(D) a cloud"]
    assert marks in closing
    [question] = build_questions(benchmark, [truthful()], "open")
    assert question.chat.messages[0].text == asked


@pytest.mark.parametrize(
    ("style", "fields", "wrong"),
    [
        ("cot", {"options": None}, "options"),
        ("cot", {"options": ["x"] * 27}, "options"),
        ("open", {"question": " "}, "question"),
        ("cot", {"question": " ", "options": None}, ""),  # names both in its text
    ],
)
def test_questions_that_cannot_be_asked(style: str, fields: dict[str, Any], wrong: str) -> None:
    benchmark = get_benchmark("truthfulvqa")
    with pytest.raises(FieldError) as error:
        build_questions(benchmark, [{**truthful(), **fields}], style)
    assert (error.value.location, error.value.field) == ("item 'q1'", wrong)
    with pytest.raises(FieldError) as error:
        build_questions(benchmark, [truthful(), {"question": "?"}], "open")
    assert (error.value.location, error.value.field) == ("item 2", "question_id")
    with pytest.raises(CustosError, match="standard, confidence, cot"):
        build_questions(benchmark, [truthful()], "loud")


def test_a_local_backbone_is_asked_once(tiny_folders: Callable[[str], str], tmp_path: Path) -> None:
    rows = get_benchmark("charthal").load(str(charthal(tmp_path, 2)))
    asked = build_questions(get_benchmark("charthal"), rows, "standard")
    decoding, answers = Decoding(temperature=0, max_tokens=6), tmp_path / "answers.jsonl"
    results = [
        ask_backbone([each.chat for each in asked], folder, decoding, answers=answers)
        for folder in [tiny_folders("qwen2_5_vl")] * 2
    ]
    assert [result.num_reused for result in results] == [0, 2]
    assert results[0].replies == results[1].replies
    for reply in results[0].replies.values():
        assert reply.text and reply.usage


def test_the_published_decoding_of_simplevqa_is_the_servers_own(
    fake: FakeServer, tmp_path: Path
) -> None:
    fake.answer = lambda seen: Say(body=completion("Vermeer"))
    row = {"data_id": 1, "question": "Who?", "answer": "Vermeer", "language": "EN"}
    items = write(tmp_path / "items.json", [row])
    done = ask(fake, "simplevqa", items, "--decoding", "published")
    assert done.exit_code == 0, done.stderr
    assert fake.seen[0].body.keys() == {"model", "messages"}


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("charthal", {"score": 1, "eval_resp": "Score: 1", "verdicts": {}}),
        ("chartom", {"fact_correct": True, "mind_prediction": 0.1}),
        ("simplevqa", {"judge_res": {"response": "A"}, "model": "other", "atomic_response": "x"}),
        ("truthfulvqa", {"extracted_answer": "A", "stated_answer": "A", "is_correct": True}),
        ("hieval", {"responses": ["x"], "label": "Correct", "annotators": ["anna"]}),
    ],
)
def test_what_was_found_of_another_models_response_is_left_out(
    name: str, found: dict[str, Any]
) -> None:
    benchmark = get_benchmark(name)
    rows = [{**benchmark.example[0], "group": "g", "hmi": 0.2, **found}]
    questions = build_questions(benchmark, rows, benchmark.styles[0])
    replies = {question.chat.id: Reply(text="new") for question in questions}
    [row], _ = join_answers(benchmark, rows, questions, JobResult(replies))
    assert not found.keys() & row.keys()
    assert row == {**row, "question": rows[0]["question"], "group": "g", "hmi": 0.2}
    assert {row[question.field] for question in questions} == {"new"}


@pytest.mark.parametrize("name", ["charthal", "chartom", "simplevqa", "truthfulvqa"])
def test_every_table_counts_what_was_cut_off(name: str) -> None:
    benchmark = get_benchmark(name)
    rows = [{**row, "cut_off": ["response"]} for row in benchmark.example]
    graded = []
    for row in rows:
        requests = benchmark.requests(row)
        tasks = [get_task(request.task) for request in requests]
        rubrics = zip(tasks, requests, strict=True)
        labels = [task.labels(task.rubric(request))[0] for task, request in rubrics]
        verdicts = [Verdict(status="scored", label=label) for label in labels]
        graded.append(benchmark.graded_row(row, verdicts))
    assert benchmark.table(graded)["cut_off"] == len(rows)
    assert benchmark.table([{**row, "cut_off": []} for row in graded])["cut_off"] == 0


@pytest.mark.parametrize(
    "content",
    [b"response: caf\xe9", b"response: [", b"- a", b"response: 3", b"response: a\nresponse: b"],
)
def test_a_file_that_is_no_wording_is_one_line(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "wording.yaml"
    path.write_bytes(content)
    with pytest.raises(CustosError, match=r"wording\.yaml: ") as caught:
        read_wording(path)
    assert "\n" not in str(caught.value)
