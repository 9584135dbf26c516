"""Log-probabilities and texts that a judge's server should not give: one row without a label."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from clients.kept_verdicts import fill_verdicts, partial_file
from clients.remote_judge import remote_judge
from judging import JudgeRequest
from judging.models.backbones import Backbone
from judging.tasks import get_task
from tests.clients.fake_server import FakeServer, Say, Seen
from tests.clients.made_up import SHORT, pair, server
from tests.clients.remote.vllm_replies import VllmReplies
from tests.judging.made_up import ask

NUMBERS = ("NaN", "Infinity", "-Infinity", "1e999", "1e6", "-1e308", '"x"', "null")
TOKENS = ("token_id:" + "9" * 5000, "token_id:\u0663", "token_id:-1", r"\ud800", "")
TEXT = "a\0b\x1b[2J\u2028c"


def ids_of(judge: Any, request: JudgeRequest) -> list[int]:
    """Return the tokens with which the prompts of a request begin."""
    [prompt] = judge.encoder.encode([(get_task(request.task), request)])
    return [*prompt.prefix_ids, *prompt.suffix_ids]


@pytest.mark.parametrize(
    ("pattern", "by"),
    [
        *((r"(?<=: )-\d[\d.e-]*(?=[,}])", number) for number in NUMBERS),
        *((r"token_id:\d+", token) for token in TOKENS),
    ],
)
def test_a_row_with_odd_log_probabilities_fails_alone(
    fake: FakeServer, backbone: Backbone, tmp_path: Path, pattern: str, by: str
) -> None:
    fake.answer = VllmReplies(backbone)
    there = remote_judge(server(fake, tries=1), backbone.name)
    rows = [ask("Paris", id="1"), ask("in Lyon, as they say", id="2"), ask("Rome", id="3")]
    start, answer = ids_of(there, rows[1]), fake.answer

    def reply(seen: Seen) -> Say | str:
        said = answer(seen)
        assert isinstance(said, Say)
        is_marked = seen.body["prompt"][0][: len(start)] == start
        return Say(body=re.sub(pattern, lambda _: by, said.body)) if is_marked else said

    fake.answer = reply
    kept = partial_file(tmp_path / "out.jsonl")
    assert list(fill_verdicts(kept, there, lambda: enumerate(rows, 1), batch=3)) == [0, 3]
    verdicts = [line.verdict for line in kept.lines()]
    assert [verdict.status for verdict in verdicts] == ["scored", "judge_error", "scored"]
    assert (verdicts[1].message or "").isprintable()


def test_control_characters_in_a_critique_are_kept_and_shown_as_escapes(
    fake: FakeServer, backbone: Backbone, tmp_path: Path
) -> None:
    fake.answer = VllmReplies(backbone)
    there = remote_judge(server(fake, tries=1), backbone.name)
    answer = fake.answer

    def reply(seen: Seen) -> Say | str:
        if "logprob_token_ids" in seen.body:
            return answer(seen)
        choice = {"text": TEXT, "finish_reason": "stop", "token_ids": [-1, 10**30]}
        return Say(body=json.dumps({"choices": [choice]}))

    fake.answer = reply
    rows = [pair(id="1", mode="critique", order="given")]
    kept = partial_file(tmp_path / "out.jsonl")
    assert list(fill_verdicts(kept, there, lambda: enumerate(rows, 1), batch=3)) == [0, 1]
    [line] = kept.lines()
    assert (line.verdict.status, line.verdict.critique) == ("scored", TEXT)


def test_an_answer_without_a_label_is_quoted_on_one_printable_line(
    fake: FakeServer, backbone: Backbone
) -> None:
    token = {"token": "x", "logprob": -0.5, "top_logprobs": []}
    choice = {"message": {"content": TEXT}, "logprobs": {"content": [token]}}
    fake.answer = lambda seen: Say(body=json.dumps({"choices": [choice]}))
    there = remote_judge(server(fake))
    [verdict] = there.grade([ask()], sampling=SHORT)
    assert verdict.status == "unparsed"
    assert r"a\x00b\x1b[2J" in str(verdict.message) and str(verdict.message).isprintable()
