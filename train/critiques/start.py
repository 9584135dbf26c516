"""The start of a run on critiques: its rows, read and checked, and the judge that is trained."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain

from data_prep.splits.overlap import Overlap
from judging.errors import FieldError, errors_at
from judging.tasks import get_task
from judging.types import LabelledExample
from train.critiques.policy import Policy
from train.critiques.recipe import CritiqueRecipe, check_setting
from train.loop.accelerator import make_accelerator
from train.loop.backbone import load_encoder
from train.setup.data import RunSplits, check_splits, read_splits
from train.setup.overlap import check_overlaps
from train.setup.starting_adapter import with_adapter


def read_rows(recipe: CritiqueRecipe, *, pictures: bool) -> tuple[RunSplits, list[Overlap]]:
    """Read the rows of a run, and check that it can begin.

    Args:
        recipe: Validated recipe.
        pictures: Whether rows may have pictures.

    Returns:
        The rows, and the overlaps between splits that the recipe allows.

    Raises:
        CustosError: If TRL is missing, there are several processes, or rows are not fit for it.
    """
    check_setting()
    splits = read_splits(recipe.data)
    overlaps = check_overlaps(splits, recipe.data)
    check_splits(splits, recipe.data)
    _check_rows(chain(splits.train, splits.val), pictures=pictures)
    return splits, overlaps


def load_policy(recipe: CritiqueRecipe) -> Policy:
    """Load the judge that a run starts from, with the adapter that is trained."""
    accelerator = make_accelerator(recipe.run)
    encoder = load_encoder(recipe, accelerator)
    adapted = with_adapter(encoder.backbone, recipe)
    return Policy(adapted, encoder, accelerator, recipe.critiques.max_tokens)


def _check_rows(examples: Iterable[LabelledExample], *, pictures: bool) -> None:
    """Check that every example is of a task with critiques.

    Args:
        examples: Rows to train on or to validate on.
        pictures: Whether they may have pictures.

    Raises:
        FieldError: If one is not, or has pictures that it may not have; the message names the row.
    """
    for example in examples:
        with errors_at(f"row '{example.id}'"):
            if get_task(example.task).critique is None:
                raise FieldError("task", f"task '{example.task}' writes no critiques")
            if example.images and not pictures:
                raise FieldError("images", "GRPO takes no pictures; DPO (critique_dpo) does")
