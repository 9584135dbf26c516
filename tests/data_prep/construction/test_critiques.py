"""Critiques that lead to what people preferred."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from data_prep.construction.critiques import write_critiques
from data_prep.construction.forms.truthful import SCORES
from data_prep.sources.conversations import MEANINGS, load_conversations
from judging.files.records import read_records
from judging.tasks import get_task
from judging.types import LabelledExample
from tests.clients.fake_server import FakeServer, Say, Seen, completion
from tests.data_prep.construction.made_up import writer

# Answers of the model by question.
ANSWERS = {
    "right": "<critique>A is right.</critique><label>A</label><confidence>.83</confidence>",
    "wrong": "<critique>B is right.</critique><label>B</label><confidence>.9</confidence>",
    "untagged": "A is better.",
    "empty": "<critique> </critique><label>A</label><confidence>.9</confidence>",
    "loud": "<critique>A is right.</critique><label>A</label><confidence>9</confidence>",
}


def answer(seen: Seen) -> Say:
    for question, text in ANSWERS.items():
        if f"Question: {question}\n" in seen.text:
            return Say(body=completion(text))
    return Say(500, "no")


def pair(question: str, **fields: Any) -> LabelledExample:
    given = {
        "id": question,
        "task": "truthful-pair",
        "question": question,
        "responses": ("Two.", "Three."),
        "label": "A",
    }
    return LabelledExample.model_validate(given | fields)


@pytest.fixture
def judge(fake: FakeServer) -> FakeServer:
    fake.answer = answer
    return fake


def write(
    fake: FakeServer, out: Path, pairs: list[LabelledExample], **options: bool
) -> dict[str, Any]:
    return write_critiques(pairs, writer(fake, out, tries=2), **options)


def test_only_critiques_that_lead_to_peoples_label_are_kept(
    judge: FakeServer, tmp_path: Path
) -> None:
    pairs = [pair(question) for question in ("failing", *ANSWERS)]
    manifest = write(judge, tmp_path, pairs)
    [(_, row)] = read_records(tmp_path / "rows.jsonl", LabelledExample)
    assert row == pair("right", mode="critique", critique="A is right.", confidence=0.83)
    [public] = load_conversations(tmp_path / "conversations.jsonl")
    assert (public.responses, public.label) == (row.responses, row.label)
    assert (public.critique, public.confidence) == (row.critique, row.confidence)
    rejects = [json.loads(line) for line in (tmp_path / "rejects.jsonl").open()]
    assert [(reject["id"], reject["reason"]) for reject in rejects] == [
        ("failing", "request failed"),
        ("wrong", "label differs"),
        ("untagged", "unparsable"),
        ("empty", "empty critique"),
        ("loud", "confidence out of range"),
    ]
    assert rejects[1]["detail"] == "'B', but people said 'A' (finish reason: stop)"
    assert manifest == json.loads((tmp_path / "manifest.json").read_text())
    assert manifest["counts"] == {"A": 1}
    assert sum(manifest["rejected"].values()) == 5
    assert manifest["usage"] == {"prompt_tokens": 500, "completion_tokens": 50}
    num_asked = len(judge.seen)
    judge.answer = lambda seen: Say(body=completion(ANSWERS["right"]))
    manifest = write(judge, tmp_path, pairs)
    assert ["Question: failing" in seen.text for seen in judge.seen[num_asked:]] == [True]
    assert (manifest["counts"], manifest["reused"]) == ({"A": 2}, 5)
    ids = [row.id for _, row in read_records(tmp_path / "rows.jsonl", LabelledExample)]
    assert ids == ["failing", "right"]


@pytest.mark.parametrize("show_reasons", [False, True])
def test_what_the_model_is_told(judge: FakeServer, tmp_path: Path, show_reasons: bool) -> None:
    """It sees scores and reasons only if it is to (TruthfulJudge, appendix F.1)."""
    picture = tmp_path / "a.png"
    Image.new("RGB", (2, 2), "red").save(picture)
    example = pair(
        "right",
        references=("Two boats",),
        label="A",
        tags=("B: visual misinterpretation", "B: distracting additions", "rude"),
        images=(str(picture),),
        metadata={
            "rationale": "The third is a rock.",
            "answerer": "model-x",
            "scores": {"A": 9.0, "B": 2.5},
        },
        criteria=("Prefer words to digits.",),
    )
    write(judge, tmp_path / "out", [example], show_reasons=show_reasons)
    [seen] = judge.seen
    system, user = seen.body["messages"]
    image, text = user["content"]
    assert base64.b64decode(image["image_url"]["url"].partition(",")[2]) == picture.read_bytes()
    told = [
        "Question: right",
        "Reference answer: Two boats",
        "Further criterion: Prefer words to digits.",
        "Response A: Two.",
        "Response B: Three.",
        "Label people gave: A (response A is better)",
        "Score people gave response A: 9 of 10",
        "Faults people marked in response B: visual misinterpretation; distracting additions",
        "Score people gave response B: 2.5 of 10",
        "Faults people marked: rude",
        "Reasons people gave: The third is a rock.",
    ]
    hidden = ("Score ", "Reasons ")
    assert text["text"].split("\n\n") == [
        part for part in told if show_reasons or not part.startswith(hidden)
    ]
    assert get_task("truthful-pair").instruction("reference") in system["content"]
    assert all(tag in system["content"] for tag in MEANINGS)
    assert "if you did not know the label" in system["content"]
    for score, meaning in SCORES.items():
        assert (f"{score}, {meaning}" in system["content"]) == show_reasons
