"""Rows on which the judge and people differ, the most confident verdicts first."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from evaluation.outcomes import check_aligned, full_label
from evaluation.people.agreement import FIRST, SECOND, commonest, labels_by_person, side_of_judge
from judging.files.csv_rows import write_spreadsheet
from judging.types import LabelledExample, Verdict

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

    It does if its label is not that of the row, or is not the only one that most people gave. Rows
    without a label of the judge are not among them. Rows of equal confidence keep their order.
    Raise ``CustosError`` if examples and verdicts do not line up.
    """
    check_aligned(examples, verdicts)
    rows = []
    for example, verdict in zip(examples, verdicts, strict=True):
        if verdict.label is not None:
            judged, by_person = full_label(verdict), labels_by_person(example)
            is_commonest = len(by_person) < 2 or commonest(by_person) == [judged]
            if judged != full_label(example) or not is_commonest:
                rows.append(Disagreement(example, verdict))
    return sorted(rows, key=lambda row: 1.0 if row.confidence is None else -row.confidence)


def write_disagreements(folder: Path, disagreements: Sequence[Disagreement]) -> None:
    """Write ``disagreements.csv``, with the caller's own columns at the end.

    Columns that no row fills are left out. A column of the caller that is called like one of ours
    gets the name ``metadata.NAME``.
    """
    people = dict.fromkeys(name for row in disagreements for name in row.example.annotator_labels)
    ours = [_our_cells(row, people) for row in disagreements]
    is_pairs = any(len(row.example.responses) > 1 for row in disagreements)
    responses = () if is_pairs else ("response",)
    always = ("id", "question", "references", *responses, "label", "judge_label", "confidence")
    columns = [
        name
        for name in (ours[0] if ours else always)
        if name in always or any(cells[name] not in (None, "") for cells in ours)
    ]
    theirs = list(dict.fromkeys(name for row in disagreements for name in row.example.metadata))
    header = [*columns, *(f"metadata.{name}" if name in columns else name for name in theirs)]
    write_spreadsheet(
        folder / FILE,
        header,
        (
            [
                *(cells[name] for name in columns),
                *(
                    json.dumps(value, ensure_ascii=False)
                    if isinstance(value, list | tuple | dict)
                    else value
                    for value in map(row.example.metadata.get, theirs)
                ),
            ]
            for row, cells in zip(disagreements, ours, strict=True)
        ),
    )


def _our_cells(row: Disagreement, people: Iterable[str]) -> Mapping[str, object]:
    example, verdict = row.example, row.verdict
    is_pair = len(example.responses) > 1
    return {
        "id": example.id,
        "question": example.question,
        "choices": BETWEEN_REFERENCES.join(example.choices),
        "references": BETWEEN_REFERENCES.join(example.references),
        "criteria": BETWEEN_REFERENCES.join(example.criteria),
        "response": "" if is_pair else example.responses[0],
        "response_a": example.responses[0] if is_pair else "",
        "response_b": example.responses[1] if is_pair else "",
        # Of a data URL the kind alone, because a cell cannot hold it.
        "images": BETWEEN_REFERENCES.join(
            source.partition(",")[0] if source.startswith("data:") else source
            for source in example.images
        ),
        "label": row.people,
        "second_label": example.second_label,
        **{f"annotator_labels.{name}": example.annotator_labels.get(name) for name in people},
        "judge_label": row.judge,
        "sides_with": row.sides_with,
        "confidence": row.confidence,
        "needs_review": "true" if verdict.needs_review else "",
        "critique": verdict.critique,
        "message": verdict.message,
        "judge": verdict.judge_name,
        "rubric": verdict.rubric,
    }
