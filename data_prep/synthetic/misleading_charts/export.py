"""Chart pairs on disk: items in the shape that ``custos bench`` reads, pictures and a manifest."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from data_prep.splits.manifest import check_replaceable, write_with_manifest
from data_prep.synthetic.misleading_charts.drawing import render
from data_prep.synthetic.misleading_charts.families import ChartPair
from data_prep.synthetic.pictures import IMAGE_FOLDER
from judging.files.atomic import atomic_write
from judging.fingerprint import file_sha256

ITEMS = "items.jsonl"

PublishedHMI = Mapping[str, tuple[float, float]]
"""By pair of CHARTOM's Table 1: HMI of its original and of its manipulated chart."""


def write_chart_pairs(
    out: Path,
    pairs: Iterable[ChartPair],
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
        pairs: Result of ``generate_chart_pairs``, taken one by one.
        published: HMI of the published pairs that the families imitate.
        source: What the pairs were made from.
        command: Command line that can repeat this.

    Returns:
        The manifest.

    Raises:
        CustosError: If ``items.jsonl`` lies there and did not come with a manifest.
    """
    check_replaceable(out, [ITEMS])
    kinds: Counter[str] = Counter()
    manipulations: Counter[str] = Counter()
    question_types: Counter[str] = Counter()
    path = out / ITEMS
    with write_with_manifest(out, source=source, command=command) as manifest:
        (out / IMAGE_FOLDER).mkdir(exist_ok=True)
        with atomic_write(path) as file:
            for pair in pairs:
                for manipulated in (False, True):
                    item = _item(pair, manipulated, published)
                    png = render(pair.family, pair.chart, manipulated)
                    (out / item["image"]).write_bytes(png)
                    file.write(json.dumps(item, ensure_ascii=False) + "\n")
                kinds[pair.family.kind] += 1
                manipulations[pair.family.manipulation] += 1
                question_types[pair.chart.question_type] += 1
        manifest.update(
            outputs={path.name: file_sha256(path)},
            pairs=kinds.total(),
            kinds=dict(sorted(kinds.items())),
            manipulations=dict(sorted(manipulations.items())),
            question_types=dict(sorted(question_types.items())),
        )
    return manifest


def _item(pair: ChartPair, manipulated: bool, published: PublishedHMI) -> dict[str, Any]:
    """Describe one chart of a pair; ``strategies`` holds what each way of reading it answers."""
    family, chart = pair.family, pair.chart
    item_id = f"{pair.name}_{1 + manipulated}"
    strategies = {"correct": chart.answer}
    if manipulated:
        strategies["misled"] = chart.misled
    if chart.skimming is not None:
        strategies["skimming"] = chart.skimming
    item: dict[str, Any] = {
        "id": item_id,
        "kind": family.kind,
        "manipulation": family.manipulation if manipulated else "",
        "image": f"{IMAGE_FOLDER}/{item_id}.png",
        "question": chart.question,
        "question_type": chart.question_type,
        "choices": chart.choices,
        "answer": chart.answer,
        "unit": chart.unit,
        "strategies": strategies,
        "hmi": published[family.like][manipulated],
        "hmi_source": f"published: {family.like}_{1 + manipulated}",
        "data": {"labels": chart.labels, **chart.values},
    }
    if chart.question_type == "number":
        item["alternatives"] = [strategies[key] for key in strategies if key != "correct"]
    return item
