"""A judge measured on labelled examples, and the rows on which it and people differ."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import yaml

from evaluation.outcomes import check_labels, full_label
from evaluation.people.agreement import FIRST, SECOND, commonest, labels_by_person, side_of_judge
from judging.errors import CustosError
from judging.files.csv_rows import write_spreadsheet
from judging.files.opening import yaml_errors
from judging.files.questions import count_trained_on
from judging.judge import Judge
from judging.judge.card import RequestT
from judging.types import JudgeRequest, LabelledExample, Verdict
from judging.verdicts.build import before_calibration

RECIPE_FILE = "recipe.yaml"


class RequestResolver(Protocol):
    """Judge, on this machine or behind a service, that completes a request before it grades it."""

    name: str

    def resolve(self, request: RequestT, /) -> RequestT:
        """Complete a request with the modes in which the judge will grade it."""
        ...


def resolve_examples(
    judge: RequestResolver, examples: Sequence[LabelledExample]
) -> list[LabelledExample]:
    """Complete examples as a judge takes them; those that it refuses are unchanged.

    Raise ``CustosError`` if people gave labels that the judge's rubrics do not declare.
    """
    resolved = []
    for example in examples:
        try:
            resolved.append(judge.resolve(example))
        except CustosError:
            resolved.append(example)  # The verdict says why.
    check_labels(resolved, f"judge '{judge.name}'")
    return resolved


def uncalibrated_verdicts(
    examples: Sequence[LabelledExample], verdicts: Sequence[Verdict]
) -> list[Verdict]:
    """Work out what the same readings of a calibrated judge give without calibration."""
    return [
        before_calibration(example.request(), verdict)
        for example, verdict in zip(examples, verdicts, strict=True)
    ]


def grade_examples(judge: Judge, examples: Sequence[LabelledExample]) -> list[Verdict]:
    """Grade the requests of labelled examples, which hold no label, in :func:`grading_order`."""
    order = grading_order(examples)
    requests = [examples[i].request() for i in order]
    graded = zip(order, judge.grade(requests, progress=False), strict=True)
    return [verdict for _, verdict in sorted(graded, key=lambda pair: pair[0])]


def grading_order(examples: Sequence[LabelledExample]) -> list[int]:
    """Order indices of examples so that those on one question are together: it is read once."""
    return sorted(range(len(examples)), key=lambda index: examples[index].question)


def seen_data(
    folder: Path | None, dataset_sha256: str | None, requests: Sequence[JudgeRequest]
) -> dict[str, Any] | None:
    """Look the data up in what a judge's run folder, if it has one, keeps of its own data.

    ``file`` says how the run used the file of this hash: ``trained on``, ``chosen by``,
    ``calibrated on`` or ``None``. ``rows`` counts the requests that ask a question which the judge
    was trained on or chosen by; ``None`` if the folder does not say.
    """
    if folder is None:
        return None

    def paths(split: Any) -> Sequence[Any]:
        """List the files of a split of a recipe: it names none, one or several."""
        return [split] if isinstance(split, str) else split or ()

    use = None
    # A folder from elsewhere need not hold a recipe of ours.
    with suppress(OSError, yaml.YAMLError, UnicodeDecodeError, KeyError, TypeError, AttributeError):
        with yaml_errors():
            recipe = yaml.safe_load((folder / RECIPE_FILE).read_text(encoding="utf-8"))
        hashes = recipe["provenance"]["sha256"]
        files = {path for path, sha256 in hashes.items() if sha256 == dataset_sha256}
        data, replay = recipe["data"], recipe.get("replay") or {}
        uses = {
            "trained on": {*paths(data.get("train")), *paths(replay.get("train"))},
            "chosen by": {*paths(data.get("val"))},
            "calibrated on": {*paths(data.get("cal"))},
        }
        use = next((name for name, of_use in uses.items() if files & of_use), None)
    return {"file": use, "rows": count_trained_on(folder, requests)}


FILE = "disagreements.csv"
BETWEEN_REFERENCES = "; "


@dataclass(frozen=True)
class Disagreement:
    """One row with the labels of people and of the judge."""

    example: LabelledExample
    verdict: Verdict

    @property
    def people(self) -> str:
        """Spell the label of the row: the first person's, or what people decided."""
        return full_label(self.example)

    @property
    def judge(self) -> str:
        """Spell the judge's label."""
        return full_label(self.verdict)

    @property
    def confidence(self) -> float | None:
        """Look up the confidence in the judge's label; ``None`` if it gave none."""
        if self.verdict.confidence is not None:
            return self.verdict.confidence
        return self.verdict.probabilities.get(self.judge)

    @property
    def sides_with(self) -> str:
        """Name whom the judge sides with; empty without labels of two people."""
        return side_of_judge(self.example, self.verdict)

    @property
    def pair(self) -> str:
        """Write the labels as text, such as ``people Wrong, judge Correct``.

        Where two people differ: ``first person Wrong, second person Correct, judge Correct``; where
        more of them do: ``2 people Wrong, 1 Correct, judge Correct``, and what was decided if that
        is not the most frequent label.
        """
        by_person = labels_by_person(self.example)
        given = list(dict.fromkeys(by_person.values()))
        if given in ([], [self.people]):
            return f"people {self.people}, judge {self.judge}"
        if tuple(by_person) == (FIRST, SECOND):
            people = ", ".join(f"{name} {label}" for name, label in by_person.items())
        else:
            counts = Counter(by_person.values()).most_common()
            unit = "person" if counts[0][1] == 1 else "people"
            texts = [f"{count} {label}" for label, count in counts]
            people = ", ".join([f"{counts[0][1]} {unit} {counts[0][0]}", *texts[1:]])
            if self.people not in commonest(by_person):
                people += f", decided {self.people}"
        return f"{people}, judge {self.judge}"


