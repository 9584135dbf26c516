"""Label Studio: a labelling configuration and tasks of requests, and its exports read back.

Exports are JSON, with one task each and everybody's annotations, or JSON-MIN, with one annotation
each. Predictions are never read: an annotation that began as one is a person's all the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any
from xml.etree import ElementTree

from data_prep.construction.forms.base import Form
from data_prep.construction.labelling import (
    Annotation,
    Shown,
    as_cell,
    asked,
    field_names,
    picture_names,
)
from data_prep.construction.sheets import ITEM

JUDGE = "judge"
"""Model version of predictions by a judge without a name."""
NO_PICTURE = (
    "data:image/gif;base64,"
    "R0lGODlhQAABAIAAAAAAAAAAACH5BAEAAAAALAAAAABAAAEAAAgPAAEIHEiwoMGDCBMqTBgQADs="
)
"""A low, empty picture for tasks without one where others have one: the tool takes no gaps."""


def configuration(form: Form, shown: Sequence[Shown]) -> str:
    """Write the labelling configuration for a form and what its tasks show, as XML."""
    view = ElementTree.Element("View")
    _header(view, form.guide, size="5")
    for picture in picture_names(shown):
        ElementTree.SubElement(view, "Image", name=picture, value=f"${picture}")
    names = field_names(form, shown)
    for heading, name in names.items():
        _header(view, heading)
        ElementTree.SubElement(view, "Text", name=name, value=f"${name}")
    about = list(names.values())[-1]
    for entry in asked(form):
        box = ElementTree.SubElement(view, "View")
        if entry.asked_if is not None:
            asked_by, choices = entry.asked_if
            box.attrib |= {
                "visibleWhen": "choice-selected",
                "whenTagName": asked_by,
                "whenChoiceValue": ",".join(choices),
            }
        _header(box, entry.prompt)
        common = {"name": entry.name, "toName": about}
        if entry.required:
            common |= {"required": "true", "requiredMessage": entry.prompt}
        if entry.kind == "text":
            ElementTree.SubElement(box, "TextArea", common, maxSubmissions="1", rows="3")
            continue
        choice = "single-radio" if entry.kind == "choice" else "multiple"
        choices_tag = ElementTree.SubElement(box, "Choices", common, choice=choice)
        for option, meaning in entry.options.items():
            shown_as = {"html": escape(f"{option}: {meaning}")} if meaning else {}
            ElementTree.SubElement(choices_tag, "Choice", {"value": option, **shown_as})
    ElementTree.indent(view)
    return ElementTree.tostring(view, encoding="unicode") + "\n"


def _header(parent: ElementTree.Element, text: str, size: str = "4") -> None:
    for line in text.splitlines():
        ElementTree.SubElement(parent, "Header", value=line, size=size)


def tasks(form: Form, shown: Sequence[Shown]) -> list[dict[str, Any]]:
    """Make the tasks to import, with a judge's choices as predictions where there are some."""
    names, pictures = field_names(form, shown), picture_names(shown)
    about = list(names.values())[-1]
    made = []
    for each in shown:
        urls = [*each.pictures, *[NO_PICTURE] * len(pictures)]
        data = {
            ITEM: each.item,
            **{name: each.texts.get(heading, "") for heading, name in names.items()},
            **dict(zip(pictures, urls, strict=False)),
        }
        task: dict[str, Any] = {"data": data}
        if each.guess:
            chosen = [
                {"from_name": name, "to_name": about, "type": "choices",
                 "value": {"choices": [choice]}}
                for name, choice in each.guess.items()
            ]  # fmt: skip
            score = {} if each.confidence is None else {"score": each.confidence}
            prediction = {"model_version": each.judge or JUDGE, **score, "result": chosen}
            task["predictions"] = [prediction]
        made.append(task)
    return made


def is_export(row: Mapping[str, Any]) -> bool:
    """Tell whether a row is one of an export, of either kind."""
    return "annotation_id" in row or ("annotations" in row and "data" in row)


def read_export(rows: Sequence[Mapping[str, Any]], form: Form) -> Iterator[Annotation]:
    """Yield what people gave in an export; raise ``FieldError`` for an answer of another kind."""
    entries = {entry.name for entry in asked(form)}
    for row in rows:
        place = f"task {row.get('id')}"
        if "annotation_id" in row:
            given = {name: _answer(row[name], place) for name in entries & row.keys()}
            person, when = _person(row.get("annotator")), _when(row)
            yield Annotation(str(row.get(ITEM, "")), place, person, given, when=when)
            continue
        item = str(row["data"].get(ITEM, ""))
        for draft in row.get("drafts") or ():
            person = _person(draft.get("user")) if isinstance(draft, Mapping) else ""
            yield Annotation(item, place, person, {}, "draft")
        for each in row["annotations"]:
            cells: dict[str, str] = {}
            for part in each.get("result") or ():
                if part.get("from_name") in entries:
                    value = next(iter(part["value"].values()), "")
                    cells[part["from_name"]] = _answer(value, place)
            yield Annotation(
                item,
                place,
                _person(each.get("completed_by")),
                cells,
                "skipped" if each.get("was_cancelled") else "given",
                _when(each),
                bool(each.get("ground_truth")),
            )


def _answer(value: Any, place: str) -> str:
    """Write an answer as a cell; JSON-MIN has several choices in an object."""
    return as_cell(next(iter(value.values()), "") if isinstance(value, Mapping) else value, place)


def _person(value: Any) -> str:
    """Name a person, of whom an export has the number or, with more, the address."""
    if isinstance(value, Mapping):
        value = value.get("email") or value.get("id")
    return "" if value is None else str(value)


def _when(row: Mapping[str, Any]) -> str:
    return str(row.get("updated_at") or row.get("created_at") or "")
