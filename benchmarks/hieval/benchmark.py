"""HiEval: judges measured on responses that people scored, in the layout of its Tables 2 to 5."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.framework.base import Benchmark, ItemScore, PaperRow, Published, benchmark
from benchmarks.framework.files import Row
from benchmarks.framework.tables import coverage, store_verdicts, stored_verdicts, values
from evaluation.baselines import exact_match, relaxed_accuracy, rule_verdicts
from evaluation.estimate import without_nan
from evaluation.measure import measure, measure_error_types
from evaluation.outcomes import full_label, gather, label_set
from judging.errors import CustosError
from judging.tasks.hieval_ea import ERROR_TYPES
from judging.types import JudgeRequest, LabelledExample, Verdict, parse_record, type_of

_RUN = ("seconds", "cost")


@benchmark
class HiEval(Benchmark):
    """HiEval-QS and -EA (also QAScore): the share of human labels that a judge reproduces."""

    name = "hieval"
    summary = "judges against people: quick score and error analysis"
    tasks = ("hieval-qs", "hieval-ea")
    grade_fields = ()
    headline = "accuracy"
    image_field = "images"
    facets = {"task": (), "label": ("Correct", "Partial", "Wrong")}
    published = (
        Published(
            "Table 2: quick score",
            (*_RUN, "Acc"),
            {
                "Acc": (1.31, "free", 45.30),
                "Relaxed-Acc": (1.25, "free", 48.10),
                "BEM": (269.27, "free", 54.80),
                "PEDANTS": (16.89, "free", 61.25),
                "Gemini-2.0": (2767.15, "$0.1 + $0.4", 71.10),
                "GPT-4o": (3048.24, "$2.5 + $10", 79.95),
                "GPT-5-mini": (8930.65, "$0.25 + $2", 90.00),
                "GPT-5": (10097.85, "$1.25 + $10", 93.00),
                "Kimi-VL-A3B": (701.58, "free", 58.45),
                "Mimo-VL-7B": (39290.33, "free", 62.90),
                "Qwen3-4B": (752.34, "free", 70.95),
                "Qwen3-VL-4B": (190.71, "free", 76.60),
                "HiEval-QS": (396.55, "free", 93.80),
            },
        ),
        Published(
            "Table 3: QAScore",
            (*_RUN, "Acc"),
            {
                "Acc": (4.17, "free", 47.50),
                "Relaxed-Acc": (4.36, "free", 47.60),
                "BEM": (56.34, "free", 63.50),
                "PEDANTS": (15.89, "free", 70.20),
                "Gemini-2.0": (1172.85, "$0.1 + $0.4", 83.10),
                "GPT-4o": (1524.26, "$2.5 + $10", 83.70),
                "GPT-4o-mini": (1886.73, "$0.15 + $0.6", 84.50),
                "Mimo-VL-7B": (16567.37, "free", 76.40),
                "Qwen3-VL-4B": (190.71, "free", 83.50),
                "HiEval-QS": (170.26, "free", 91.70),
            },
        ),
        Published(
            "Table 4: error analysis",
            (*_RUN, "A-Acc", "S-Acc"),
            {
                "Gemini-2.0": (3367.0, "$0.1 + $0.4", 33.50, 70.40),
                "GPT-4o": (3194.0, "$2.5 + $10", 33.00, 81.30),
                "GPT-5-mini": (16638.0, "$0.25 + $2", 45.20, 85.30),
                "GPT-5": (13899.0, "$1.25 + $10", 57.80, 90.40),
                "Kimi-VL-A3B": (630.0, "free", 8.00, 47.90),
                "Mimo-VL-7B": (10234.0, "free", 37.40, 80.90),
                "Qwen3-VL-4B": (757.0, "free", 43.80, 84.30),
                "HiEval-EA": (501.0, "free", 85.50, 93.80),
            },
        ),
        Published(
            "Table 5: A-Acc by error type",
            ("Reasoning", "Image", "Unanswerable", "Overthinking", "Other", "overall"),
            {
                "Kimi-VL-A3B": (1.15, 10.19, 1.00, 0.00, 29.70, 8.00),
                "GPT-4o": (56.15, 64.53, 3.00, 4.76, 0.00, 33.00),
                "Gemini-2.0": (55.77, 21.89, 17.00, 54.29, 0.61, 33.50),
                "Mimo-RL-7B": (56.25, 50.22, 48.99, 35.18, 16.95, 41.77),
                "Qwen3-VL-4B": (60.38, 81.89, 62.00, 0.48, 0.61, 43.80),
                "GPT-5-mini": (55.00, 72.83, 47.00, 32.38, 0.61, 45.20),
                "GPT-5": (73.08, 67.55, 74.00, 64.29, 0.00, 57.80),
                "HiEval-EA": (73.85, 81.89, 98.00, 99.05, 84.85, 85.50),
            },
        ),
    )

    def requests(self, row: Row) -> tuple[JudgeRequest, ...]:
        """The labelled example without its label."""
        return (_example(row).request(),)

    def graded(self, row: Row, verdicts: Sequence[Verdict]) -> Row:
        """Adds the verdict beside the human label."""
        [verdict] = verdicts
        return {**row, **store_verdicts({_example(row).task: verdict})}

    def table(self, rows: Sequence[Row]) -> dict[str, Any]:
        """Per task, ``accuracy`` or, with error types, ``A-Acc``, ``S-Acc`` and ``by_error_type``.

        ``rules`` holds the accuracy of the paper's two rules that need no model, ``sources`` where
        the items are from.

        Shares over the items the judge scored; what it did not score counts in ``coverage``.
        """
        pairs = _pairs(rows)
        measured: dict[str, Any] = {}
        for task in dict.fromkeys(example.task for example, _ in pairs):
            own = [pair for pair in pairs if pair[0].task == task]
            examples, verdicts = [pair[0] for pair in own], [pair[1] for pair in own]
            measured[task] = without_nan(_measure(examples, verdicts))
        scored = sum(verdict.label is not None for _, verdict in pairs)
        return {
            **values(measured),
            "intervals": measured,
            "sources": sorted({example.source for example, _ in pairs}),
            **coverage(rows, scored, len(pairs)),
        }

    def paper_rows(self, table: Mapping[str, Any]) -> dict[str, dict[str, PaperRow]]:
        """Rows of Tables 2 to 5, with time and cost where one task was graded in one go.

        Quick scores of files whose ``source`` is QAScore belong into Table 3.
        """
        run = table.get("run") or {}
        is_one_task = ("hieval-qs" in table) != ("hieval-ea" in table)
        spent = tuple(run.get(name) if is_one_task else None for name in _RUN)
        two, three, four, five = (published.source for published in self.published)
        found: dict[str, dict[str, PaperRow]] = {}
        if score := table.get("hieval-qs"):
            is_qascore = all("qascore" in source.casefold() for source in table["sources"])
            rules = {
                name: (None, "free", _percent(accuracy))
                for name, accuracy in score["rules"].items()
            }
            judge = (*spent, _percent(score["accuracy"]))
            found[three if is_qascore else two] = {"this judge": judge, **rules}
        if analysis := table.get("hieval-ea"):
            scores = analysis["A-Acc"], analysis["S-Acc"]
            found[four] = {"this judge": (*spent, *map(_percent, scores))}
            kinds = [analysis["by_error_type"].get(kind) for kind in ERROR_TYPES]
            found[five] = {"this judge": (*map(_percent, kinds), _percent(analysis["A-Acc"]))}
        return found

    def people_said(self, row: Row) -> str:
        """The full label."""
        return full_label(_example(row))

    def scores(self, rows: Sequence[Row]) -> list[ItemScore]:
        """1 where the judge gives the human label, else 0."""
        return [
            ItemScore(
                example.id,
                example.group or example.question,
                None if said.label is None else float(full_label(said) == full_label(example)),
            )
            for example, said in _pairs(rows)
        ]


def _example(row: Row) -> LabelledExample:
    kept = {name: value for name, value in row.items() if name != "verdicts"}
    return parse_record(LabelledExample, kept, f"item '{row.get('id', '')}'")


def _pairs(rows: Sequence[Row]) -> list[tuple[LabelledExample, Verdict]]:
    """Examples with the verdicts on them.

    Raises:
        CustosError: If a row has no verdict on its task.
    """
    pairs = []
    for row in rows:
        example = _example(row)
        verdict = stored_verdicts(row).get(example.task)
        if verdict is None:
            raise CustosError(f"item '{example.id}': no verdict on '{example.task}'")
        pairs.append((example, verdict.model_copy(update={"id": example.id})))
    return pairs


def _measure(examples: Sequence[LabelledExample], verdicts: Sequence[Verdict]) -> dict[str, Any]:
    labels = label_set(examples, verdicts)
    outcomes = gather(examples, verdicts, labels)
    if not any(map(type_of, outcomes.labels)):
        rules = {
            f"{name} (rule)": measure(
                gather(examples, rule_verdicts(rule, examples), labels), ("accuracy",)
            )["accuracy"]
            for name, rule in (("Acc", exact_match), ("Relaxed-Acc", relaxed_accuracy))
        }
        return {**measure(outcomes, ("accuracy",)), "rules": rules}
    measured = measure(outcomes, ("type_accuracy", "score_accuracy"))
    return {
        "A-Acc": measured["type_accuracy"],
        "S-Acc": measured["score_accuracy"],
        "by_error_type": measure_error_types(outcomes),
    }


def _percent(share: float | None) -> float | None:
    return None if share is None else 100 * share
