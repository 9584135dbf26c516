"""``custos judges``: the judges of this installation and what was measured of them."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping
from typing import Annotated, Any

import typer

from cli.shared.columns import in_columns
from cli.shared.judges import default_judges
from evaluation.report.markdown import number, with_interval
from judging.errors import CustosError
from judging.judge.card import CARD_FILE, SHIPPED

HEADINGS = ("judge", "tasks", "items", "accuracy", "kappa", "ECE", "best baseline")
NOTE = (
    "Accuracy: agreement with the labels of held-out items, with its 95 % interval.\n"
    "ECE: how far the judge's confidence is from its accuracy, on average.\n"
    "Best baseline: the most accurate of the graders that its report has beside it.\n"
    "'custos judges NAME' says which items these were and what the judge cannot do."
)


def judges(
    name: Annotated[
        str | None, typer.Argument(help="A shipped judge. Default: a table of all.")
    ] = None,
) -> None:
    """List the shipped judges with what was measured of them, or show the card of one.

    Example: custos judges embedded-qs
    """
    names = default_judges()
    if name is None:
        rows = [measured(each) for each in names]
        for line in in_columns([HEADINGS, *rows]):
            typer.echo(line)
        typer.echo(f"\n{NOTE}")
        return
    if name not in names:
        raise CustosError(f"'{name}': no shipped judge; there are {', '.join(names)}")
    typer.echo(card_text(name))


def measured(name: str) -> tuple[str, ...]:
    """Return the cells of a judge's row, from its card and its report.

    Raises:
        CustosError: If a file of the judge is missing.
    """
    card = json.loads(_read(name, CARD_FILE))
    report = json.loads(_read(name, "report.json"))
    metrics = report["metrics"]
    return (
        name,
        ", ".join(card["tasks"]),
        str(report["n"]),
        with_interval(metrics["accuracy"]),
        number(metrics["kappa"]["value"]),
        number(metrics["ece"]["value"]),
        best_baseline(report["baselines"]),
    )


def best_baseline(baselines: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the name and the accuracy of the most accurate baseline."""
    name = max(baselines, key=lambda each: float(baselines[each]["accuracy"]["value"]))
    return f"{name} {number(baselines[name]['accuracy']['value'])}"


def card_text(name: str) -> str:
    """Return what users need of a judge's card: everything above how it was made.

    Raises:
        CustosError: If the card is missing.
    """
    lines = _read(name, "README.md").splitlines()
    used = itertools.takewhile(lambda line: not line.startswith("Made by"), lines)
    return "\n".join(used).rstrip()


def _read(name: str, file: str) -> str:
    path = SHIPPED / name / file
    try:
        return path.read_text(encoding="utf-8")
    except OSError:
        raise CustosError(f"{path}: this file of the judge is missing") from None
