"""``custos judges``: what came with this installation, how good it is, and where it ends."""

from __future__ import annotations

import itertools

from rich.console import Console
from rich.markdown import Markdown

from cli.serve import served_by_default
from judging import CustosError
from judging.card import SHIPPED


def judges() -> None:
    """List the shipped judges: tasks, measured figures, limits.

    Example: custos judges
    """
    console = Console()
    for name in served_by_default():
        console.print(Markdown(summary(name)))
        console.print()


def summary(name: str) -> str:
    """The part of a shipped judge's card that a user needs: up to how it was made.

    Raises:
        CustosError: If the card is missing.
    """
    path = SHIPPED / name / "README.md"
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError:
        raise CustosError(f"{path}: the judge's card is missing") from None
    return "\n".join(itertools.takewhile(lambda line: not line.startswith("Made by"), lines))
