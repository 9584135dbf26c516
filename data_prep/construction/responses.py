"""Responses of several models to a file of questions: for people to compare, and for screening.

TruthfulJudge compares each response with several others, in three match-ups at least (section 5.1),
and shows up to four at once to be scored (Figure 8). SimpleVQA keeps a question only if at least
one of four models answers it wrongly (section 2.3). Labels that several judges give the same
responses are for filters that count who disagrees.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

from pydantic import BaseModel, Field, model_validator

from clients.chat import Reply
from clients.chat_judge import judge_messages
from clients.messages import ChatItem
from data_prep.construction.model_writer import ROWS, ModelWriter, Request
from data_prep.construction.steps.base import Row, StepRow, Text, Texts
from data_prep.errors import UnusableText
from data_prep.sources.conversations import PAIR_TASK
from data_prep.splits.manifest import check_replaceable, write_with_manifest
from judging.errors import CustosError, FieldError
from judging.files.records import read_records, write_json, write_records
from judging.tasks import get_task, labels_of
from judging.types import JudgeRequest, Message, ReferenceMode, Verdict, label_of

ITEM, ANSWERER, CUT_OFF = "item", "answerer", "cut_off"
"""Metadata of a response: id of its question, its model, whether the token limit ended it."""
ANSWERERS = "answerers"
"""Metadata of responses brought together: who wrote A, who B and so on. People do not see it."""
MOST_TOGETHER = 4
"""Responses that are scored on one screen."""
KEYS = ("id", "question", "responses", "metadata")
"""Keys of every row of responses brought together."""
RIGHT_ANSWERS = "right_answers"
"""Field of a question that screening kept: the models that answer it, of all that were asked."""


class Question(StepRow):
    """A question to ask models, with all that a judge needs to grade their answers."""

    question: Text
    references: Texts = ()
    reference_mode: ReferenceMode = "all"
    choices: Texts = ()
    task: str = "hieval-qs"
    variant: str = "plain"
    metadata: dict[str, Any] = Field(default_factory=dict)

    @model_validator(mode="before")
    @classmethod
    def _answer_is_reference(cls, row: Any) -> Any:
        if not isinstance(row, dict) or row.get("references") or "answer" not in row:
            return row
        answer = row["answer"]
        return {**row, "references": answer if isinstance(answer, list | tuple) else (answer,)}

    def item(self) -> ChatItem:
        """Compose the request: the picture, the bare question and its choices."""
        lettered = [f"({chr(65 + n)}) {choice}" for n, choice in enumerate(self.choices)]
        text = "\n".join([self.question, *lettered])
        messages = (Message(role="user", text=text, images=self.images),)
        return ChatItem(id=self.id, messages=messages)

    def answered(self, model: str, reply: Reply) -> Row:
        """Make the row that a judge or a person is to grade."""
        about = {ITEM: self.id, ANSWERER: model}
        if reply.finish_reason == "length":
            about[CUT_OFF] = "yes"
        return {
            **self.model_dump(mode="json", include=set(Question.model_fields), exclude_unset=True),
            "id": f"{self.id}/{model}",
            "response": reply.text,
            "metadata": {**self.metadata, **about},
        }


def model_folder(out: Path, model: str) -> Path:
    """Name the folder of one model within that of all."""
    return out / re.sub(r"[^\w.-]", "_", model)


def write_responses(
    questions: Sequence[Question],
    writers: Sequence[ModelWriter],
    out: Path,
    source: Mapping[str, Any],
    command: str,
) -> dict[str, Any]:
    """Ask every model every question that it has not answered yet, and write all responses.

    Each model's own folder, that of its writer, gets its responses; ``out`` gets all of them in
    ``rows.jsonl``, question by question, ready for ``custos grade`` and for people. Questions have
    different ids; ``source`` describes them in the manifest, which is returned. Errors are those of
    ``run_job`` and ``check_replaceable``, and for two models that share a folder.
    """
    folders = [writer.out for writer in writers]
    if len(set(folders)) < len(folders):
        names = ", ".join(writer.server.model for writer in writers)
        raise CustosError(f"--model: two of {names} are the same or would share a folder")
    for folder in (out, *folders):
        check_replaceable(folder, [ROWS])
    by_model: list[dict[str, Row]] = []
    models: dict[str, Any] = {}
    for writer in writers:
        model = writer.server.model
        outcome = writer.ask([Request(q.item(), partial(q.answered, model)) for q in questions])
        counts = {"counts": {"in": len(questions), "out": len(outcome.records)}}
        written = writer.write(outcome, {ROWS: outcome.records}, counts)
        spent = ("decoding", "counts", "rejected", "reused", "usage", "uncounted", "cost")
        models[model] = {name: written[name] for name in spent}
        by_model.append({row["metadata"][ITEM]: row for row in outcome.records})
    rows = [answers[q.id] for q in questions for answers in by_model if q.id in answers]
    with write_with_manifest(out, source=source, command=command) as manifest:
        write_records(out / ROWS, rows)
        manifest.update(counts={"questions": len(questions), "responses": len(rows)}, models=models)
    return manifest


def pair_responses(
    responses: Iterable[JudgeRequest], least: int, seed: int = 0
) -> tuple[list[Row], list[str]]:
    """Pair the responses to each question so that each one is in at least ``least`` pairs.

    Give the pairs, and the questions that have too few responses. Responses are rows of
    ``write_responses``, of any number of models. The seed draws who meets whom, and who is A. Raise
    ``CustosError`` if a row does not say what it answers and who wrote it, or a model answers a
    question twice.
    """
    pairs, too_few, rng = list[Row](), list[str](), Random(seed)
    for question, answers in _by_question(responses).items():
        if len(answers) <= least:
            too_few.append(question)
            continue
        names = rng.sample(sorted(answers), len(answers))
        for match in match_ups(len(names), least):
            both = rng.sample([names[number] for number in match], 2)
            pairs.append({**_together(question, both, answers), "task": PAIR_TASK})
    return pairs, too_few


def group_responses(responses: Iterable[JudgeRequest], seed: int = 0) -> list[Row]:
    """Group the responses to each question by up to four, as evenly as possible.

    Arguments and errors are those of :func:`pair_responses`.
    """
    rows, rng = [], Random(seed)
    for question, answers in _by_question(responses).items():
        names = rng.sample(sorted(answers), len(answers))
        count = -(-len(names) // MOST_TOGETHER)
        rows += [_together(question, names[start::count], answers) for start in range(count)]
    return rows


def _by_question(responses: Iterable[JudgeRequest]) -> dict[str, dict[str, JudgeRequest]]:
    """Sort responses by question and model, as :func:`pair_responses` says."""
    by_question: dict[str, dict[str, JudgeRequest]] = {}
    for response in responses:
        question, answerer = (response.metadata.get(name) for name in (ITEM, ANSWERER))
        if question is None or answerer is None or len(response.responses) != 1:
            fault = f"needs one response, with {ITEM} and {ANSWERER} in its metadata"
            raise CustosError(f"row '{response.id}': {fault}")
        answers = by_question.setdefault(str(question), {})
        if str(answerer) in answers:
            fault = f"'{answerer}' answers question '{question}' twice"
            raise FieldError("metadata", fault, f"row '{response.id}'")
        answers[str(answerer)] = response
    return by_question


def match_ups(count: int, least: int) -> list[tuple[int, int]]:
    """List the fewest pairs of ``count`` members in which each is in at least ``least`` of them.

    The members, more than ``least``, are put in a circle (Harary, 1962). Each is paired with the
    nearest on both sides, and for an odd ``least`` also with the one across. If both numbers are
    odd, one member is in one pair more.
    """
    pairs = [
        (member, (member + distance) % count)
        for distance in range(1, least // 2 + 1)
        for member in range(count)
    ]
    if least % 2:
        pairs += [(member, member + count // 2) for member in range((count + 1) // 2)]
    return pairs


def _together(question: str, names: Sequence[str], answers: Mapping[str, JudgeRequest]) -> Row:
    """Make the row that people fill in: what some responses share, and the responses."""
    shared = answers[names[0]].model_dump(
        mode="json",
        include={"question", "references", "reference_mode", "choices", "images", "metadata"},
        exclude_unset=True,
    )
    metadata = {
        key: value
        for key, value in shared["metadata"].items()
        if key != ANSWERER and all(answers[name].metadata.get(key) == value for name in names)
    }
    return {
        **shared,
        "id": "/".join((question, *names)),
        "responses": [answers[name].response for name in names],
        "metadata": {**metadata, ANSWERERS: list(names)},
    }


def screen(
    items: Sequence[StepRow],
    responses: Sequence[JudgeRequest],
    verdicts: Mapping[str, Sequence[str | None]],
    num_models: int,
) -> tuple[list[Row], list[str], list[str]]:
    """Drop the questions that all models, at least ``num_models`` of them, answer rightly.

    Give the rows that are kept, the ids of those that are dropped, and of those for which responses
    or verdicts are missing.

    A response is right if all judges give it the best label of its task. A question with one wrong
    answer is kept, whatever is missing of the others. ``verdicts`` holds the labels of the judges
    by id of a response. Raise ``CustosError`` if a response is to no question, or has no verdict.
    """
    known = {item.id for item in items}
    rights: dict[str, dict[str, bool | None]] = defaultdict(dict)
    for response in responses:
        name = str(response.metadata.get(ITEM))
        if name not in known:
            raise CustosError(f"response '{response.id}': there is no question '{name}'")
        if response.id not in verdicts:
            raise CustosError(f"response '{response.id}' has no verdict")
        answerer = str(response.metadata.get(ANSWERER))
        rights[name][answerer] = _is_right(response, verdicts[response.id])
    kept, dropped, unscreened = list[Row](), list[str](), list[str]()
    for item in items:
        answers = rights[item.id]
        if False in answers.values():
            names = [answerer for answerer, right in answers.items() if right]
            counted = {"models": names, "of": len(answers)}
            kept.append(item.with_fields(**{RIGHT_ANSWERS: counted}))
        elif len(answers) < num_models or None in answers.values():
            unscreened.append(item.id)
        else:
            dropped.append(item.id)
    return kept, dropped, unscreened


def _is_right(response: JudgeRequest, labels: Sequence[str | None]) -> bool | None:
    """Tell whether all judges call a response right; ``None`` if one has no label."""
    best = labels_of(response)[0]
    if any(label is not None and label != best for label in labels):
        return False
    return None if None in labels or not labels else True


LABELS, VERDICTS = "labels.jsonl", "verdicts.json"
NO_LABEL = "no label"


class GivenLabel(BaseModel):
    """A line of a judge's file: its label on a row."""

    id: str
    label: str | None