def find_disagreements(
    examples: Sequence[LabelledExample], verdicts: Sequence[Verdict]
) -> list[Disagreement]:
    """Find the rows on which the judge differs from people, the most confident first.

    It does if it gave a label that is not that of the row, or not the only one that most people
    gave.
    """
    rows = []
    for example, verdict in zip(examples, verdicts, strict=True):
        if verdict.label is not None:
            judged, by_person = full_label(verdict), labels_by_person(example)
            is_commonest = len(by_person) < 2 or commonest(by_person) == [judged]
            if judged != full_label(example) or not is_commonest:
                rows.append(Disagreement(example, verdict))
    return sorted(rows, key=lambda row: 1.0 if row.confidence is None else -row.confidence)


@dataclass(frozen=True)
class OwnShape:
    """Names and words of the table that rows come from, by default ours."""

    columns: Mapping[str, str] = field(default_factory=dict)
    """Our field to the table's column."""
    word: Callable[[str], str] = str
    """Turns a label of ours into the table's word for it."""
    delimiter: str | None = None
    """Stands between the cells; ``None``: a comma."""
    separator: str = BETWEEN_REFERENCES
    """Stands between the references in a cell."""


OUR_SHAPE = OwnShape()


def write_disagreements(
    folder: Path, disagreements: Sequence[Disagreement], shape: OwnShape = OUR_SHAPE
) -> None:
    """Write ``disagreements.csv``, with the caller's own columns at the end.

    It is read again as labelled rows, so what the judge says stands in no field of people. Columns
    that no row fills are left out. A column of the caller that is called like one of ours
    gets the name ``metadata.NAME``, and one of ours ``custos_NAME`` if the caller's mapping takes
    its name for another field.
    """
    people = dict.fromkeys(name for row in disagreements for name in row.example.annotator_labels)
    ours = [_our_cells(row, people, shape) for row in disagreements]
    is_pairs = any(len(row.example.responses) > 1 for row in disagreements)
    responses = () if is_pairs else ("response",)
    always = (
        "id",
        "question",
        "references",
        *responses,
        "label",
        "judge_label",
        "judge_confidence",
    )
    columns = [
        name
        for name in (ours[0] if ours else always)
        if name in always or any(cells[name] not in (None, "") for cells in ours)
    ]
    theirs = list(dict.fromkeys(name for row in disagreements for name in row.example.metadata))
    taken = {shape.columns[name] for name in columns if name in shape.columns}
    header = [
        shape.columns.get(name, f"custos_{name}" if name in taken else name) for name in columns
    ]
    for name in theirs:
        own = shape.columns.get(f"metadata.{name}", name)
        header.append(f"metadata.{name}" if own in header else own)

    def their_cell(value: object) -> object:
        is_nested = isinstance(value, list | tuple | dict)
        return json.dumps(value, ensure_ascii=False) if is_nested else value

    table = (
        [*map(cells.get, columns), *map(their_cell, map(row.example.metadata.get, theirs))]
        for row, cells in zip(disagreements, ours, strict=True)
    )
    write_spreadsheet(folder / FILE, header, table, shape.delimiter)


def _our_cells(row: Disagreement, people: Iterable[str], shape: OwnShape) -> Mapping[str, object]:
    example, verdict = row.example, row.verdict
    is_pair = len(example.responses) > 1

    def word(label: str | None) -> str | None:
        return None if label is None else shape.word(label)

    return {
        "id": example.id,
        "question": example.question,
        "choices": shape.separator.join(example.choices),
        "references": shape.separator.join(example.references),
        "criteria": shape.separator.join(example.criteria),
        "response": "" if is_pair else example.responses[0],
        "response_a": example.responses[0] if is_pair else "",
        "response_b": example.responses[1] if is_pair else "",
        # Of a data URL the kind alone, because a cell cannot hold it.
        "images": shape.separator.join(
            source.partition(",")[0] if source.startswith("data:") else source
            for source in example.images
        ),
        "label": word(row.people),
        "second_label": word(example.second_label),
        **{f"annotator_labels.{name}": word(example.annotator_labels.get(name)) for name in people},
        "judge_label": word(row.judge),
        "sides_with": row.sides_with,
        "judge_confidence": row.confidence,
        "needs_review": "true" if verdict.needs_review else "",
        "judge_critique": verdict.critique,
        "message": verdict.message,
        "judge": verdict.judge_name,
        "rubric": verdict.rubric,
    }
