"""Tokens and patches of the rows of a recipe, without reading a picture's content."""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import smart_resize

from judging.errors import errors_at
from judging.pictures import MOST_PIXELS, picture_size
from judging.scoring.label_tree import LabelTree
from judging.scoring.prompts import Encoder
from judging.tasks import get_task
from judging.types import JudgeRequest, LabelledExample
from train.loop.batches import LabelSupervision, Supervision
from train.objectives.critique_text import TextSupervision
from train.objectives.reward import PairSupervision
from train.setup.data import read_splits
from train.setup.recipe import Recipe
from train.setup.replay import ReplaySection, with_replay

CHARACTERS_PER_TOKEN = 4
"""English text in Qwen's vocabulary; used where there is no tokenizer."""
TOKENS_OF_TURNS = 13
"""What the chat template puts around instruction, message and answer."""
TOKENS_OF_PICTURE = 2
"""Marks around the tokens of a picture."""
DEFAULT_PIXELS = {14: (56 * 56, 14 * 14 * 4 * 16384), 16: (256 * 256, 4096 * 4096)}
"""Fewest and most pixels that published processors keep, by the size of a patch."""
TEXT_SCRIPT = "truthful_judge"
"""The script whose judges learn to write."""


@dataclass(frozen=True)
class RowSize:
    """What a training row costs."""

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
        """Return the tokens of the row after the instruction, of all prompts."""
        return self.prompts * (self.tokens + len(self.tree.node_tokens))


class CharacterEncoder(Encoder):
    """Stands in for an encoder where no tokenizer can be had: some characters are a token."""

    def __init__(self, response_budget: int) -> None:
        self.response_budget = response_budget

    def text(self, text: str) -> list[int]:
        """Return as many numbers as the text has tokens, equal where the text is."""
        size = CHARACTERS_PER_TOKEN
        return [zlib.crc32(text[i : i + size].encode()) for i in range(0, len(text), size)]

    def data(self, text: str) -> list[int]:
        """Return what :meth:`text` does."""
        return self.text(text)


def row_sizes(recipe: Recipe, script: str, config: Any, encoder: Encoder) -> list[RowSize]:
    """Measure the training rows of a recipe.

    Args:
        recipe: Validated recipe.
        script: Name of its training script.
        config: Configuration of the backbone.
        encoder: The backbone's encoder, or a :class:`CharacterEncoder`.

    Raises:
        CustosError: If a file is missing or a row cannot be trained on.
    """
    splits = read_splits(recipe.data)
    replay = getattr(recipe, "replay", None)
    if isinstance(replay, ReplaySection):
        splits = with_replay(splits, replay, recipe.run.seed, recipe.data.exclude_answerer)
    if script == TEXT_SCRIPT:
        under_task = import_module(f"train.{script}").under_task
        splits = under_task(splits, getattr(recipe, "task", None))
    supervision = _supervision(script, encoder)
    counts: dict[str, int] = {}
    sizes = []
    for example in splits.train:
        with errors_at(f"row '{example.id}'"):
            sizes.append(_row_size(example, supervision, config, counts))
    return sizes


def made_up_rows(script: str, tokens: int, pixels: int, rows: int, config: Any) -> list[RowSize]:
    """Return rows of equal size, for a plan without data.

    Args:
        script: Name of the training script.
        tokens: Tokens of a row, its answer included and its pictures not.
        pixels: Pixels of the pictures of a row.
        rows: Number of rows.
        config: Configuration of the backbone.
    """
    answer = max(2, tokens // 4) if script == TEXT_SCRIPT else 4
    tree = LabelTree.build(["answer"], [list(range(answer))])
    patches = patches_of(pixels, config) if pixels else 0
    pictured = patches // config.vision_config.spatial_merge_size**2
    before = max(1, tokens - answer) + pictured
    prompts = 2 if script == "bradley_terry" else 1
    return [RowSize("rows", 0, before, prompts, tree, answer, patches)] * rows


def longest(rows: Sequence[RowSize]) -> RowSize:
    """Return a size that none of the rows exceeds: the most of each count."""
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


def patches_of(pixels: int, config: Any) -> int:
    """Return the patches of a square picture of so many pixels."""
    side = max(1, round(pixels**0.5))
    return _patches((side, side), config, None)


def steps_of_epoch(rows: Sequence[RowSize], batch_size: int) -> int:
    """Return the optimizer steps of an epoch; a step has rows of one rubric."""
    sizes = Counter(row.rubric for row in rows).values()
    return sum(-(-size // batch_size) for size in sizes)


def _supervision(script: str, encoder: Encoder) -> Supervision:
    if script == "bradley_terry":
        return PairSupervision(encoder)
    return TextSupervision(encoder) if script == TEXT_SCRIPT else LabelSupervision(encoder)


def _row_size(
    example: LabelledExample, supervision: Supervision, config: Any, counts: dict[str, int]
) -> RowSize:
    requests, encoder = supervision.requests(example), supervision.encoder
    tree, target = supervision.target(example)
    task = get_task(requests[0].task)
    rubric = task.rubric(requests[0])
    name = f"{task.name}/{rubric}"
    if name not in counts:
        counts[name] = len(encoder.text(task.instruction(rubric)))
    processor = getattr(getattr(encoder, "backbone", None), "processor", None)
    patches = sum(_patches(picture_size(path)[::-1], config, processor) for path in example.images)
    pictured = patches // config.vision_config.spatial_merge_size**2
    pictured += TOKENS_OF_PICTURE * len(example.images)
    message = max(_message_tokens(request, encoder) for request in requests)
    paths = tree.paths if len(requests) > 1 else [tree.paths[target]]
    return RowSize(
        name,
        counts[name],
        message + pictured + TOKENS_OF_TURNS,
        len(requests),
        tree,
        sum(map(len, paths)),
        patches,
    )


def _message_tokens(request: JudgeRequest, encoder: Encoder) -> int:
    """Return the tokens of the user's message; long responses count up to their budget."""
    total = 0
    for field in get_task(request.task).item(request):
        count = len(encoder.data(field.text.strip()))
        total += min(count, encoder.response_budget) if field.is_response else count
        total += len(encoder.text(f"{field.heading}: "))
    return total


def _patches(size: tuple[int, int], config: Any, processor: Any) -> int:
    vision = config.vision_config
    if processor is not None:
        return int(processor.image_processor.get_number_of_image_patches(*size, {}))
    patch, merge = vision.patch_size, vision.spatial_merge_size
    fewest, most = DEFAULT_PIXELS.get(patch, DEFAULT_PIXELS[16])
    most = min(most, MOST_PIXELS)
    height, width = smart_resize(*size, factor=patch * merge, min_pixels=fewest, max_pixels=most)
    return int((height // patch) * (width // patch))