def write_verdicts(
    requests: Sequence[JudgeRequest],
    judges: Sequence[ModelWriter],
    graded: Sequence[Path],
    out: Path,
    source: Mapping[str, Any],
    command: str,
) -> dict[str, Any]:
    """Write the labels of all judges: chat models, which are asked, and graded files.

    ``out`` gets ``verdicts.json``, an object from row id to one label per judge. A judge without a
    label on a row has ``null`` there. Requests have different ids, each chat model's writer a
    folder of its own, and ``graded`` are files of ``custos grade`` on the same rows. ``source``
    describes the responses in the manifest, which is returned. Errors are those of
    :func:`ask_judge`, and for a graded file that lacks a row or a judge that is named twice.
    """
    check_replaceable(out, [VERDICTS])
    labels_by_judge = {judge.server.model: ask_judge(requests, judge) for judge in judges}
    labels_by_judge |= {str(path): _graded_labels(path, requests) for path in graded}
    if len(labels_by_judge) < len(judges) + len(graded):
        raise CustosError("a judge is named twice")
    verdicts = {
        request.id: [labels[request.id] for labels in labels_by_judge.values()]
        for request in requests
    }
    with write_with_manifest(out, source=source, command=command) as manifest:
        write_json(out / VERDICTS, verdicts)
        manifest.update(
            rows=len(verdicts),
            without_label={
                judge: sum(label is None for label in labels.values())
                for judge, labels in labels_by_judge.items()
            },
        )
    return manifest


