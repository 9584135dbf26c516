"""Made answers to the five benchmarks, as files of each benchmark's own shape.

They show the pages of ``custos bench table`` without anyone's data. Questions, answers, grades and
people's labels are drawn by this program: no model and no person gave any.

python -m experiments made_leaderboards --out runs/made
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

from rich.console import Console

from benchmarks.charthal.item import RELATIONS, TYPES
from benchmarks.chartom.published import HMI
from benchmarks.framework.base import get_benchmark
from benchmarks.simplevqa.published import DOMAINS, TASKS
from benchmarks.truthfulvqa.published import CATEGORIES
from data_prep.synthetic.seeds import seeded_rng
from judging.files.records import write_json
from judging.tasks.chartom_justification import MISSED, NAMED
from judging.tasks.hieval_ea import ERROR_TYPES
from judging.tasks.simplevqa import CHINESE, CORRECT, INCORRECT, NOT_ATTEMPTED
from judging.types import Verdict

Row = dict[str, Any]
SKILLS: Mapping[str, float] = {
    "made A (no model)": 0.8,
    "made B (no model)": 0.6,
    "made C (no model)": 0.35,
}
"""Name to the share of easy questions that are answered right."""
JUDGE = "made grades"
PEOPLE = 40
"""People who answer a chart's FACT question."""
FIGURES, PER_PART, SETS, EXAMPLES = 30, 4, 12, 300
"""Figures of ChartHal, questions of each part of SimpleVQA, pictures of each category of
TruthfulVQA, and examples of each task of HiEval."""


