"""Critiques: text sampled after many prompts at once, over their shared instruction.

Only where text is the product. Labels are never generated; they are read from a label tree after
the text.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from judging.encoder import EncodedPrompt
from judging.forest import ForestModel, Prefix, forest_batch
from judging.tree import LabelTree

NO_LABELS = LabelTree((), (), (), ())


@dataclass(frozen=True)
class Sampling:
    """How tokens are drawn; temperature 0 is greedy."""

    max_new_tokens: int = 512
    temperature: float = 0.1
    top_p: float = 1.0


@dataclass(frozen=True)
class Generated:
    """Text drawn after one prompt, without what ended it."""

    tokens: tuple[int, ...]
    text: str
    finished: bool
    """False when the budget ended it."""


@torch.inference_mode()
def generate(
    model: ForestModel,
    prompts: Sequence[EncodedPrompt],
    prefix: Prefix | None,
    decode: Callable[[Sequence[int]], str],
    *,
    pad_id: int,
    end_id: int,
    stop: str,
    seeds: Sequence[int],
    sampling: Sampling,
    on_text: Callable[[int, str], None] | None = None,
) -> list[Generated]:
    """Draw a text after each prompt, until ``stop`` or the end token.

    Every row draws from a generator of its own seed, so its text does not depend on its company
    (but for rounding).

    Args:
        model: Backbone in eval mode.
        prompts: Prompts of one rubric.
        prefix: Their prefilled instruction, ``None`` if they have none.
        decode: From token ids to text.
        pad_id: Padding token.
        end_id: Token that ends a turn.
        stop: Text that ends a critique.
        seeds: One per prompt.
        sampling: Budget, temperature and nucleus.
        on_text: Called with a row's index and each new piece of its text, as it comes.
    """
    device = model.device
    rows = len(prompts)
    batch = forest_batch(prompts, [NO_LABELS] * rows, pad_id).to(device)
    logits, cache = model.begin(batch, prefix)
    past, width = len(batch.prefix_ids), batch.input_ids.shape[1]
    lengths = torch.tensor([len(prompt.suffix_ids) for prompt in prompts], device=device)
    columns = torch.arange(past + width, device=device)
    seen = (columns < past) | (columns - past < lengths[:, None])
    position = torch.tensor([int(p.positions.max()) + 1 for p in prompts], device=device)

    draws = [torch.Generator().manual_seed(seed) for seed in seeds]
    tokens: list[list[int]] = [[] for _ in prompts]
    texts, finished, told = [""] * rows, [False] * rows, [0] * rows
    for _ in range(sampling.max_new_tokens):
        drawn = _draw(logits[:, 0].float().cpu(), sampling, draws)
        for row, token in enumerate(drawn):
            if finished[row]:
                continue
            finished[row] = token == end_id
            if not finished[row]:
                tokens[row].append(token)
                texts[row], found, _ = decode(tokens[row]).partition(stop)
                finished[row] = bool(found)
            if on_text and (end := _settled(texts[row], stop, finished[row])) > told[row]:
                on_text(row, texts[row][told[row] : end])
                told[row] = end
        if all(finished):
            break
        seen = torch.cat([seen, torch.ones(rows, 1, dtype=torch.bool, device=device)], dim=1)
        logits = model.extend(
            torch.tensor(drawn, device=device)[:, None],
            position.expand(3, rows)[..., None],
            seen[:, None],
            cache,
        )
        position = position + 1
    return [Generated(tuple(tokens[i]), texts[i], finished[i]) for i in range(rows)]


def _settled(text: str, stop: str, finished: bool) -> int:
    """How much of a growing text will not change: not the start of ``stop`` nor half a letter."""
    if finished:
        return len(text)
    text = text.rstrip("\ufffd")
    begun = (size for size in range(len(stop) - 1, 0, -1) if text.endswith(stop[:size]))
    return len(text) - next(begun, 0)


def _draw(logits: Tensor, sampling: Sampling, draws: Sequence[torch.Generator]) -> list[int]:
    """One token per row from ``[rows, vocabulary]`` float32 logits."""
    if sampling.temperature == 0:
        return logits.argmax(-1).tolist()
    chances = (logits / sampling.temperature).softmax(-1)
    if sampling.top_p < 1:
        ordered, indices = chances.sort(dim=-1, descending=True)
        # The nucleus: the likeliest tokens up to the first that reaches top_p.
        outside = ordered.cumsum(-1) - ordered >= sampling.top_p
        chances = torch.zeros_like(chances).scatter(-1, indices, ordered.masked_fill(outside, 0.0))
    return [
        int(torch.multinomial(row, 1, generator=draw))
        for row, draw in zip(chances, draws, strict=True)
    ]
