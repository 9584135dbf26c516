"""Argilla 2: settings and records of requests, and its exports read back.

The folder is one that ``rg.Dataset.from_disk`` takes. Exports are what ``to_disk`` and
``records.to_json`` write, and rows of ``records.to_datasets`` or ``records.to_list(flatten=True)``,
which alone say what is a draft or discarded.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from data_prep.construction.forms.base import Entry, Form
from data_prep.construction.labelling import (
    Annotation,
    Shown,
    State,
    as_cell,
    asked,
    field_names,
    picture_names,
)
from judging.files.values import is_empty

SETTINGS, DATASET, RECORDS = ".argilla/settings.json", ".argilla/dataset.json", "records.json"
RESPONSES, USERS, STATUS = ".responses", ".responses.users", ".responses.status"
"""Ends of the columns of a question in flat rows."""
_STATES: Mapping[str, State] = {"draft": "draft", "discarded": "skipped"}


def settings(form: Form, shown: Sequence[Shown]) -> dict[str, Any]:
    """Describe the data set of a form: what is shown, what is asked, and by how many people."""
    names = field_names(form, shown)
    pictures = [
        {"name": name, "title": "Picture", "required": False, "settings": {"type": "image"}}
        for name in picture_names(shown)
    ]
    texts = [
        {
            "name": name,
            "title": heading,
            "required": all(each.texts.get(heading) for each in shown),
            "settings": {"type": "text", "use_markdown": False},
        }
        for heading, name in names.items()
    ]
    return {
        "guidelines": form.guide,
        "allow_extra_metadata": False,
        "distribution": {"strategy": "overlap", "min_submitted": form.per_row},
        "fields": [*pictures, *texts],
        "questions": [_question(entry) for entry in asked(form)],
        "metadata": [],
        "vectors": [],
    }


def _question(entry: Entry) -> dict[str, Any]:
    """Describe a question; Argilla asks each always, so what depends on another is optional."""
    options = [
        {"value": value, "text": value, "description": meaning or None}
        for value, meaning in entry.options.items()
    ]
    kinds: dict[str, dict[str, Any]] = {
        "choice": {"type": "label_selection", "options": options},
        "choices": {"type": "multi_label_selection", "options": options},
        "text": {"type": "text", "use_markdown": False},
    }
    meanings = [f"{name}: {meaning}" for name, meaning in entry.options.items() if meaning]
    if entry.asked_if is not None:
        meanings.insert(0, f"Only for {' and '.join(entry.asked_if[1])}.")
    return {
        "name": entry.name,
        "title": entry.prompt,
        "description": "\n".join(meanings)[:1000] or None,
        "required": entry.required and entry.asked_if is None,
        "settings": kinds[entry.kind],
    }


def records(form: Form, shown: Sequence[Shown]) -> list[dict[str, Any]]:
    """Make the records, with a judge's choices as suggestions where there are some."""
    names = field_names(form, shown)
    return [
        {
            "id": each.item,
            "fields": {
                **dict(zip(picture_names(shown), each.pictures, strict=False)),
                **{names[heading]: text for heading, text in each.texts.items()},
            },
            "suggestions": {
                name: {"value": choice, "score": each.confidence, "agent": each.judge or None}
                for name, choice in each.guess.items()
            },
        }
        for each in shown
    ]


def is_export(row: Mapping[str, Any]) -> bool:
    """Tell whether a row is a record, nested or flat."""
    return "fields" in row or "_server_id" in row or any(name.endswith(USERS) for name in row)


def read_export(rows: Sequence[Mapping[str, Any]], form: Form) -> Iterator[Annotation]:
    """Yield what people gave in an export; raise ``FieldError`` for an answer of another kind."""
    for row in rows:
        item = str(row.get("id"))
        place = f"record {item}"
        by_person: dict[str, dict[str, str]] = {}
        states: dict[str, State] = {}
        for entry in asked(form):
            for person, value, status in _responses(row, entry.name):
                cells = by_person.setdefault(person, {})
                states[person] = _STATES.get(status, "given")
                if not is_empty(value):
                    cells[entry.name] = as_cell(value, place)
        for person, cells in by_person.items():
            yield Annotation(item, place, person, cells, states[person])


def _responses(row: Mapping[str, Any], question: str) -> Iterator[tuple[str, Any, str]]:
    """Yield who answered a question of a record, what, and the state of the whole response."""
    if "fields" in row:
        for each in (row.get("responses") or {}).get(question) or ():
            yield str(each["user_id"]), each.get("value"), str(each.get("status") or "submitted")
        return
    given = [row.get(f"{question}{end}") or () for end in (RESPONSES, USERS, STATUS)]
    for value, person, status in zip(*given, strict=True):
        yield str(person), value, str(status)
