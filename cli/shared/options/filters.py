"""Options that leave out trivial and easy examples, as HiEval's authors did."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from data_prep.splits.filters import MIN_WORDS, drop_trivial, keep_contested, read_verdicts
from judging.types import LabelledExample

MinWords = Annotated[
    int,
    typer.Option(
        min=0,
        help="Leave out examples whose responses all have fewer words than this; 0 keeps all "
        f"(try {MIN_WORDS}).",
    ),
]
Verdicts = Annotated[
    Path | None,
    typer.Option(
        help="Keep only contested examples by the verdicts of models in this file: a JSON object "
        "from example id to a list of labels, one from each model. Default: keep all."
    ),
]
Disagreeing = Annotated[
    int, typer.Option(help="With --verdicts: keep what at least this many models get wrong.")
]
Models = Annotated[int, typer.Option(help="With --verdicts: number of models that judged.")]


@dataclass(frozen=True)
class FilterOptions:
    """Filters of examples."""

    min_words: MinWords = 0
    verdicts: Verdicts = None
    disagreeing: Disagreeing = 3
    models: Models = 6

    def apply(self, examples: Sequence[LabelledExample]) -> list[LabelledExample]:
        """Return the examples that pass all filters, in the paper's order.

        Raises:
            CustosError: If the file of verdicts cannot be read or does not fit the examples.
        """
        long_enough = list(drop_trivial(examples, self.min_words))
        if self.verdicts is None:
            return long_enough
        verdicts = read_verdicts(self.verdicts)
        return list(keep_contested(long_enough, verdicts, self.disagreeing, self.models))
