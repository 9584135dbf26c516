"""Requests that people label in Label Studio or Argilla, and the labels that come back from there.

A task names its request by a digest and holds nothing else of it but what people see: no id, no
model, no judge. What comes back finds its row by the digest, so that a label never goes to a
request that has changed since.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Literal

from data_prep.construction.forms.base import FORMS, Entry, Filled, Form, agreed_values
from data_prep.construction.sheet_page import picture_url
from data_prep.construction.sheets import item_name
from data_prep.construction.steps.base import Row
from data_prep.errors import UnusableText
from data_prep.tables.labels import most_given
from judging.errors import CustosError, FieldError, errors_at
from judging.tasks import get_task
from judging.types import JudgeRequest, LabelledExample, Verdict, label_of, parse_record

SEEN = ("task", "variant", "reference_mode", "question", "choices", "references", "criteria")
"""Fields of a request, beside its id and its responses, that its digest depends on."""
State = Literal["given", "draft", "skipped"]


def request_item(request: JudgeRequest) -> str:
    """Digest a request into the name of its task."""
    return item_name(request.model_dump_json(include={"id", *SEEN, "responses"}))


@dataclass(frozen=True)
class Shown:
    """A request as people see it."""

    item: str
    texts: Mapping[str, str]
    """Heading to text."""
    pictures: Sequence[str]
    """Data URLs."""
    guess: Mapping[str, str]
    """Entry to the judge's choice; empty if people see none."""
    confidence: float | None
    judge: str


def show(form: Form, request: JudgeRequest, verdict: Verdict | None = None) -> Shown:
    """Show a request by a form, with a judge's choice if there is a verdict with a label.

    Raise ``CustosError``, which names the row, if a picture cannot be read.
    """
    row = _row(request)
    with errors_at(f"row '{request.id}'"):
        pictures = [picture_url(source) for source in form.pictures(row)]
    guess: dict[str, str] = {}
    if verdict is not None and verdict.label is not None:
        full = label_of(verdict.label, verdict.error_type)
        for given in filter(None, (full, verdict.label, verdict.error_type)):
            for entry in form.entries:
                if entry.kind == "choice" and given in entry.options:
                    guess.setdefault(entry.name, given)
    confidence, judge = (verdict.confidence, verdict.judge_name) if verdict else (None, "")
    return Shown(request_item(request), form.shown(row), pictures, guess, confidence, judge)


def _row(request: JudgeRequest) -> dict[str, Any]:
    """Write a request as the row of a sheet, a single response under its own name."""
    row = request.model_dump(mode="json")
    if len(row["responses"]) == 1:
        row["response"] = row.pop("responses")[0]
    return row


def field_names(form: Form, shown: Sequence[Shown]) -> dict[str, str]:
    """Name the texts of all tasks by heading: ASCII, lower case, and no name of an entry.

    Tools want such names, and one for both a text and an answer would hide one of them.
    """
    taken = {*picture_names(shown), *(entry.name for entry in form.entries)}
    names: dict[str, str] = {}
    for heading in dict.fromkeys(heading for each in shown for heading in each.texts):
        words = "".join(c if c.isascii() and c.isalnum() else " " for c in heading.lower()).split()
        stem = "_".join(words) or "text"
        numbered = (stem if number == 1 else f"{stem}_{number}" for number in count(1))
        names[heading] = next(name for name in numbered if name not in taken)
        taken.add(names[heading])
    return names


def picture_names(shown: Sequence[Shown]) -> list[str]:
    """Name as many pictures as the task with the most has."""
    most = max(len(each.pictures) for each in shown)
    return [f"picture_{number}" for number in range(1, most + 1)]


def asked(form: Form) -> list[Entry]:
    """List what is asked in a tool, which has a button of its own to leave an item out."""
    return [entry for entry in form.entries if not entry.leaves_out]


@dataclass(frozen=True)
class Annotation:
    """What one person gave for a task."""

    item: str
    place: str
    """The task as the tool names it, for messages."""
    person: str
    """Empty if the tool does not say, such as of somebody who has left."""
    cells: Mapping[str, str]
    """Entry to what was given, several choices with ``;`` between them."""
    state: State = "given"
    when: str = ""
    """Time of the last change in ISO 8601, in UTC."""
    is_truth: bool = False
    """Marked in the tool as the right answer."""


@dataclass
class Labelled:
    """The labels of people, by row."""

    rows: list[LabelledExample] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    """Number of labels, skips, drafts, and so on."""
    replaced: list[str] = field(default_factory=list)
    """Who labelled a task again; the last label counts."""
    problems: list[str] = field(default_factory=list)
    """What cannot be used, by task and person."""


