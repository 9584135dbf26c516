"""Pairs on disk: items in the shape that ``custos bench`` reads, pictures and a manifest."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from importlib.metadata import version
from pathlib import Path
from random import Random
from typing import Any

from data_prep.splits.manifest import MANIFEST_NAME, file_sha256
from data_prep.synthetic.misleading_charts.drawing import render
from data_prep.synthetic.misleading_charts.families import FAMILIES, Family, Scene
from judging.records import atomic_write, write_json

ITEMS = "items.jsonl"
IMAGES = "images"

PublishedHMI = Mapping[str, tuple[float, float]]
"""By pair of CHARTOM's Table 1: HMI of its original and of its manipulated chart."""


def make_pairs(num_pairs: int, seed: int) -> Iterator[tuple[str, Family, Scene]]:
    """Make pairs, all families in turn: name, family and scene.

    Args:
        num_pairs: How many.
        seed: Same seed, same pairs; the first pairs of a longer list are the shorter list.
    """
    for number in range(num_pairs):
        family = FAMILIES[number % len(FAMILIES)]
        yield f"P{number + 1:04d}", family, family.make(Random(f"chartom {seed} {number}"))


def write_pairs(
    out: Path,
    pairs: Iterable[tuple[str, Family, Scene]],
    published: PublishedHMI,
    *,
    source: Mapping[str, Any],
    command: str,
) -> dict[str, Any]:
    """Write ``items.jsonl``, ``images/`` and, last, ``manifest.json``; equal input, equal bytes.

    Two rows to a pair, ``_1`` original and ``_2`` manipulated. ``hmi`` is what people scored on the
    published pair of the same kind and manipulation (``hmi_source``): nobody has answered these
    charts. People's own answers, in ``human_answers``, replace it when the items are loaded.

    Args:
        out: Folder to write to; made if it is missing.
        pairs: What ``make_pairs`` makes, taken one by one.
        published: HMI of the pairs that the families are like.
        source: What the pairs were made from.
        command: Command line that can repeat this.

    Returns:
        The manifest.
    """
    (out / IMAGES).mkdir(parents=True, exist_ok=True)
    (out / MANIFEST_NAME).unlink(missing_ok=True)
    kinds: Counter[str] = Counter()
    manipulations: Counter[str] = Counter()
    question_types: Counter[str] = Counter()
    path = out / ITEMS
    with atomic_write(path) as file:
        for name, family, scene in pairs:
            for manipulated in (False, True):
                row = _row(name, family, scene, manipulated, published)
                (out / row["image"]).write_bytes(render(family, scene, manipulated))
                file.write(json.dumps(row, ensure_ascii=False) + "\n")
            kinds[family.kind] += 1
            manipulations[family.manipulation] += 1
            question_types[scene.question_type] += 1
    manifest = {
        "source": dict(source),
        "outputs": {path.name: file_sha256(path)},
        "pairs": kinds.total(),
        "kinds": dict(sorted(kinds.items())),
        "manipulations": dict(sorted(manipulations.items())),
        "question_types": dict(sorted(question_types.items())),
        "version": version("custos"),
        "command": command,
    }
    write_json(out / MANIFEST_NAME, manifest)
    return manifest


def _row(
    name: str, family: Family, scene: Scene, manipulated: bool, published: PublishedHMI
) -> dict[str, Any]:
    """One chart. ``strategies`` holds what each way of reading it answers."""
    chart = f"{name}_{1 + manipulated}"
    strategies = {"correct": scene.answer}
    if manipulated:
        strategies["misled"] = scene.misled
    if scene.skimming is not None:
        strategies["skimming"] = scene.skimming
    row: dict[str, Any] = {
        "id": chart,
        "kind": family.kind,
        "manipulation": family.manipulation if manipulated else "",
        "image": f"{IMAGES}/{chart}.png",
        "question": scene.question,
        "question_type": scene.question_type,
        "choices": scene.choices,
        "answer": scene.answer,
        "unit": scene.unit,
        "strategies": strategies,
        "hmi": published[family.like][manipulated],
        "hmi_source": f"published: {family.like}_{1 + manipulated}",
        "data": {"labels": scene.labels, **scene.values},
    }
    if scene.question_type == "number":
        row["alternatives"] = [strategies[key] for key in strategies if key != "correct"]
    return row
