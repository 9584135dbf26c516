"""Does a judge look at the pictures: agreement with right, shuffled and blank ones.

python -m experiments image_probe RUN --data data/charts/test.jsonl --twins data/twins/twins.jsonl \
--out runs/ea/images

Twins share all text and have different error types, so whoever does not look is right on half of
them. Skills are kinds of charts, kinds of questions, and both together; one is claimed only where
the right pictures do better than shuffled ones beyond chance.
"""

from __future__ import annotations

import argparse
import base64
import io
import random
import shlex
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from evaluation.estimate import Draws, Mask, share, without_nan
from evaluation.evaluate import grade_examples
from evaluation.intervals import Ints, number_clusters
from evaluation.metrics import ratio
from evaluation.outcomes import full_label
from evaluation.report.markdown import table, with_interval
from judging.errors import CustosError, FieldError
from judging.files.atomic import write_text
from judging.files.pictures import read_image
from judging.files.records import read_records, write_json
from judging.fingerprint import file_sha256
from judging.judge import Judge
from judging.types import LabelledExample, Verdict, score_of, type_of

MEASURES: Mapping[str, tuple[str, Callable[[str], str]]] = {
    "label": ("Whole label", lambda label: label),
    "score": ("Score", score_of),
    "error_type": ("Error type, of items with one", type_of),
}
"""By name: what it is called, and the part of a full label that must agree (``""``: not asked)."""
SKILLS = {"chart": ("kind",), "question": ("operation",), "both": ("kind", "operation")}
"""Keys of ``metadata`` that name a skill."""
MIN_ITEMS = 10
"""A skill with fewer items is left out."""

NOTE = (
    "Brackets hold 95 % intervals by resampling groups (all questions about a picture; both "
    "twins); differences are paired on the same resamples. Shuffled: the picture of another "
    "group. Blank: white, of the same size. A skill is claimed where right minus shuffled lies "
    f"above zero; of many, a few do by chance. Fewer than {MIN_ITEMS} items: left out."
)

LabelsByPicture = Mapping[str, Sequence[str]]
"""The judge's full labels of all items, by the kind of picture."""


def probe(
    judge: Judge, examples: Sequence[LabelledExample], measure: str, seed: int = 0
) -> dict[str, Any]:
    """Grade examples under three kinds of pictures and compare.

    Args:
        judge: Judge to measure.
        examples: Examples with one picture each, in at least two groups.
        measure: Which of ``MEASURES`` decides whether a skill is claimed.
        seed: Seed of the shuffle and of the intervals, which resample groups.

    Returns:
        ``n``, ``groups``, ``measures`` (name to agreement with ``right``, ``shuffled`` and
        ``blank`` pictures and the paired differences), ``changed`` (share of labels that another
        picture changes), ``skills`` (slicing to skill to the same figures) and ``claimed``.

    Raises:
        CustosError: If an example has not exactly one picture, or all share one group.
    """
    rows_by_picture = {
        "right": list(examples),
        "shuffled": shuffled_pictures(examples, seed),
        "blank": [_with_picture(example, _blank_like(example.images[0])) for example in examples],
    }
    labels = {name: _labels(grade_examples(judge, rows)) for name, rows in rows_by_picture.items()}
    human = [full_label(example) for example in examples]
    clusters = number_clusters([example.group or example.question for example in examples])
    everything = np.ones(len(human), bool)
    skills = {
        name: _by_skill(examples, labels, human, clusters, keys, measure, seed)
        for name, keys in SKILLS.items()
    }
    return {
        "n": len(examples),
        "groups": int(clusters.max()) + 1,
        "judged_by": measure,
        "measures": {
            name: _compared(labels, human, clusters, everything, name, seed) for name in MEASURES
        },
        "changed": {
            other: share(
                np.array([a != b for a, b in zip(labels["right"], labels[other], strict=True)]),
                everything,
                clusters,
                seed,
            )
            for other in ("shuffled", "blank")
        },
        "skills": skills,
        "claimed": {
            name: [skill for skill, row in rows.items() if _is_beyond_chance(row)]
            for name, rows in skills.items()
        },
    }


def shuffled_pictures(examples: Sequence[LabelledExample], seed: int) -> list[LabelledExample]:
    """Give every example the picture of another group, drawn by the seed.

    Raises:
        CustosError: If an example has not exactly one picture, or all share one group.
    """
    for example in examples:
        if len(example.images) != 1:
            raise FieldError("images", "expected exactly one picture", f"id '{example.id}'")
    groups = [example.group or example.question for example in examples]
    if len(set(groups)) < 2:
        raise CustosError("all examples share one group: there is no other picture to show")
    rng = random.Random(seed)
    shuffled = []
    for example, group in zip(examples, groups, strict=True):
        other = rng.randrange(len(examples))
        while groups[other] == group:
            other = rng.randrange(len(examples))
        shuffled.append(_with_picture(example, examples[other].images[0]))
    return shuffled


def _with_picture(example: LabelledExample, picture: str) -> LabelledExample:
    return example.model_copy(update={"images": (picture,)})


def _blank_like(source: str) -> str:
    with read_image(source) as picture:
        return _blank(picture.size)


@cache
def _blank(size: tuple[int, int]) -> str:
    """Return a white picture as a data URL."""
    from PIL import Image

    file = io.BytesIO()
    Image.new("RGB", size, "white").save(file, "PNG")
    return f"data:image/png;base64,{base64.b64encode(file.getvalue()).decode()}"