def bring_back(
    form: Form,
    requests: Iterable[tuple[JudgeRequest, Mapping[str, Any]]],
    annotations: Sequence[Annotation],
    names: Mapping[str, str],
    labels: Mapping[str, str],
) -> Labelled:
    """Bring annotations to the requests that they are about.

    ``requests`` have the fields of a labelled example that a request has not, such as
    ``sampling_probability``. ``names`` says what people are to be called, and ``labels`` what
    people's words mean. Of several annotations of one person the last counts. The label of a row is
    what is marked as right in the tool, or else what most people gave; what people gave beside it
    (reasons, faults, scores) is of those who gave that label.
    """
    result = Labelled()
    by_item: dict[str, dict[str, Annotation]] = defaultdict(dict)
    for each in sorted(annotations, key=lambda each: each.when):
        if each.state == "draft":
            result.counts["in draft"] += 1
            continue
        of_item = by_item[each.item]
        unnamed = (f"unnamed {number}" for number in count(1))
        person = names.get(each.person, each.person) or next(n for n in unnamed if n not in of_item)
        if person in of_item:
            result.replaced.append(f"{each.place}: {person}")
        of_item[person] = each
    known = set[str]()
    for request, more in requests:
        item = request_item(request)
        given = by_item.get(item, {})
        known.add(item)
        fillings: dict[str, Filled] = {}
        by_person: dict[str, str] = {}
        truths = set[str]()
        row = _row(request)
        for person, each in given.items():
            if each.state == "skipped":
                result.counts["skipped"] += 1
                continue
            try:
                filled = _read(form, each.cells, labels)
                if filled is None:
                    result.counts["skipped"] += 1
                    continue
                label = str(form.settled(row, {person: filled})["label"])
                get_task(request.task).target(_example(row, {"label": label}, each.place))
            except (CustosError, UnusableText) as error:
                result.problems.append(f"{each.place}: {person}: {error}")
                continue
            fillings[person], by_person[person] = filled, label
            truths |= {label} if each.is_truth else set()
        if not by_person:
            result.counts["unlabelled"] += 1
            continue
        if len(truths) > 1:
            place = next(iter(given.values())).place
            result.problems.append(f"{place}: marked as right: {', '.join(sorted(truths))}")
            continue
        result.counts["labels"] += len(by_person)
        label = next(iter(truths), None) or str(most_given(by_person, {}))
        numbers = Counter(by_person.values()).most_common(2)
        if not truths and len({number for _, number in numbers}) < len(numbers):
            result.counts["tied: the first person's label counts"] += 1
        agreeing = {name: fillings[name] for name in by_person if by_person[name] == label}
        people = {"annotators": list(by_person), "annotator_labels": by_person}
        settled = form.settled(row, agreeing)
        result.rows.append(_example(settled, {**more, **people}, f"row '{request.id}'"))
    for item in sorted(by_item.keys() - known):
        place = next(iter(by_item[item].values())).place
        result.problems.append(f"{place}: is about none of the rows as they are now")
    return result


def _example(row: Mapping[str, Any], more: Mapping[str, Any], place: str) -> LabelledExample:
    return parse_record(LabelledExample, {**row, **more}, place)


def _read(form: Form, cells: Mapping[str, str], labels: Mapping[str, str]) -> Filled | None:
    """Read what a person gave; what a form does not ask for after another answer is left out."""
    ours = {name: labels.get(cell, cell) for name, cell in cells.items()}
    return form.read(
        {
            entry.name: ours.get(entry.name, "")
            for entry in form.entries
            if entry.asked_if is None or ours.get(entry.asked_if[0]) in entry.asked_if[1]
        }
    )


def as_cell(value: Any, place: str) -> str:
    """Write an answer as the cell of a sheet; raise ``FieldError`` if it is no text or list."""
    values = value if isinstance(value, list | tuple) else [value]
    if not all(isinstance(each, str | int | float) for each in values):
        raise FieldError("", "an answer is neither a text nor a list of texts", place)
    return "; ".join(map(str, values))


RULES_HEADING = "What counts"
"""Heading of the instruction of a row, where rows have different ones."""


class LabelForm(Form):
    """A form with one entry, the label, and the instruction that a judge of the task gets."""

    def __init__(self, task: str, requests: Sequence[JudgeRequest]) -> None:
        """Make the form for some requests of a task; their rubrics decide what it says."""
        self.judge_task = get_task(task)
        self.name = self.task = task
        self.summary = f"the label of {task}"
        rubrics = dict.fromkeys(map(self.judge_task.rubric, requests))
        self.shows_rules = len(rubrics) > 1
        meanings = {label: "" for rubric in rubrics for label in self.judge_task.labels(rubric)}
        guide = ["Each item says what counts."] if self.shows_rules else []
        for line in [] if self.shows_rules else self._rules(next(iter(rubrics))).splitlines():
            name, _, meaning = line.replace("：", ":", 1).partition(":")
            if name in meanings:
                meanings[name] = meaning.strip()
            else:
                guide.append(line)
        self.guide = "\n".join(guide)
        self.entries = (Entry("label", "Label", options=meanings),)

    def _rules(self, rubric: str) -> str:
        """Write the instruction without its last line, the form of a judge's answer."""
        return self.judge_task.instruction(rubric).rpartition("\n")[0]

    def shown(self, row: Row) -> Mapping[str, str]:
        """Show the fields that a judge is shown, texts under one heading joined."""
        request = JudgeRequest.model_validate(row)
        texts = (
            {RULES_HEADING: self._rules(self.judge_task.rubric(request))}
            if self.shows_rules
            else {}
        )
        for part in self.judge_task.item(request):
            before = f"{texts[part.heading]}\n" if part.heading in texts else ""
            texts[part.heading] = f"{before}{part.text or '(empty)'}"
        return texts

    def pictures(self, row: Row) -> Sequence[str]:
        """List the pictures that a judge sees."""
        return self.judge_task.pictures(JudgeRequest.model_validate(row))

    def settled(self, row: Row, fillings: Mapping[str, Filled]) -> Row:
        """Make a labelled example of the row."""
        label = agreed_values(fillings)["label"]
        return {**row, "task": self.name, "label": label, "annotators": list(fillings)}


def form_of(task: str, requests: Sequence[JudgeRequest]) -> Form:
    """Choose the form in which people label requests of a task.

    It is the task's own screen, if it has one that states the rules of all these requests.
    """
    rubrics = set(map(get_task(task).rubric, requests))
    screens = (form for form in FORMS if form.task == task)
    fitting = (each for each in screens if each.rubric is None or rubrics <= {each.rubric})
    return next(fitting, None) or LabelForm(task, requests)
