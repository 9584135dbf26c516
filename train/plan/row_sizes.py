"""Tokens and patches of the rows of a recipe, without reading a picture's content."""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import smart_resize

from judging.errors import FieldError, errors_at
from judging.files.pictures import PictureSize, PixelLimits, picture_size
from judging.models.checkpoints import TEXT_FAMILIES, no_pictures
from judging.scoring.label_tree import LabelTree
from judging.scoring.prompts import Encoder
from judging.tasks import get_task
from judging.types import JudgeRequest, LabelledExample
from train.rows.data import ReplaySection
from train.rows.rows import Rows, Supervision
from train.setup.recipe import Recipe

CHARACTERS_PER_TOKEN = 4
"""English text in Qwen's vocabulary; used where there is no tokenizer."""
TOKENS_OF_TURNS = 8
"""What the chat template puts around the instruction and before the answer."""
TOKENS_OF_FIELD = 5
"""What it puts around a field."""
TOKENS_OF_PICTURE = 2
"""Marks around the tokens of a picture."""
PUBLISHED_LIMITS = {
    14: PixelLimits(56 * 56, 14 * 14 * 4 * 16384),
    16: PixelLimits(256 * 256, 4096 * 4096),
}
"""Limits on pictures that published processors have, by the size of a patch."""


@dataclass(frozen=True)
class RowSize:
    """The size of a training row."""

    rubric: str
    instruction: int
    """Tokens of the instruction."""
    tokens: int
    """Tokens after it and before the answer, of the row's longest prompt."""
    prompts: int
    """Prompts that the model reads of it."""
    tree: LabelTree
    supervised: int
    """Tokens whose logits enter the loss."""
    patches: int
    """Patches of its pictures."""

    @property
    def length(self) -> int:
        """Count the tokens of the row after the instruction, of all prompts."""
        return self.prompts * (self.tokens + len(self.tree.node_tokens))


class CharacterEncoder(Encoder):
    """Stands in for an encoder where no tokenizer can be had: some characters are a token."""

    def __init__(self, response_budget: int) -> None:
        self.response_budget = response_budget
        self.shows_all_pictures = False

    def text(self, text: str) -> list[int]:
        """Give as many numbers as the text has tokens, equal where the text is."""
        size = CHARACTERS_PER_TOKEN
        return [zlib.crc32(text[i : i + size].encode()) for i in range(0, len(text), size)]

    def data(self, text: str) -> list[int]:
        """Do what :meth:`text` does."""
        return self.text(text)


def pixel_limits(recipe: Recipe, config: Any, encoder: Encoder) -> PixelLimits:
    """Find between which areas a run scales pictures, with or without the checkpoint's files.

    Raises ``FieldError`` if the recipe's lower limit is above the upper one.
    """
    if not isinstance(encoder, CharacterEncoder):
        return encoder.backbone.pixels
    if config.model_type in TEXT_FAMILIES:
        return PixelLimits(0, 0)
    patch = config.vision_config.patch_size
    limits = PUBLISHED_LIMITS.get(patch, PUBLISHED_LIMITS[16])
    return limits.changed(recipe.run.min_pixels, recipe.run.max_pixels)


def largest_rows(rows: Rows, recipe: Recipe, config: Any) -> list[RowSize]:
    """Measure the rows of each rubric that have most tokens, with pictures and without."""
    facts = rows.facts
    # Rows lie in a file: only if there are pictures, all are read again.
    pictured = [bool(row.images) for row in rows.examples] if rows.pictures else [False]
    kinds = 2 * facts.rubric + np.array(pictured)
    indices = set()
    for kind in np.unique(kinds):
        alike = np.flatnonzero(kinds == kind)
        for tokens in (facts.width, facts.target_tokens):
            indices.add(int(alike[tokens[alike].argmax()]))
    chosen = [rows.examples[index] for index in sorted(indices)]
    return row_sizes(chosen, rows.supervision, recipe, config)


