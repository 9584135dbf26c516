"""HiEval: judges measured on responses that people scored, in the layout of its Tables 2 to 5."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.framework.base import Benchmark, ItemScore, MeasuredRow, benchmark, read_paper
from benchmarks.framework.estimates import (
    OVERALL,
    RATE,
    coverage,
    intervals,
    percent,
    value_columns,
    values,
)
from benchmarks.framework.files import Row, item_name, parse_row, stored_verdicts
from evaluation.baselines import exact_match, relaxed_accuracy, rule_verdicts
from evaluation.estimate import without_nan
from evaluation.measure import error_types, measure, measure_error_types
from evaluation.outcomes import check_labels, full_label, gather, label_set
from evaluation.report.markdown import TABLE_4, TABLE_5
from judging.errors import CustosError
from judging.tasks.hieval_ea import ERROR_TYPES
from judging.types import JudgeRequest, LabelledExample, Verdict
from judging.verdicts.build import before_calibration

RULE_BASELINES = {"Acc": exact_match, "Relaxed-Acc": relaxed_accuracy}
"""The paper's two baselines that need no model."""
TIME_AND_COST = ("seconds", "cost")
QUICK_SCORE = "Table 2: quick score"
QASCORE = "Table 3: QAScore"
_OF_ITEMS = {*JudgeRequest.model_fields, "weight", "split", "group", "source"}
"""Fields of an example that are not about its response, but for the response itself."""
ERROR_ANALYSIS = "Table 4: error analysis"
BY_ERROR_TYPE = "Table 5: A-Acc by error type"


@benchmark
class HiEval(Benchmark):
    """HiEval-QS and -EA (also QAScore): the share of human labels that a judge reproduces."""

    name = "hieval"
    summary = "judges against people: quick score and error analysis"
    headline = "accuracy"
    tasks = ("hieval-qs", "hieval-ea")
    published, example = read_paper("hieval", {ERROR_ANALYSIS: TABLE_4, BY_ERROR_TYPE: TABLE_5})
    found_fields = ("responses", *(LabelledExample.model_fields.keys() - _OF_ITEMS))
    image_field = "images"
    facets = {"task": (), "label": ("Correct", "Partial", "Wrong")}

    def requests(self, row: Row) -> tuple[JudgeRequest, ...]:
        """Make the request of an example, leaving out its label, which must be a declared one.

        The quick score reads text alone, so that its requests have no pictures.
        """
        example = _example(row)
        check_labels([example], row_name=lambda _: f"item '{example.id}'")
        request = example.request()
        if request.task == "hieval-qs":
            request = request.model_copy(update={"images": ()})
        return (request,)

    def table(self, rows: Sequence[Row]) -> dict[str, Any]:
        """Compute, per task, ``accuracy`` or ``A-Acc``, ``S-Acc`` and ``by_error_type``.

        The latter three are for labels with error types. For the others ``rules`` holds the
        accuracy of the paper's two baselines that need no model. ``sources`` names where the items
        are from. Shares are over the items that the judge scored; the others count in ``coverage``
        and, as wrong, in ``as_published``: the paper has one denominator for all judges. There
        labels are those before calibration, which the paper does not have.
        """
        pairs = _pairs(rows)
        measured = {
            task: without_nan(_measure([pair for pair in pairs if pair[0].task == task]))
            for task in dict.fromkeys(example.task for example, _ in pairs)
        }
        scored = sum(verdict.label is not None for _, verdict in pairs)
        return {
            **values(measured),
            "intervals": measured,
            "sources": sorted({example.source for example, _ in pairs}),
            **coverage(rows, scored, len(pairs)),
        }

    def paper_rows(self, table: Mapping[str, Any], name: str) -> dict[str, dict[str, MeasuredRow]]:
        """Lay out rows of Tables 2 to 5, with time and cost where one run graded one task.

        Quick scores of files whose ``source`` is QAScore belong to Table 3. A reply that could not
        be read counts as wrong.
        """
        run, measured = table.get("run") or {}, table["intervals"]
        is_one_task = ("hieval-qs" in table) != ("hieval-ea" in table)
        known = [run.get(part) if is_one_task else None for part in TIME_AND_COST]
        spent = tuple(round(each, 4) if isinstance(each, float) else each for each in known)
        rows: dict[str, dict[str, MeasuredRow]] = {}
        if score := measured.get("hieval-qs"):
            is_qascore = all("qascore" in source.casefold() for source in table["sources"])
            rules: dict[str, MeasuredRow] = {
                rule: (None, "free", percent(accuracy)) for rule, accuracy in score["rules"].items()
            }
            judge = (*spent, percent(score["as_published"]["accuracy"]))
            rows[QASCORE if is_qascore else QUICK_SCORE] = {name: judge, **rules}
        if analysis := measured.get("hieval-ea"):
            counted = analysis["as_published"]
            named, scored = percent(counted["A-Acc"]), percent(counted["S-Acc"])
            rows[ERROR_ANALYSIS] = {name: (*spent, named, scored)}
            by_type = [counted["by_error_type"].get(kind) for kind in ERROR_TYPES]
            rows[BY_ERROR_TYPE] = {name: (*map(percent, by_type), named)}
        return rows

    def human_label(self, row: Row) -> str:
        """Spell the full label that people gave."""
        return full_label(_example(row))

    def scores(self, rows: Sequence[Row]) -> list[ItemScore]:
        """Score 1 where the judge gives the human label, else 0."""
        return [
            ItemScore(
                example.id,
                example.group or example.asked,
                None
                if verdict.label is None
                else float(full_label(verdict) == full_label(example)),
            )
            for example, verdict in _pairs(rows)
        ]