def ask_judge(requests: Sequence[JudgeRequest], judge: ModelWriter) -> dict[str, str | None]:
    """Have a chat model judge the responses that it has not judged yet; map ids to labels.

    The model gets the instruction of each request's task, unless a rule of the task decides. A
    label is ``None`` where the model gave none. Its folder gets ``labels.jsonl``. Errors are those
    of ``run_job`` and ``check_replaceable``, and for a request that does not fit or is a pair.
    """
    check_replaceable(judge.out, [LABELS])
    labels: dict[str, str | None] = {}
    to_ask: list[Request[GivenLabel]] = []
    for request in requests:
        task = get_task(request.task)
        task.check(request)
        if task.num_responses != 1:
            raise CustosError(f"row '{request.id}': task '{task.name}' compares two responses")
        ruling = task.rule(request)
        labels[request.id] = ruling.label if ruling else None
        if ruling is None:
            item = ChatItem(id=request.id, messages=judge_messages(request))
            to_ask.append(Request(item, partial(_read_label, request)))
    outcome = judge.ask(to_ask)
    labels |= {given.id: given.label for given in outcome.records}
    rows = [GivenLabel(id=name, label=label) for name, label in labels.items()]
    counts = {"counts": {"in": len(requests), "out": len(outcome.records)}}
    judge.write(outcome, {LABELS: rows}, counts)
    return labels


def _read_label(request: JudgeRequest, reply: Reply) -> GivenLabel:
    task = get_task(request.task)
    label = task.parse(reply.text, task.rubric(request))
    if label is None:
        raise UnusableText(NO_LABEL, " ".join(reply.text.split())[:200])
    return GivenLabel(id=request.id, label=label)


def _graded_labels(path: Path, requests: Sequence[JudgeRequest]) -> dict[str, str | None]:
    labels = {
        verdict.id: verdict.label and label_of(verdict.label, verdict.error_type)
        for _, verdict in read_records(path, Verdict)
    }
    for request in requests:
        if request.id not in labels:
            raise CustosError(f"{path}: no verdict on row '{request.id}'")
    return labels