def row_sizes(
    examples: Iterable[LabelledExample], supervision: Supervision, recipe: Recipe, config: Any
) -> list[RowSize]:
    """Measure training rows; raise ``CustosError`` if a row cannot be trained on."""
    limits = pixel_limits(recipe, config, supervision.encoder)
    encoder, counts = supervision.encoder, dict[str, int]()
    sizes = []
    for example in examples:
        with errors_at(f"row '{example.id}'"):
            requests = supervision.requests(example)
            tree, target = supervision.target(example)
            task = get_task(requests[0].task)
            rubric = task.rubric(requests[0])
            name = f"{task.name}/{rubric}"
            if name not in counts:
                counts[name] = len(encoder.text(task.instruction(rubric)))
            pictures = encoder.pictures(task, requests[0])
            patches = sum(_patches(picture_size(path), config, limits) for path in pictures)
            pictured = _picture_tokens(patches, config) + TOKENS_OF_PICTURE * len(pictures)
            message = max(_message_tokens(request, encoder) for request in requests)
            paths = tree.paths if len(requests) > 1 else [tree.paths[target]]
            tokens, supervised = message + pictured + TOKENS_OF_TURNS, sum(map(len, paths))
            size = RowSize(name, counts[name], tokens, len(requests), tree, supervised, patches)
            sizes.append(size)
    return sizes


def made_up_row(
    tokens: int,
    pixels: int,
    config: Any,
    limits: PixelLimits,
    *,
    prompts: int = 1,
    is_text: bool = False,
) -> RowSize:
    """Make up a row, for a plan without data.

    ``tokens`` are those of the row, its answer included and its square picture of ``pixels`` not.
    An answer that ``is_text``, learnt token by token, is a quarter of a row.
    """
    answer = max(2, tokens // 4) if is_text else 4
    tree = LabelTree.build(["answer"], [list(range(answer))])
    side = max(1, round(pixels**0.5))
    patches = _patches(PictureSize(side, side), config, limits) if pixels else 0
    pictured = _picture_tokens(patches, config)
    before = max(1, tokens - answer) + pictured
    return RowSize("rows", 0, before, prompts, tree, answer, patches)


def longest(rows: Sequence[RowSize]) -> RowSize:
    """Combine rows into a size that none of them exceeds: the most of each count."""
    deepest = max(rows, key=lambda row: len(row.tree.node_tokens))
    return RowSize(
        deepest.rubric,
        max(row.instruction for row in rows),
        max(row.tokens for row in rows),
        max(row.prompts for row in rows),
        deepest.tree,
        max(row.supervised for row in rows),
        max(row.patches for row in rows),
    )


def steps_of_epoch(rows: Sequence[RowSize], recipe: Recipe) -> int:
    """Count the optimizer steps of an epoch; without replay, a step has rows of one rubric."""
    replay = getattr(recipe, "replay", None)
    is_mixed = isinstance(replay, ReplaySection) and replay.train and replay.rho > 0
    sizes = [len(rows)] if is_mixed else Counter(row.rubric for row in rows).values()
    return sum(-(-size // recipe.optim.batch_size) for size in sizes)


def _message_tokens(request: JudgeRequest, encoder: Encoder) -> int:
    """Count the tokens of the user's turns; long responses count up to their budget."""
    total = 0
    for field in get_task(request.task).item(request):
        count = len(encoder.data(field.shown))
        total += min(count, encoder.response_budget) if field.is_response else count
        total += len(encoder.text(f"{field.heading}: ")) + TOKENS_OF_FIELD
    return total


def _picture_tokens(patches: int, config: Any) -> int:
    return patches // config.vision_config.spatial_merge_size**2 if patches else 0


def _patches(size: PictureSize, config: Any, limits: PixelLimits) -> int:
    """Count the patches of a picture, scaled as the processors of all families scale it."""
    if config.model_type in TEXT_FAMILIES:
        raise no_pictures(config.model_type)
    patch, merge = config.vision_config.patch_size, config.vision_config.spatial_merge_size
    try:
        height, width = smart_resize(
            size.height, size.width, factor=patch * merge, **limits._asdict()
        )
    except ValueError as error:  # one side is too long for the other
        raise FieldError("images", str(error)) from None
    return int((height // patch) * (width // patch))
