"""The engine that runs the model in this process, with few forward passes for many prompts."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import torch

from judging.errors import CustosError
from judging.models.device_dtype import computed_in
from judging.scoring.batch_layout import lay_out
from judging.scoring.engine import LabelLogprobs, Sampling, TextBatch
from judging.scoring.generation import TextMemory, generate_texts
from judging.scoring.label_tree import LabelTree
from judging.scoring.packing import pack, pack_apart
from judging.scoring.prompts import END_TOKEN, EncodedPrompt, Encoder
from judging.scoring.tree_batch import Prefix, TreeModel, label_logprobs

MAX_PREFIXES = 16
GENERATED_ROWS = 16
TOKEN_BUDGETS = {"cpu": 512, "cuda": 16384}
"""Item tokens in one pass, by device. On a CPU a small batch's activations stay in its cache."""


class TreeEngine:
    """Scores label trees with one forward pass per batch over a shared, prefilled instruction.

    Instructions stay prefilled: make a new engine after the weights have changed. No prompt fails
    on its own here.

    Args:
        model: Backbone in a :class:`~judging.scoring.tree_batch.TreeModel`, in eval mode.
        pad_id: Padding token.
        token_budget: Most item tokens (padding included) in one pass; default by device.
        dtype: Format that the weights were rounded to; default the format they are in.
    """

    def __init__(
        self,
        model: TreeModel,
        pad_id: int,
        token_budget: int | None = None,
        dtype: str | None = None,
    ) -> None:
        self.model = model
        self.dtype = dtype or computed_in(model.backbone)
        self.pad_id = pad_id
        self.token_budget = token_budget or TOKEN_BUDGETS[model.device.type]
        self._prefixes: OrderedDict[tuple[int, ...], Prefix] = OrderedDict()

    @property
    def posterior(self) -> Literal["exact"]:
        """Return ``exact``, always."""
        return "exact"

    @property
    def numerics(self) -> dict[str, str]:
        """Return the engine, the format of the weights and that of the positions."""
        return {"dtype": self.dtype, "engine": "tree", "positions": "float32"}

    @property
    def location(self) -> dict[str, str]:
        """Return the format that is computed in, if it differs from that of the weights."""
        computed = computed_in(self.model.backbone)
        return {} if computed == self.dtype else {"arithmetic": computed}

    @torch.inference_mode()
    def score(self, prompts: Sequence[EncodedPrompt], tree: LabelTree) -> list[LabelLogprobs]:
        """Score every label after every prompt.

        Args:
            prompts: Prompts of one rubric.
            tree: Its label tree.

        Returns:
            ``[prompts, labels]`` float32 log-probabilities, in the order given.
        """
        scores = torch.empty(len(prompts), len(tree.labels))
        device = self.model.device
        for rows in self._plan(prompts, tree):
            chosen = [i for row in rows for i in row]
            positions = iter(range(len(chosen)))
            batch = lay_out(
                self.model,
                [prompts[i] for i in chosen],
                [tree] * len(chosen),
                self.pad_id,
                rows=[[next(positions) for _ in row] for row in rows],
            )
            prefix = self._prefill(prompts[chosen[0]].prefix_ids)
            logits = self.model(batch.to(device), prefix)
            scores[chosen] = label_logprobs(logits, tree).cpu()
        return scores.tolist()

    def generate(
        self,
        prompts: Sequence[EncodedPrompt],
        encoder: Encoder,
        stop: str,
        seeds: Sequence[int],
        sampling: Sampling,
        on_text: Callable[[int, str], None] | None = None,
    ) -> Iterator[TextBatch]:
        """Generate a text after every prompt and yield batches of them, short prompts first.

        A batch remembers its texts until the next one is asked for; then its memory is freed.

        Args:
            prompts: Prompts of one rubric.
            encoder: Encoder that made them.
            stop: Text that ends a text and is left out of it.
            seeds: One per prompt.
            sampling: How tokens are drawn.
            on_text: Called with a prompt's index and each new piece of its text.
        """
        order = sorted(range(len(prompts)), key=lambda i: len(prompts[i].suffix_ids))
        tokenizer = encoder.backbone.tokenizer
        size = 1 if self.model.is_recurrent else GENERATED_ROWS
        for start in range(0, len(order), size):
            indices = order[start : start + size]

            def report(row: int, piece: str, indices: list[int] = indices) -> None:
                if on_text:
                    on_text(indices[row], piece)

            texts, memory = generate_texts(
                self.model,
                [prompts[i] for i in indices],
                self._prefill(prompts[indices[0]].prefix_ids),
                tokenizer.decode,
                pad_id=self.pad_id,
                end_id=tokenizer.convert_tokens_to_ids(END_TOKEN),
                stop=stop,
                seeds=[seeds[i] for i in indices],
                sampling=sampling,
                on_text=report if on_text else None,
            )
            # A recurrent state cannot be taken back to where a text was cut.
            kept = None if self.model.is_recurrent else memory
            batch = _RememberedBatch(self, indices, texts, kept)
            del memory, kept
            yield batch
            batch.memory = None

    def _plan(self, prompts: Sequence[EncodedPrompt], tree: LabelTree) -> list[list[list[int]]]:
        """Return batches, each a list of rows, each a list of indices of prompts."""
        if not self.model.is_recurrent:
            return pack(prompts, len(tree.node_tokens), self.token_budget)
        return pack_apart([p.positions.shape[1] for p in prompts], tree, self.token_budget)

    @torch.inference_mode()
    def _prefill(self, ids: tuple[int, ...]) -> Prefix | None:
        if not ids or self.model.is_recurrent:
            return None
        if ids not in self._prefixes:
            self._prefixes[ids] = self.model.prefill(torch.tensor(ids, device=self.model.device))
            if len(self._prefixes) > MAX_PREFIXES:
                self._prefixes.popitem(last=False)
        self._prefixes.move_to_end(ids)
        return self._prefixes[ids]


@dataclass
class _RememberedBatch(TextBatch):
    """Texts whose keys and values are still in memory."""

    engine: TreeEngine
    memory: TextMemory | None
    """Keys and values of the texts; ``None`` once they are freed."""

    @torch.inference_mode()
    def score(
        self, prompts: Sequence[EncodedPrompt], tree: LabelTree
    ) -> Sequence[LabelLogprobs | CustosError]:
        if self.memory is None or not self.memory.is_continued_by(prompts):
            return self.engine.score(prompts, tree)
        logits = self.memory.score(self.engine.model, prompts, tree, self.engine.pad_id)
        scores: list[LabelLogprobs] = label_logprobs(logits, tree).tolist()
        return scores