def _labels(verdicts: Sequence[Verdict]) -> list[str]:
    """Return full labels; where there is none, a text that is right under no measure."""
    return [full_label(verdict) if verdict.label else f"({verdict.status})" for verdict in verdicts]


def _by_skill(
    examples: Sequence[LabelledExample],
    labels: LabelsByPicture,
    human: Sequence[str],
    clusters: Ints,
    keys: Sequence[str],
    measure: str,
    seed: int,
) -> dict[str, dict[str, Any]]:
    names = [" / ".join(str(example.metadata.get(key, "")) for key in keys) for example in examples]
    skills = {}
    for name in sorted(set(names)):
        inside = np.array([other == name for other in names])
        compared = _compared(labels, human, clusters, inside, measure, seed)
        if compared["n"] >= MIN_ITEMS:
            skills[name] = compared
    return skills


def _compared(
    labels: LabelsByPicture,
    human: Sequence[str],
    clusters: Ints,
    inside: Mask,
    measure: str,
    seed: int,
) -> dict[str, Any]:
    """Measure agreement by kind of picture and, on the same resamples, the gain of right ones."""
    part = MEASURES[measure][1]
    targets = [part(label) for label in human]
    counted = inside & np.array([bool(target) for target in targets])
    hits = [
        counted & np.array([part(label) == t for label, t in zip(given, targets, strict=True)])
        for given in labels.values()
    ]
    columns = np.stack([counted, *hits], axis=1).astype(np.float64)
    draws = Draws.of(columns[counted], clusters[counted], seed)
    n = float(counted.sum())

    def agreement(name: str) -> dict[str, Any]:
        column = 1 + list(labels).index(name)
        return draws.rate(
            lambda sums: ratio(sums[..., column], sums[..., 0]), lambda sums: sums[..., 0]
        )

    def gain(name: str) -> dict[str, Any]:
        column = 1 + list(labels).index(name)
        return draws.estimate(lambda sums: ratio(sums[..., 1] - sums[..., column], sums[..., 0]), n)

    return {
        "n": int(n),
        **{name: agreement(name) for name in labels},
        **{f"right - {name}": gain(name) for name in labels if name != "right"},
    }


def _is_beyond_chance(compared: Mapping[str, Any]) -> bool:
    low = compared["right - shuffled"]["low"]
    return low is not None and bool(low > 0)


def render(report: Mapping[str, Any]) -> str:
    """Render the report as Markdown."""
    return (
        "\n\n".join(
            [
                "# Does the judge look at the pictures?",
                _section("Chart questions", report["charts"]),
                _section("Twins: same text, other picture, other error type", report["twins"]),
                NOTE,
                f"    {report['command']}",
            ]
        )
        + "\n"
    )


def _section(title: str, part: Mapping[str, Any]) -> str:
    measures = part["measures"]
    main = measures[part["judged_by"]]
    changed = ", ".join(
        f"{with_interval(share)} with {name} ones" for name, share in part["changed"].items()
    )
    claimed = [skill for name in ("chart", "question") for skill in part["claimed"][name]]
    skills = [
        f"### By {name.replace('both', 'chart and question')}\n\n{_table('skill', rows)}"
        for name, rows in part["skills"].items()
    ]
    return "\n\n".join(
        [
            f"## {title}",
            f"{part['n']} items in {part['groups']} groups. {_finding(main)}",
            _table("agreement", {MEASURES[name][0]: row for name, row in measures.items()}),
            f"Labels that change: {changed}.",
            f"Skills claimed: {', '.join(claimed) or 'none'}.",
            *skills,
        ]
    )


def _finding(compared: Mapping[str, Any]) -> str:
    gain = with_interval(compared["right - shuffled"])
    if _is_beyond_chance(compared):
        return f"Right pictures add {gain} over shuffled ones."
    return f"**The right pictures add nothing that can be told from chance: {gain}.**"


def _table(first: str, rows: Mapping[str, Mapping[str, Any]]) -> str:
    columns = ("right", "shuffled", "blank", "right - shuffled", "right - blank")
    body = [
        (name, *(with_interval(row[column]) for column in columns), row["n"])
        for name, row in rows.items()
    ]
    return table((first, *columns, "n"), body)


def main(argv: Sequence[str]) -> None:
    """Run the program."""
    parser = argparse.ArgumentParser(
        prog="python -m experiments image_probe",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("judge", help="run folder or shipped judge")
    parser.add_argument("--data", type=Path, required=True, help="labelled questions with pictures")
    parser.add_argument("--twins", type=Path, required=True, help="from 'custos prep twins'")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(argv)
    files = {"charts": (options.data, "label"), "twins": (options.twins, "error_type")}
    rows = {
        name: [example for _, example in read_records(path, LabelledExample)]
        for name, (path, _) in files.items()
    }
    judge = Judge.load(options.judge)
    report = without_nan(
        {
            "judge": judge.describe(),
            "command": shlex.join(["python", "-m", "experiments", "image_probe", *argv]),
            "seed": options.seed,
            "data_sha256": {name: file_sha256(path) for name, (path, _) in files.items()},
            **{
                name: probe(judge, rows[name], measure, options.seed)
                for name, (_, measure) in files.items()
            },
        }
    )
    page = render(report)
    write_json(options.out / "image_probe.json", report)
    write_text(options.out / "image_probe.md", page)
    Console().print(page, markup=False, soft_wrap=True)
