"""Options and output of the verbs that write train, val, cal and test files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from cli.shared.options import command_line
from cli.shared.outputs import output_folder, spare
from data_prep.splits.filters import MIN_WORDS, drop_trivial, keep_contested, read_verdicts
from data_prep.splits.manifest import check_replaceable, write_prepared
from data_prep.splits.splits import SPLITS, HeldOut, Splits, split_examples
from judging.types import LabelledExample, parse_record

FILES = [f"{split}.jsonl" for split in SPLITS]


def _in_own_folder(ctx: typer.Context, param: typer.CallbackParam, path: Path) -> Path:
    """Find the folder of ``--out``, in which no file of the user's own would be replaced."""
    output_folder(ctx, param, path)
    check_replaceable(path, FILES)  # Now, and not after an hour of work.
    return path


SourceFile = Annotated[Path, typer.Option("--source", help="Read this file.")]
Out = Annotated[
    Path,
    typer.Option(
        callback=_in_own_folder, help="Write the four JSONL files and manifest.json to this folder."
    ),
]
Seed = Annotated[
    int, typer.Option(min=0, help="Another seed gives another of the many balanced divisions.")
]
Val = Annotated[
    float, typer.Option(help="Size of the validation split: a share below 1, or so many examples.")
]
Cal = Annotated[
    float, typer.Option(help="Size of the calibration split: a share below 1, or so many examples.")
]


@dataclass(frozen=True)
class SplitOptions:
    """Folder of a data set, and how its rows are divided.

    Options:
        test: Size of the test split: a share below 1, or so many examples.
    """

    out: Out
    seed: Seed = 0
    val: Val = 0.05
    cal: Cal = 0.07
    test: float = 0.12

    def __post_init__(self) -> None:
        """Refuse a size below 0."""
        _ = self.held_out

    @cached_property
    def held_out(self) -> HeldOut:
        """Read the sizes of the splits that are not trained on."""
        sizes = {"val": self.val, "cal": self.cal, "test": self.test}
        return parse_record(HeldOut, sizes, "--val, --cal, --test")

    def keep(self, *sources: Path) -> None:
        """Refuse the folder if one of the four files would replace one that the command reads."""
        spare(sources, self.out, FILES)

    def divide(self, examples: Sequence[LabelledExample]) -> Splits:
        """Divide the examples into splits that share no question."""
        return split_examples(examples, self.held_out, self.seed)

    def write(self, splits: Splits, source: Mapping[str, Any], left_out: Mapping[str, int]) -> None:
        """Write the four files and their manifest, and print how many of each label they hold."""
        write_prepared(
            self.out,
            splits,
            source=source,
            held_out=self.held_out,
            seed=self.seed,
            command=command_line(),
            left_out=left_out,
        )
        show_splits(splits, self.out)
        for reason, num_rows in left_out.items():
            if num_rows:
                typer.echo(f"left out: {num_rows} {reason.replace('_', ' ')}")


def show_splits(splits: Splits, out: Path) -> None:
    """Print sizes and label shares of every split, and the folder that holds them."""
    labels = sorted({example.label for split in SPLITS for example in splits[split]})
    table = Table("split")
    for heading in ("examples", *labels):
        table.add_column(heading, justify="right")
    for split in SPLITS:
        counts, total = Counter(row.label for row in splits[split]), len(splits[split])
        shares = (f"{counts[label]} ({counts[label] / max(1, total):.1%})" for label in labels)
        table.add_row(split, str(total), *shares)
    Console(highlight=False).print(table)
    groups = {example.group for rows in splits.values() for example in rows}
    typer.echo(f"{len(groups)} groups of questions in {out}")


MinWords = Annotated[
    int,
    typer.Option(
        min=0,
        help="Leave out examples whose responses all have fewer words than this; 0 keeps all "
        f"(try {MIN_WORDS}).",
    ),
]


@dataclass(frozen=True)
class FilterOptions:
    """Filters of examples.

    Options:
        verdicts: Keep only contested examples by the verdicts of models in this file: a JSON object
            from example id (in a table without ids, the number of the row) to a list of labels, one
            from each model. Default: keep all.
        disagreeing: With --verdicts: keep what at least this many models get wrong.
        models: With --verdicts: number of models that judged.
    """

    min_words: MinWords = 0
    verdicts: Path | None = None
    disagreeing: int = 3
    models: int = 6

    def apply(
        self, examples: Sequence[LabelledExample], numbers: Mapping[str, int] | None = None
    ) -> list[LabelledExample]:
        """Keep the examples that pass all filters, in the paper's order.

        ``numbers`` maps ids that were made to numbers of rows, by which verdicts may name them.
        """
        long_enough = list(drop_trivial(examples, self.min_words))
        if self.verdicts is None:
            return long_enough
        verdicts = read_verdicts(self.verdicts)
        by_number = {name: str(number) for name, number in (numbers or {}).items()}
        verdicts |= {name: verdicts[n] for name, n in by_number.items() if n in verdicts}
        return list(keep_contested(long_enough, verdicts, self.disagreeing, self.models))