def _example(row: Row) -> LabelledExample:
    fields = {name: value for name, value in row.items() if name != "verdicts"}
    return parse_row(LabelledExample, fields, item_name(row.get("id")))


def _pairs(rows: Sequence[Row]) -> list[tuple[LabelledExample, Verdict]]:
    """Pair examples with the verdicts on them; refuse a row without a verdict on its task."""
    pairs = []
    for row in rows:
        example = _example(row)
        verdict = stored_verdicts(row).get(example.task)
        if verdict is None:
            raise CustosError(f"item '{example.id}': no verdict on '{example.task}'")
        pairs.append((example, verdict.model_copy(update={"id": example.id})))
    return pairs


def _measure(pairs: Sequence[tuple[LabelledExample, Verdict]]) -> dict[str, Any]:
    """Measure one task: its part of the table."""
    examples, verdicts = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    labels = label_set(examples, verdicts)
    outcomes = gather(examples, verdicts, labels)
    clusters = [example.group or example.asked for example in examples]
    # Score and error type as people gave them, and as the judge did before calibration.
    human = [full_label(example).partition("; ") for example in examples]
    said = [full_label(before_calibration(e.request(), v)).partition("; ") for e, v in pairs]

    def published(
        name: str, right: Sequence[float | None], types: Sequence[str | None] = ()
    ) -> dict[str, Any]:
        parts = {"types": types} if types else {}
        return intervals(value_columns(right), clusters, {name: RATE}, parts, ERROR_TYPES)

    if error_types(labels):
        measured = measure(outcomes, ("type_accuracy", "score_accuracy"))
        both = list(zip(human, said, strict=True))
        types = [kind or None for _, _, kind in human]
        typed = published("A-Acc", [float(h[2] == s[2]) if h[2] else None for h, s in both], types)
        scored = published("S-Acc", [float(h[0] == s[0]) for h, s in both])
        return {
            "A-Acc": measured["type_accuracy"],
            "S-Acc": measured["score_accuracy"],
            "by_error_type": measure_error_types(outcomes),
            "as_published": {
                **typed[OVERALL],
                **scored[OVERALL],
                "by_error_type": {kind: part["A-Acc"] for kind, part in typed["types"].items()},
            },
        }
    rules = {}
    for name, rule in RULE_BASELINES.items():
        by_rule = gather(examples, rule_verdicts(rule, examples), labels)
        rules[f"{name} (rule)"] = measure(by_rule, ("accuracy",))["accuracy"]
    right = [float(h == s) for h, s in zip(human, said, strict=True)]
    return {
        **measure(outcomes, ("accuracy",)),
        "rules": rules,
        "as_published": published("accuracy", right)[OVERALL],
    }
