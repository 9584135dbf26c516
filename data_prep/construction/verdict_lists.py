"""Labels that several judges give the same responses, for filters that count who disagrees."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from clients.chat import Reply
from clients.chat_judge import judge_messages
from clients.messages import ChatItem
from data_prep.construction.model_writer import ModelWriter, Request
from data_prep.errors import UnusableText
from data_prep.splits.manifest import check_replaceable, write_with_manifest
from judging.errors import CustosError
from judging.files.records import read_records, write_json
from judging.tasks import get_task
from judging.types import JudgeRequest, Verdict, label_of

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
    describes the responses in the manifest, which is returned. Raise ``CustosError`` as
    :func:`ask_judge`, if a graded file lacks a row, if a judge is named twice, or if
    ``verdicts.json`` lies there without a manifest.
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
    label is ``None`` where the model gave none. Its folder gets ``labels.jsonl``. Raise
    ``CustosError`` if a request does not fit its task or is a pair, if ``labels.jsonl`` lies there
    without a manifest, or as ``run_job``.
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
