"""From charts to generated questions on disk, and from people's rulings to a benchmark file."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from clients.chat import ModelServer, Prices
from clients.jobs import JobResult, OnProgress, Reject, run_job
from clients.messages import Decoding
from data_prep.construction.charthal.charts import Chart
from data_prep.construction.charthal.checks import Question, Rulings
from data_prep.construction.charthal.recipes import (
    CELLS,
    parse_question,
    question_id,
    recipe_items,
)
from data_prep.splits.manifest import MANIFEST_NAME
from judging.errors import CustosError
from judging.fingerprint import file_sha256
from judging.records import read_records, write_json, write_records

ANSWERS, QUESTIONS, REJECTS = "answers.jsonl", "questions.jsonl", "rejects.jsonl"
BENCHMARK, DISAGREEMENTS = "charthal.json", "disagreements.json"
UNREADABLE = "unreadable reply"


def generate_questions(
    charts: Sequence[Chart],
    server: ModelServer,
    decoding: Decoding,
    prices: Prices | None,
    out: Path,
    *,
    source: Mapping[str, Any],
    command: str,
    on_progress: OnProgress | None = None,
) -> dict[str, Any]:
    """Have a model write one question per chart and cell.

    A folder holds ``images/``, ``answers.jsonl`` (all replies; what a later run starts from),
    ``questions.jsonl``, ``rejects.jsonl`` and, last, ``manifest.json``.

    Args:
        charts: What ``sample_charts`` chose.
        server: Who writes.
        decoding: How replies are drawn.
        prices: Of the model's tokens, if known.
        out: Folder to write to; made if it is missing.
        source: What the charts were read from.
        command: Command line that can repeat this.
        on_progress: Called as requests are done, to show a progress bar.

    Returns:
        The manifest.

    Raises:
        CustosError: If a picture cannot be copied, or as ``run_job``.
    """
    (out / "images").mkdir(parents=True, exist_ok=True)
    for chart in charts:
        try:
            shutil.copyfile(chart.images[0], out / chart.figure_path)
        except OSError as error:
            raise CustosError(f"chart '{chart.id}': field 'images': {error}") from None
    result = run_job(
        recipe_items(charts),
        server,
        decoding,
        answers=out / ANSWERS,
        rejects=out / REJECTS,
        on_progress=on_progress,
    )
    questions, rejects = read_replies(charts, result)
    (out / MANIFEST_NAME).unlink(missing_ok=True)
    write_records(out / QUESTIONS, questions)
    write_records(out / REJECTS, rejects)
    manifest = {
        "source": dict(source),
        "model": server.model,
        "decoding": decoding.model_dump(exclude_none=True),
        "outputs": {name: file_sha256(out / name) for name in (QUESTIONS, REJECTS)},
        "charts": len(charts),
        "counts": count_cells(questions),
        "rejected": dict(sorted(Counter(reject.reason for reject in rejects).items())),
        **result.account(prices),
        "version": version("custos"),
        "command": command,
    }
    write_json(out / MANIFEST_NAME, manifest)
    return manifest


def read_replies(charts: Sequence[Chart], result: JobResult) -> tuple[list[Question], list[Reject]]:
    """Questions out of the replies, and every reply that is none, in the order of the charts."""
    failed = {reject.id: reject for reject in result.rejects}
    questions, rejects = [], []
    for chart in charts:
        for number, cell in enumerate(CELLS):
            key = question_id(chart, number)
            if key in failed:
                rejects.append(failed[key])
                continue
            try:
                question, answer = parse_question(result.replies[key].text)
            except CustosError as error:
                rejects.append(Reject(id=key, reason=UNREADABLE, detail=str(error)))
                continue
            questions.append(
                Question(
                    id=key,
                    figure_id=chart.id,
                    figure_path=chart.figure_path,
                    subq_idx=number,
                    q_type=cell.q_type,
                    q_relation=cell.q_relation,
                    question=question,
                    ref_answer=answer,
                )
            )
    return questions, rejects


def count_cells(questions: Sequence[Question]) -> dict[str, int]:
    """Questions by cell, ``desc/irrel`` and so on, all twelve in ChartHal's order."""
    counts = Counter((question.q_type, question.q_relation) for question in questions)
    return {"/".join(cell): counts[cell] for cell in CELLS}


def load_questions(folder: Path) -> list[Question]:
    """What ``generate_questions`` wrote to a folder."""
    return [question for _, question in read_records(folder / QUESTIONS, Question)]


def write_benchmark(folder: Path, rulings: Rulings) -> None:
    """Write what people kept and what is left to settle beside the pictures.

    ``charthal.json`` is ChartHal's own shape, an object from id to item; ``disagreements.json``
    lists the questions that annotators differ on.
    """
    kept = {question.id: question.model_dump(exclude={"id"}) for question in rulings.kept}
    write_json(folder / BENCHMARK, kept)
    write_json(folder / DISAGREEMENTS, rulings.disagreements)
