"""The header of a judge's card on the hub: YAML above the text of ``README.md``."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any

import yaml

from judging.errors import CustosError
from judging.files.yaml_text import yaml_errors
from judging.judge.card import JudgeCard
from judging.models.embedded import EMBEDDED, EMBEDDED_2, EMBEDDED_BASE, LICENSE
from judging.models.gguf_files import NAMED

METRICS = {
    "accuracy": "accuracy",
    "score_accuracy": "score accuracy",
    "type_accuracy": "error-type accuracy",
    "kappa": "Cohen's kappa",
    "ece": "calibration error",
}
"""Figures of the report that the hub shows, to their names there."""
BASE_LICENSES = {
    re.escape(EMBEDDED_BASE): LICENSE,
    **{re.escape(named.base_model): named.license for named in NAMED.values()},
    r"Qwen/Qwen2-VL-(2B|7B)-Instruct": "apache-2.0",
    r"Qwen/Qwen2\.5-VL-(7B|32B)-Instruct": "apache-2.0",
    r"Qwen/Qwen3-VL-(2B|4B|8B|32B|30B-A3B|235B-A22B)-(Instruct|Thinking)": "apache-2.0",
}
"""Patterns of base models to their licences, as the hub states them."""
_COMMIT = re.compile(r"[0-9a-f]{40}")
_HEADER = re.compile(r"\A---\r?\n(.*?)^---\r?\n", re.DOTALL | re.MULTILINE)


def base_model(card: JudgeCard) -> str | None:
    """Return the model of the hub that a judge is built on; ``None`` for a folder's checkpoint."""
    if card.backbone in (EMBEDDED, EMBEDDED_2):
        return EMBEDDED_BASE
    if card.backbone in NAMED:
        return NAMED[card.backbone].base_model
    return card.backbone if _COMMIT.fullmatch(card.backbone_version) else None


def hub_readme(
    name: str,
    readme: str,
    card: JudgeCard,
    report: Mapping[str, Any] | None,
    license_id: str | None,
) -> str:
    """Return the text of ``README.md`` with the header that the hub reads.

    Keys of a header that the text already has stay, unless they are stated here.

    Args:
        name: Name of the judge.
        readme: The run's ``README.md``.
        card: The judge's card.
        report: The judge's report; ``None`` if it was never tested.
        license_id: Licence as the hub spells it; default that of the text's header, then that of
            the base model.

    Raises:
        CustosError: If the header cannot be read, or no licence is known.
    """
    match = _HEADER.match(readme)
    header = _read_header(match[1]) if match else {}
    base = base_model(card)
    stated = {
        "base_model": base,
        "license": license_id or header.get("license") or _base_license(base, card.backbone),
        "library_name": "peft",
        "tags": ["custos", "judge", "llm-as-a-judge", "lora", *card.tasks],
        **(_results(name, report) if report else {}),
    }
    kept = {key: value for key, value in header.items() if key not in ("metrics", "model-index")}
    merged = {**kept, **{key: value for key, value in stated.items() if value is not None}}
    text = yaml.safe_dump(merged, sort_keys=False, allow_unicode=True)
    return f"---\n{text}---\n\n{(readme[match.end() :] if match else readme).lstrip()}"


def header_of(readme: str) -> str:
    """Return the header of a card, with the lines around it."""
    match = _HEADER.match(readme)
    return match[0] if match else ""


def _read_header(text: str) -> dict[str, Any]:
    try:
        with yaml_errors():
            header = yaml.safe_load(text) or {}
    except yaml.YAMLError as error:
        raise CustosError(f"README.md: its header is not YAML: {error}") from None
    if not isinstance(header, dict):
        raise CustosError("README.md: its header is not YAML of keys and values; delete it")
    return header


def _base_license(base: str | None, backbone: str) -> str:
    for pattern, license_id in BASE_LICENSES.items():
        if re.fullmatch(pattern, base or ""):
            return license_id
    raise CustosError(
        f"--license: the licence of '{os.path.basename(backbone) if base is None else base}' is "
        f"not known here; name the judge's licence as the hub spells it, such as apache-2.0"
    )


def _results(name: str, report: Mapping[str, Any]) -> dict[str, Any]:
    """Return the figures on the test rows as the hub's ``model-index``, with n and interval."""
    metrics = {
        metric: measured
        for metric in METRICS
        if (measured := report["metrics"].get(metric)) and measured["value"] is not None
    }
    data = (report.get("dataset_sha256") or "")[:12]
    num_rows = report["metrics"]["accuracy"]["n"]  # those with a label
    results = [_result(metric, measured) for metric, measured in metrics.items()]
    entry = {
        "task": {"type": "text-classification", "name": "grading answers as people do"},
        "dataset": {
            "type": "custos",
            "name": f"{num_rows:,} test rows" + (f" (SHA-256 {data})" if data else ""),
        },
        "metrics": results,
    }
    return {"metrics": list(metrics), "model-index": [{"name": name, "results": [entry]}]}


def _result(metric: str, measured: Mapping[str, Any]) -> dict[str, Any]:
    n, low, high = measured["n"], measured["low"], measured["high"]
    interval = "" if low is None else f", 95 % interval {low:.3f} to {high:.3f}"
    return {
        "type": metric,
        "value": round(measured["value"], 4),
        "name": f"{METRICS[metric]} (n = {n:,}{interval})",
        "args": {"n": n, "low": low and round(low, 4), "high": high and round(high, 4)},
    }