def main(argv: Sequence[str] | None = None) -> None:
    """Run the program."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, required=True, help="Write the files to this folder.")
    out = parser.parse_args(argv).out
    write_charthal(out / "ChartHal")
    write_simplevqa(out / "SimpleVQA_judge.json")
    write_truthfulvqa(out / "TruthfulVQA")
    write_chartom(out / "chartom")
    write_hieval(out / "hieval")
    Console().print(f"{out}: made answers to charthal, simplevqa, truthfulvqa, chartom, hieval")


def write_charthal(folder: Path) -> None:
    """Write ``results/MODEL/eval.json``, as a clone of ChartHal's repository has them.

    Every figure has a question of each of the twelve kinds.
    """
    hard = {"irrel": 1.5, "inexist": 1.2, "contra": 3.0, "normal": 0.6}
    cells = [(q_type, relation) for q_type in TYPES for relation in RELATIONS]
    for name, skill in SKILLS.items():
        rows = {}
        for figure in range(FIGURES):
            for number, (q_type, relation) in enumerate(cells):
                drawn = seeded_rng("charthal", name, figure, number)
                score = int(drawn.random() < skill ** hard[relation])
                rows[f"{figure}_{number}"] = {
                    "figure_id": figure,
                    "figure_path": f"images/{figure}.jpg",
                    "subq_idx": number,
                    "q_type": q_type,
                    "q_relation": relation,
                    "question": f"Made question {number} about figure {figure}?",
                    "ref_answer": "made reference",
                    "response": "made answer",
                    "eval_resp": f"Score: {score}",
                    "score": score,
                }
        _write(folder / "results" / name / "eval.json", rows)


def write_simplevqa(path: Path) -> None:
    """Write one file with the answers, confidences and conclusions of all models."""
    rows: list[Row] = []
    parts = [(task, domain) for task in TASKS for domain in DOMAINS]
    for number in range(PER_PART * len(parts)):
        task, domain = parts[number % len(parts)]
        row: Row = {
            "data_id": number,
            "language": ("EN", "CN")[number // len(parts) % 2],
            "question": f"Made question {number}?",
            "answer": "made reference",
            "vqa_category": {"task_category": task, "subject_category": domain},
            "judge_res": {},
        }
        for name, skill in SKILLS.items():
            drawn = seeded_rng("simplevqa", name, number)
            chance = skill ** (1 + TASKS.index(task) / len(TASKS))
            label = _conclusion(drawn, chance)
            row[f"{name}_response"] = "made answer"
            row[f"{name}_confidence_score"] = _stated(drawn, chance)
            row["judge_res"][f"{name}_response"] = {"conclusion": CHINESE[label]}
        rows.append(row)
    _write(path, rows)


def write_truthfulvqa(folder: Path) -> None:
    """Write ``extracted/MODEL.json``, as the results of TruthfulVQA's code.

    Every category has pictures with a question at all three levels.
    """
    for name, skill in SKILLS.items():
        rows: list[Row] = []
        for place, category in enumerate(CATEGORIES):
            for level in (level for _ in range(SETS) for level in (1, 2, 3)):
                drawn = seeded_rng("truthfulvqa", name, len(rows))
                chance = skill ** (level * (0.6 + 0.08 * place))
                truth = drawn.choice("ABCD")
                wrong = [letter for letter in "ABCD" if letter != truth]
                option = truth if drawn.random() < chance else drawn.choice(wrong)
                row = {
                    "question_id": len(rows),
                    "set_id": len(rows) // 3,
                    "category": category,
                    "subcategory": f"made part of {category}",
                    "level": level,
                    "question": "Made question?",
                    "ground_truth": truth,
                    "response": f"({option})[{_stated(drawn, chance) / 100:.2f}]",
                    "extracted_answer": option,
                    "is_correct": option == truth,
                }
                rows.append(row)
        _write(folder / "extracted" / f"{name}.json", rows)


def write_chartom(folder: Path) -> None:
    """Write ``items.json`` and ``MODEL.json``: pairs of charts and graded answers about them.

    Pairs, kinds and manipulations are those that the paper prints; everything else is made.
    """
    chartom = get_benchmark("chartom")
    [printed] = [table.rows for table in chartom.published if table.source == HMI]
    items: list[Row] = []
    for pair, (kind, low, trick, high) in printed.items():
        for version, (name, share) in enumerate((("", low), (trick, high)), 1):
            misled = round(PEOPLE * float(str(share)))
            item: Row = {
                "id": f"{pair}_{version}",
                "kind": kind,
                "question": f"Made question about {pair}: how many?",
                "question_type": "number",
                "answer": 20,
                "unit": "units",
                "alternatives": [60],
                "manipulation": name,
                "hmi": misled / PEOPLE,
                "human_answers": [60] * misled + [20] * (PEOPLE - misled),
            }
            items.append(item)
    _write(folder / "items.json", items)
    for name, skill in SKILLS.items():
        graded = []
        for item in items:
            drawn = seeded_rng("chartom", name, item["id"])
            right = drawn.random() < (skill**1.5 if item["manipulation"] else skill**0.4)
            guess = min(1.0, max(0.0, drawn.gauss(item["hmi"], 0.6 * (1 - skill))))
            answers = {
                "fact_response": f"{20 if right else 60} units",
                "mind_response": f"{guess:.2f} Made reasons.",
            }
            asked = chartom.requests({**item, **answers})
            label = NAMED if drawn.random() < skill else MISSED
            verdict = Verdict(status="scored", label=label, judge=JUDGE)
            graded.append(chartom.graded_row({**item, **answers}, [verdict] * len(asked)))
        _write(folder / f"{name}.json", graded)


def write_hieval(folder: Path) -> None:
    """Write ``MODEL.json``: made judges' labels beside made labels of people, for both tasks."""
    hieval = get_benchmark("hieval")
    for name, skill in SKILLS.items():
        rows = []
        for task in hieval.tasks:
            for number in range(EXAMPLES):
                people = _human_label(seeded_rng("hieval", task, number), task)
                other = _human_label(seeded_rng("hieval", task, number, "other"), task)
                drawn = seeded_rng("hieval", task, number, name)
                is_copied = people == "Correct" and number % 2 == 0
                chance = skill ** (0.3 if task == "hieval-qs" else 0.8)
                label, _, kind = (people if drawn.random() < chance else other).partition("; ")
                verdict = Verdict(
                    status="scored", label=label, error_type=kind or None, judge=JUDGE
                )
                example = {
                    "id": f"{task}-{number}",
                    "task": task,
                    "question": f"Made question {number}?",
                    "references": ["made reference"],
                    "response": "made reference" if is_copied else "made answer",
                    "label": people,
                }
                rows.append(hieval.graded_row(example, [verdict]))
        _write(folder / f"{name.replace('model', 'judge')}.json", rows)


def _human_label(drawn: Random, task: str) -> str:
    """Return a label of people; errors alone have a type, in the task that asks for one."""
    if task == "hieval-qs":
        return drawn.choices(("Correct", "Partial", "Wrong"), (4, 1, 5))[0]
    return f"{drawn.choices(('Wrong', 'Partial'), (4, 1))[0]}; {drawn.choice(ERROR_TYPES)}"


def _conclusion(drawn: Random, chance: float) -> str:
    if drawn.random() < chance:
        return CORRECT
    return drawn.choices((NOT_ATTEMPTED, INCORRECT), (1, 4))[0]


def _stated(drawn: Random, chance: float) -> int:
    """Return a stated confidence in per cent: higher than the chance to be right, as models do."""
    return max(5, min(99, round(100 * drawn.gauss(0.3 + 0.7 * chance, 0.12))))


def _write(path: Path, content: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    write_json(path, json.loads(json.dumps(content)))
