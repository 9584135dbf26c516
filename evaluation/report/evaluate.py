"""A judge measured on labelled examples."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import yaml

from evaluation.outcomes import check_labels
from judging.errors import CustosError
from judging.files.questions import count_trained_on
from judging.files.yaml_text import yaml_errors
from judging.judge import Judge
from judging.judge.card import RequestT
from judging.types import JudgeRequest, LabelledExample, Verdict
from judging.verdicts.build import before_calibration

RECIPE_FILE = "recipe.yaml"


class RequestResolver(Protocol):
    """Judge, on this machine or behind a service, that completes a request before it grades it."""

    name: str

    def resolve(self, request: RequestT, /) -> RequestT:
        """Complete a request with the modes in which the judge will grade it."""
        ...


def resolve_examples(
    judge: RequestResolver, examples: Sequence[LabelledExample]
) -> list[LabelledExample]:
    """Complete examples as a judge takes them; those that it refuses are unchanged.

    Raise ``CustosError`` if people gave labels that the judge's rubrics do not declare.
    """
    resolved = []
    for example in examples:
        try:
            resolved.append(judge.resolve(example))
        except CustosError:
            resolved.append(example)  # The verdict says why.
    check_labels(resolved, f"judge '{judge.name}'")
    return resolved


def at_risk(examples: Sequence[LabelledExample], risk: float | None) -> list[LabelledExample]:
    """Put a stated risk into examples; ``None`` leaves them as they are."""
    if risk is None:
        return list(examples)
    return [example.model_copy(update={"risk": risk}) for example in examples]


def uncalibrated_verdicts(
    examples: Sequence[LabelledExample], verdicts: Sequence[Verdict]
) -> list[Verdict]:
    """Work out what the same readings of a calibrated judge give without calibration."""
    return [
        before_calibration(example.request(), verdict)
        for example, verdict in zip(examples, verdicts, strict=True)
    ]


def grade_examples(
    judge: Judge, examples: Sequence[LabelledExample], *, progress: bool = True
) -> list[Verdict]:
    """Grade the requests of labelled examples, which hold no label, in :func:`grading_order`."""
    order = grading_order(examples)
    requests = [examples[i].request() for i in order]
    graded = zip(order, judge.grade(requests, progress=progress), strict=True)
    return [verdict for _, verdict in sorted(graded, key=lambda pair: pair[0])]


def grading_order(examples: Sequence[LabelledExample]) -> list[int]:
    """Order indices of examples so that those on one question are together: it is read once."""
    return sorted(range(len(examples)), key=lambda index: examples[index].question)


def seen_data(
    folder: Path | None, dataset_sha256: str | None, requests: Sequence[JudgeRequest]
) -> dict[str, Any] | None:
    """Look the data up in what a judge's run folder, if it has one, keeps of its own data.

    ``file`` says how the run used the file of this hash: ``trained on``, ``chosen by`` or
    ``calibrated on``; ``None`` if it did not. ``rows`` counts the requests that ask a question
    which the judge was trained on or chosen by; ``None`` if the folder does not say. ``None``
    without a folder.
    """
    if folder is None:
        return None
    return {
        "file": _use_of_file(folder / RECIPE_FILE, dataset_sha256),
        "rows": count_trained_on(folder, requests),
    }


def _use_of_file(recipe_file: Path, dataset_sha256: str | None) -> str | None:
    """Name how a run used the file of this hash; ``None`` if it did not, or does not say."""
    try:
        with yaml_errors():
            recipe = yaml.safe_load(recipe_file.read_text(encoding="utf-8"))
        hashes = recipe["provenance"]["sha256"]
        files = {path for path, sha256 in hashes.items() if sha256 == dataset_sha256}
        data, replay = recipe["data"], recipe.get("replay") or {}
        uses = {
            "trained on": {*_paths(data.get("train")), *_paths(replay.get("train"))},
            "chosen by": {*_paths(data.get("val"))},
            "calibrated on": {*_paths(data.get("cal"))},
        }
    except (OSError, yaml.YAMLError, UnicodeDecodeError, KeyError, TypeError, AttributeError):
        return None  # A folder from elsewhere need not hold a recipe of ours.
    return next((use for use, paths in uses.items() if files & paths), None)


def _paths(split: Any) -> Sequence[Any]:
    """List the files of a split of a recipe: it names none, one or several."""
    return [split] if isinstance(split, str) else split or ()
