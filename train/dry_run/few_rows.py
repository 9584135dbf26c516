"""The rows of a dry run: few of each split, in files of their own."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain, islice, zip_longest
from pathlib import Path

from judging.files.records import write_records
from judging.tasks import get_task
from judging.types import LabelledExample
from train.setup.data import read_splits
from train.setup.recipe import Recipe
from train.setup.replay import ReplaySection

MOST_HELD_OUT = 16
CRITIQUE_TOKENS = 16
"""Most tokens of a critique that the judge of a dry run writes."""


def keys_of_few_rows(recipe: Recipe, steps: int, folder: Path) -> list[str]:
    """Write the first rows of each split to a folder and return the keys that name them.

    There are as many training rows as the steps take. The other splits have two steps' rows, at
    most :data:`MOST_HELD_OUT` rows. Rows of every label come first, because losses and calibrations
    need them: so a split has at least one row of each.

    Args:
        recipe: Recipe of the run.
        steps: Optimizer steps.
        folder: Where to write.

    Raises:
        CustosError: If a split cannot be read.
    """
    splits = read_splits(recipe.data)
    held_out = min(MOST_HELD_OUT, 2 * recipe.optim.batch_size)
    rows: dict[str, Sequence[LabelledExample] | None] = {
        "train": of_every_label(splits.train, steps * recipe.optim.batch_size),
        "val": of_every_label(splits.val, held_out),
        "cal": splits.cal and of_every_label(splits.cal, held_out),
        "test": splits.test and of_every_label(splits.test, held_out),
    }
    keys = [f"data.{key}=null" for key in ("mapping", "limit", "val_limit", "exclude_answerer")]
    keys.append("data.allow_overlap=true")
    for name, examples in rows.items():
        if examples:
            write_records(folder / f"{name}.jsonl", map(_short, examples))
            keys.append(f"data.{name}={folder / name}.jsonl")
    if isinstance(getattr(recipe, "replay", None), ReplaySection):
        keys.append(f"replay.val_limit={held_out}")
    return keys


def of_every_label(examples: Iterable[LabelledExample], count: int) -> list[LabelledExample]:
    """Return so many examples, or one of each label if there are more labels.

    The first example of each label comes before the second of any.
    """
    by_label: dict[str, list[LabelledExample]] = {}
    for example in examples:
        by_label.setdefault(example.label, []).append(example)
    in_turn = chain.from_iterable(zip_longest(*by_label.values()))
    return list(islice((example for example in in_turn if example), max(count, len(by_label))))


def _short(example: LabelledExample) -> LabelledExample:
    """Return an example whose critique, if the judge writes one, is short."""
    if get_task(example.task).critique is None:
        return example
    return example.model_copy(update={"critique_tokens": CRITIQUE_TOKENS})
