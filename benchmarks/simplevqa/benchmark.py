"""SimpleVQA: short factual questions on pictures, in Chinese and English."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.framework.base import (
    Benchmark,
    ItemScore,
    MeasuredRow,
    PaperRow,
    benchmark,
    read_paper,
)
from benchmarks.framework.estimates import (
    OVERALL,
    Ratio,
    coverage,
    intervals,
    measure_stated_confidence,
    percent,
    values,
)
from benchmarks.framework.files import (
    WITHOUT_IMAGE,
    Row,
    error_location,
    item_name,
    missing_fields,
    parse_rows,
    store_verdicts,
    stored_verdicts,
)
from benchmarks.simplevqa.item import (
    ATOMIC,
    ATOMIC_GIVEN,
    FORMS,
    LANGUAGES,
    ORIGIN,
    RESPONSE_FIELDS,
    SimpleVQAItem,
    answering_models,
    decode_category,
    decode_row,
    language_names,
    parse_item,
    row_of_model,
    verdict_name,
)
from clients.messages import Decoding
from data_prep.construction.steps.simplevqa import DOMAINS, TASKS
from data_prep.construction.steps.simplevqa import PUBLISHED as STATISTICS
from judging.errors import CustosError
from judging.tasks.simplevqa import CHINESE, CONCLUSIONS, CORRECT, NOT_ATTEMPTED
from judging.types import JudgeRequest, Verdict, parse_record

METRICS = {
    "CO": Ratio((1, 0, 0), (1, 1, 1)),
    "IN": Ratio((0, 1, 0), (1, 1, 1)),
    "NA": Ratio((0, 0, 1), (1, 1, 1)),
    "CGA": Ratio((1, 0, 0), (1, 1, 0)),
    # The harmonic mean of c / n and c / (c + i), in one fraction: 0, not undefined, for c = 0.
    "F": Ratio((2, 0, 0), (2, 2, 1), is_rate=False),
}
"""Over columns correct, incorrect, not attempted (paper section 3.3)."""

_JSON = '{"answer": "...", "confidence_score": 85}'
_FORMS = {
    "entity": {
        "english": "Look at the picture and answer with one short named entity.",
        "chinese": "请看图作答，只给出一个简短的命名实体。",
    },
    "confidence": {
        "english": "Answer briefly. After the answer, state in square brackets how sure you are, "
        "from 0 to 1. Example: [0.85]",
        "chinese": "请简短作答，并在答案后用方括号写出你的把握，取0到1之间的数，例如：[0.85]",
    },
    "entity-confidence": {
        "english": "Look at the picture and answer with one named entity. Reply with a JSON object "
        f"of the answer and of how sure you are, from 0 to 100: {_JSON}",
        "chinese": "请看图作答，答案只能是一个命名实体。请用JSON对象给出答案和你的把握（0到100）："
        f"{_JSON}",
    },
}
_HINT = {"english": "Known: {question} {fact}", "chinese": "已知：{question}{fact}"}
_VERDICT_NAMES = {form: verdict_name() if form == ORIGIN else f"simplevqa {form}" for form in FORMS}
BY_TASK = "Table 3 (%): overall, then F by task"
BY_DOMAIN = "Table 4 (%): by language, then F by domain"
CFQ = "Table 5 (%): accuracy on the 569 CFQ items"
BLIND = "Table 6 (%): without the picture"
_SHARES = tuple(round(100 * STATISTICS[code], 2) for code in (*TASKS, *DOMAINS))
_TABLE_2: Mapping[str, Mapping[str, PaperRow]] = {
    "Table 2: items": {name: (number,) for name, number in STATISTICS.items() if number >= 1},
    "Table 2 (%): shares of tasks and domains": {"share of the items": _SHARES},
}
_CAUSES = ("did not see", "did not know", "neither saw nor knew", "saw and knew")


@benchmark
class SimpleVQA(Benchmark):
    """SimpleVQA (2,025 items): correct, incorrect and not attempted, by language, task, domain."""

    name = "simplevqa"
    summary = "short factual visual questions, Chinese and English"
    headline = "CO"
    tasks = ("simplevqa",)
    published, example = read_paper("simplevqa", _TABLE_2)
    grade_fields = ("judge_res", "cfq")
    found_fields = (*grade_fields, *RESPONSE_FIELDS.values(), "model", "confidence")
    item_id = "data_id"
    image_field = "image"
    styles = ("standard", "entity", "confidence", "entity-confidence", "cfq")
    decodings = {"published": Decoding()}
    facets = {"vqa_category.task_category": tuple(TASKS), "language": ()}

    def load(self, source: str, images: Path | None = None) -> list[Row]:
        """Read the official items with their categories decoded."""
        rows = super().load(source, images)
        with error_location(Path(source)):
            return [decode_category(row) for row in rows]

    def prompts(self, row: Row, style: str) -> dict[str, str]:
        """Word the bare question; with a request for its form; or in CFQ's three forms.

        Style ``entity`` asks for a short named entity as the official script does, and
        ``entity-confidence`` for a JSON object with the answer and a confidence from 0 to 100. In
        style ``cfq``, items that ask for no more than their subject are asked as they are.
        """
        item = parse_item(row)
        if not item.question.strip():
            raise missing_fields(["question"], item_name(item.id))
        if style in _FORMS:
            return {"response": f"{item.question}\n{_FORMS[style][item.variant]}"}
        if style == "standard" or not item.is_complex:
            return {"response": item.question}
        hint = _HINT[item.variant].format(question=item.atomic_question, fact=item.atomic_fact)
        return {
            RESPONSE_FIELDS[ORIGIN]: item.question,
            RESPONSE_FIELDS[ATOMIC]: item.atomic_question,
            RESPONSE_FIELDS[ATOMIC_GIVEN]: f"{hint}\n{item.question}",
        }

    def requests(self, row: Row) -> tuple[JudgeRequest, ...]:
        """Make one request per response, in the item's language; text only, as in the paper.

        A row of the official files may hold the answers of several models.
        """
        models = answering_models(row)
        if len(models) > 1:
            return tuple(
                request.model_copy(update={"id": f"{request.id}/{model}"})
                for model in models
                for request in self.requests(row_of_model(row, model, models))
            )
        item = parse_item(row)
        # A blank answer, which files of tables leave out, makes the row alone invalid.
        if set(item.missing) - {"answer"}:
            raise missing_fields(item.missing, item_name(item.id))
        return tuple(_request(item, form, response) for form, response in item.responses.items())

    def graded_row(self, row: Row, verdicts: Sequence[Verdict]) -> Row:
        """Add ``judge_res``, in the Chinese words that the official script counts, and ``cfq``."""
        conclusions = [
            {"conclusion": None if verdict.label is None else CHINESE[verdict.label]}
            for verdict in verdicts
        ]
        models, others = answering_models(row), {}
        if len(models) > 1:
            judged = dict(zip(models, conclusions, strict=True))
            names = [verdict_name(model) for model in models]
        else:
            item = parse_item(row)
            others = dict(zip(item.responses, conclusions, strict=True))
            names = [_VERDICT_NAMES[form] for form in others]
            judged = {item.model: others.pop(ORIGIN)} if ORIGIN in others else {}
        graded = dict(row)
        if judged:
            graded["judge_res"] = {**(row.get("judge_res") or {}), **judged}
        if others:
            graded["cfq"] = others
        return {**graded, **store_verdicts(dict(zip(names, verdicts, strict=True)))}

    def table(self, rows: Sequence[Row]) -> dict[str, Any]:
        """Compute ``overall``, ``by_language``, ``by_task`` and ``by_domain``.

        Each has CO, IN, NA, CGA and F as shares. Conclusions that cannot be read count in
        ``coverage`` alone. ``as_published`` holds the same figures as the official script counts
        them, where that makes a difference: such a conclusion is an answer that was not attempted,
        so that all items are in every denominator. Where responses state a confidence there is also
        ``calibration``; where atomic questions were asked, also ``cfq``: accuracy by form, each
        over its own items, and the causes of failures. ``without_image`` says whether the model saw
        no picture. Raise ``CustosError`` if a row does not fit, nothing is graded or the file holds
        several models.
        """
        items = parse_rows(map(decode_row, rows), SimpleVQAItem)
        model = _only_model(items)
        if model is None:
            raise CustosError("no item has a 'judge_res'")
        labels = [item.conclusion(ORIGIN, model) for item in items]
        measured = _measure_labels(items, labels)
        confidence = [item.stated_confidence for item in items]
        if any(stated is not None for stated in confidence):
            right = [None if label is None else label == CORRECT for label in labels]
            clusters = _clusters(items)
            measured["calibration"] = measure_stated_confidence(confidence, right, clusters)
        official: dict[str, Any] = {}
        if any(item.cfq for item in items):
            measured["cfq"] = _measure_cfq(model, items)
            official["cfq"] = _measure_cfq(model, items, as_published=True)
        num_scored = sum(label is not None for label in labels)
        if num_scored < len(items) or official.get("cfq") != measured.get("cfq"):
            all_labels = [label or NOT_ATTEMPTED for label in labels]
            measured["as_published"] = {**_measure_labels(items, all_labels), **official}
        return {
            "model": model,
            **values(measured),
            "intervals": measured,
            **coverage(rows, num_scored, len(items)),
            WITHOUT_IMAGE: all(row.get(WITHOUT_IMAGE) for row in rows),
        }

    def by_model(self, rows: Sequence[Row]) -> dict[str, list[Row]]:
        """Divide graded rows by model, named as the official script does: ``g4o_response``.

        Every model has all rows: an item without its conclusion was not attempted. Models whose
        answers nobody graded are left out.
        """
        judged = (row["judge_res"] for row in rows if isinstance(row.get("judge_res"), dict))
        names = list(dict.fromkeys(name for conclusions in judged for name in conclusions))
        models = {*names, *(name for row in rows for name in answering_models(row))}
        if not names or len(models) == 1:
            return {name: list(rows) for name in names or [""]}
        return {name: [row_of_model(row, name, models) for row in rows] for name in names}

    def paper_rows(self, table: Mapping[str, Any], name: str) -> dict[str, dict[str, MeasuredRow]]:
        """Lay out rows of Tables 3 to 5 or, for a model that saw no picture, of Table 6.

        They are counted as the official script does, in per cent.
        """
        measured = table["intervals"]
        counted = measured.get("as_published", measured)
        forms = counted.get("cfq", measured.get("cfq"))
        cfq: MeasuredRow = tuple(percent(forms[form]) for form in FORMS) if forms else ()
        languages = {
            LANGUAGES.get(language.strip().casefold()): part
            for language, part in counted["by_language"].items()
        }

        def figures(parts: Mapping[Any, Any], names: Iterable[str], *metrics: str) -> MeasuredRow:
            found = [parts.get(part, {}) for part in names]
            return tuple(percent(part.get(metric)) for part in found for metric in metrics)

        def overall(*metrics: str) -> MeasuredRow:
            return figures(counted, [OVERALL], *metrics)

        rows: dict[str, MeasuredRow] = {}
        if table[WITHOUT_IMAGE]:
            rows[BLIND] = overall("CO", "IN", "NA", "CGA")
            # Without the picture, only a question with its subject given can be asked.
            cfq = (None, None, cfq[-1]) if cfq else ()
        else:
            by_task = figures(counted["by_task"], TASKS, "F")
            rows[BY_TASK] = (*overall("CO", "NA", "IN", "CGA", "F"), *by_task)
            by_language = figures(languages, ("chinese", "english"), "CO", "CGA", "F")
            rows[BY_DOMAIN] = (
                *by_language,
                *figures(counted["by_domain"], DOMAINS, "F"),
            )
        rows |= {CFQ: cfq} if cfq else {}
        return {source: {name: row} for source, row in rows.items()}

    def scores(self, rows: Sequence[Row]) -> list[ItemScore]:
        """Score 1 for a correct response, else 0; refuse a file of several models."""
        items = parse_rows(map(decode_row, rows), SimpleVQAItem)
        model = _only_model(items) or ""
        conclusions = [item.conclusion(ORIGIN, model) for item in items]
        return [
            ItemScore(item.id, cluster, None if label is None else float(label == CORRECT))
            for item, cluster, label in zip(items, _clusters(items), conclusions, strict=True)
        ]

    def facets_of(self, row: Row) -> dict[str, str]:
        """Look up task and language, under any name and in any form that the table takes."""
        item = parse_item(row)
        parts = zip(self.facets, (item.task, item.language), strict=True)
        return {name: part for name, part in parts if part is not None}

    def graded_label(self, row: Row) -> str | None:
        """Read the conclusion: a wrong answer and no attempt are told apart."""
        item = parse_item(row)
        return item.conclusion(ORIGIN, next(iter(item.judge_res), ""))

    def compared_verdict(self, row: Row) -> Verdict | None:
        """Look up the verdict on the question as it is, not on one of its other forms."""
        return stored_verdicts(row).get(_VERDICT_NAMES[ORIGIN])


def _only_model(items: Sequence[SimpleVQAItem]) -> str | None:
    """Name the one model whose answers were graded; ``None`` if none were. Refuse several."""
    models = sorted({model for item in items for model in item.judge_res})
    if len(models) > 1:
        raise CustosError(f"several models in one file: {', '.join(models)}")
    return models[0] if models else None


def _request(item: SimpleVQAItem, form: str, response: str) -> JudgeRequest:
    is_atomic = form == ATOMIC
    answer = item.atomic_fact if is_atomic else item.answer
    fields = {
        "id": item.id if form == ORIGIN else f"{item.id}/{form}",
        "task": "simplevqa",
        "variant": item.variant,
        "question": item.atomic_question if is_atomic else item.question,
        "references": (answer,) if answer else (),
        "responses": (response,),
        "metadata": {"language": item.language, "task": item.task, "domain": item.domain},
    }
    return parse_record(JudgeRequest, fields, f"item '{item.id}'")


def _clusters(items: Sequence[SimpleVQAItem]) -> list[str]:
    return [item.question or str(number) for number, item in enumerate(items)]


def _measure_labels(items: Sequence[SimpleVQAItem], labels: Sequence[str | None]) -> dict[str, Any]:
    """Measure CO, IN, NA, CGA and F over all items and over their parts."""
    columns = [[label == conclusion for conclusion in CONCLUSIONS] for label in labels]
    return intervals(
        np.array(columns, dtype=np.float64),
        _clusters(items),
        METRICS,
        {
            "by_language": language_names(items),
            "by_task": [item.task for item in items],
            "by_domain": [item.domain for item in items],
        },
    )


def _measure_cfq(
    model: str, items: Sequence[SimpleVQAItem], *, as_published: bool = False
) -> dict[str, Any]:
    """Measure accuracy in each form of complex questions, and the causes of wrong answers.

    A model did not see if it does not recognise the subject and answers right once the subject is
    given. It did not know if it recognises the subject and still answers wrong once it is given.
    Items that were asked in more than one form count. ``as_published`` counts a conclusion that
    cannot be read as wrong, not as missing.

    Estimates are ``Origin``, ``Atomic``, ``Atomic-Given``, each over its own items, and the four
    causes as shares of the items that have all three forms and are wrong as Origin.
    """
    items = [item for item in items if item.cfq]
    labels = np.array([[item.conclusion(form, model) or "" for form in FORMS] for item in items])
    rights, known = labels == CORRECT, labels != ""
    if as_published:
        asked = [{*item.cfq, *([ORIGIN] if model in item.judge_res else [])} for item in items]
        known |= np.array([[form in of_item for form in FORMS] for of_item in asked])
    origin, atomic, given = rights.T
    failed = known.all(axis=1) & ~origin
    causes = [~atomic & given, atomic & ~given, ~atomic & ~given, atomic & given]
    columns = np.column_stack([rights, known, failed, *(failed & cause for cause in causes)])
    unit = [tuple(row) for row in np.eye(columns.shape[1]).tolist()]
    metrics = {form: Ratio(unit[place], unit[3 + place]) for place, form in enumerate(FORMS)}
    metrics |= {cause: Ratio(unit[7 + place], unit[6]) for place, cause in enumerate(_CAUSES)}
    found = intervals(columns.astype(np.float64), _clusters(items), metrics, {})
    return dict(found[OVERALL])
