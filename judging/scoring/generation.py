"""Critiques: text sampled after many prompts at once, over their shared instruction.

Only where text is the product. Labels are never generated; they are read from a label tree after
the text.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile

import torch
from torch import Tensor
from transformers import DynamicCache

from judging.scoring.label_tree import LabelTree
from judging.scoring.prompts import EncodedPrompt
from judging.scoring.tree_batch import Prefix, TreeModel, make_tree_batch

NO_LABELS = LabelTree((), (), (), ())
NUCLEUS_TOKENS = 256
"""Tokens among which a nucleus is sought before the whole vocabulary is sorted."""


@dataclass(frozen=True)
class Sampling:
    """How tokens are drawn; temperature 0 is greedy.

    Temperature and top_p are TruthfulJudge's; it allows 2,048 tokens, of which judges trained on
    critiques need a fraction: one that runs on is cut, closed, and its label read.
    """

    max_new_tokens: int
    temperature: float = 0.1
    top_p: float = 1.0


@dataclass(frozen=True)
class Generated:
    """Text drawn after one prompt, without what ended it."""

    tokens: tuple[int, ...]
    text: str
    finished: bool
    """False when the budget ended it."""


@dataclass(frozen=True)
class TextMemory:
    """A batch of texts that a model still remembers: ``[prefix | items, padded | fed tokens]``."""

    cache: DynamicCache
    prompts: tuple[EncodedPrompt, ...]
    item_columns: int
    fed: tuple[tuple[int, ...], ...]
    """Each row's tokens after the prompt; once a text has ended they are arbitrary."""

    def begins(self, prompts: Sequence[EncodedPrompt]) -> bool:
        """Whether the prompts are these rows, each with something after it."""
        return len(prompts) == len(self.prompts) and all(
            prompt.prefix_ids == own.prefix_ids
            and len(prompt.suffix_ids) > len(own.suffix_ids)
            and prompt.suffix_ids[: len(own.suffix_ids)] == own.suffix_ids
            and prompt.vision is own.vision  # other pictures have the same tokens
            for prompt, own in zip(prompts, self.prompts, strict=True)
        )

    @torch.inference_mode()
    def score(
        self, model: TreeModel, prompts: Sequence[EncodedPrompt], tree: LabelTree, pad_id: int
    ) -> Tensor:
        """Logits at every slot of the tree after prompts that :meth:`begins` accepts.

        Only tokens that the model has not read are fed; the memory is then as it was before.

        Returns:
            ``[N, K, vocabulary]`` as :meth:`TreeModel.forward`.
        """
        past = len(prompts[0].prefix_ids)
        start = past + self.item_columns
        seen = torch.zeros(len(prompts), start + len(self.fed[0]), dtype=torch.bool)
        seen[:, :past] = True
        rest = []
        for row, prompt in enumerate(prompts):
            item = len(self.prompts[row].suffix_ids)
            # The text is tokenized again on its own, and a stop may end within a token; the last
            # token is always fed, as its logits are wanted.
            written = zip(prompt.suffix_ids[item:-1], self.fed[row], strict=False)
            known = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], written))
            seen[row, past : past + item] = True
            seen[row, start : start + known] = True
            rest.append(replace(prompt, suffix_ids=prompt.suffix_ids[item + known :], vision={}))
        batch = make_tree_batch(rest, [tree] * len(rest), pad_id)
        return model.resume(batch.to(model.device), self.cache, seen.to(model.device))


@torch.inference_mode()
def generate(
    model: TreeModel,
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
) -> tuple[list[Generated], TextMemory]:
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

    Returns:
        The texts, and what the model remembers of them.
    """
    device = model.device
    rows = len(prompts)
    batch = make_tree_batch(prompts, [NO_LABELS] * rows, pad_id).to(device)
    logits, cache = model.begin(batch, prefix)
    past, width = len(batch.prefix_ids), batch.input_ids.shape[1]
    lengths = torch.tensor([len(prompt.suffix_ids) for prompt in prompts], device=device)
    columns = torch.arange(past + width, device=device)
    seen = (columns < past) | (columns - past < lengths[:, None])
    position = torch.tensor([int(p.positions.max()) + 1 for p in prompts], device=device)

    draws = [torch.Generator().manual_seed(seed) for seed in seeds]
    tokens: list[list[int]] = [[] for _ in prompts]
    texts, finished, told = [""] * rows, [False] * rows, [0] * rows
    fed: list[list[int]] = []
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
        fed.append(drawn)
        seen = torch.cat([seen, torch.ones(rows, 1, dtype=torch.bool, device=device)], dim=1)
        logits = model.extend(
            torch.tensor(drawn, device=device)[:, None],
            position.expand(3, rows)[..., None],
            seen[:, None],
            cache,
        )
        position = position + 1
    drawn_texts = [Generated(tuple(tokens[i]), texts[i], finished[i]) for i in range(rows)]
    after = tuple(zip(*fed, strict=True)) if fed else ((),) * rows
    return drawn_texts, TextMemory(cache, tuple(prompts), width, after)


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
    return [
        _draw_token(row, sampling.top_p, draw) for row, draw in zip(chances, draws, strict=True)
    ]


def _draw_token(chances: Tensor, top_p: float, draw: torch.Generator) -> int:
    """Where a uniform draw meets the cumulative distribution, of the nucleus if ``top_p < 1``."""
    tokens = None
    if top_p < 1:
        chances, tokens = _nucleus(chances, top_p)
    cumulative = chances.double().cumsum(0)
    drawn = torch.rand(1, generator=draw, dtype=torch.float64) * cumulative[-1]
    # A draw so near 1 that the product rounds to the whole would fall behind the last.
    place = min(int(torch.searchsorted(cumulative, drawn, right=True)), len(chances) - 1)
    return place if tokens is None else int(tokens[place])


def _nucleus(chances: Tensor, top_p: float) -> tuple[Tensor, Tensor]:
    """The likeliest tokens, best first, up to the first that reaches ``top_p``; their ids."""
    for width in (NUCLEUS_TOKENS, len(chances)):
        ordered, tokens = chances.topk(min(width, len(chances)))
        cumulative = ordered.cumsum(0)
        if cumulative[-1] >= top_p:
            break
    inside = cumulative - ordered < top_p
    return ordered[inside], tokens[inside]
