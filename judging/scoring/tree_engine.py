"""The engine that runs the model in this process, with few forward passes for many prompts."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

import torch
from torch import Tensor

from judging.errors import CustosError
from judging.messages import END_TOKEN
from judging.models.attention import describe_attention, enabled_kernels
from judging.models.device_dtype import computed_in
from judging.scoring.batch_layout import lay_out
from judging.scoring.core_pool import run_on_cores
from judging.scoring.engine import UNWANTED, LabelLogprobs, Sampling, TextBatch
from judging.scoring.generation import TextMemory, generate_texts
from judging.scoring.label_tree import LabelTree
from judging.scoring.packing import pack, pack_apart, pack_texts
from judging.scoring.prefix import Prefix
from judging.scoring.prompts import EncodedPrompt, Encoder
from judging.scoring.tree_batch import TreeModel, label_logprobs

MAX_PREFIXES = 16
TOKEN_BUDGETS = {"cpu": 512, "cuda": 16384}
"""Item tokens in one pass, by device. On a CPU a small batch's activations stay in its cache."""
TEXT_TOKENS_ON_CPU = 16_384
"""Tokens that a batch of texts remembers on a CPU, about 24 critiques of 512 tokens."""
TEXT_MEMORY_SHARE = 1 / 8
"""Share of a GPU's memory, weights included, for keys and values of a batch of texts."""


class TreeEngine:
    """Scores label trees with one forward pass per batch over a shared, prefilled instruction.

    Instructions stay prefilled: make a new engine after the weights have changed. No prompt fails
    on its own here.

    Args:
        model: Backbone in a :class:`~judging.scoring.tree_batch.TreeModel`, in eval mode.
        pad_id: Padding token.
        token_budget: Most item tokens (padding included) in one pass; default by device.
        dtype: Format that the weights were rounded to; default the format they are in.
        text_budget: Most tokens (prompts, texts and padding) that a batch of texts remembers;
            default by device and its memory.
    """

    def __init__(
        self,
        model: TreeModel,
        pad_id: int,
        token_budget: int | None = None,
        dtype: str | None = None,
        text_budget: int | None = None,
    ) -> None:
        self.model = model
        self.dtype = dtype or computed_in(model.backbone)
        self.pad_id = pad_id
        self.token_budget = token_budget or TOKEN_BUDGETS[model.device.type]
        self.text_budget = text_budget or _text_budget(model)
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
        """Return how this device computes, where it differs from the weights' format on a CPU.

        ``arithmetic`` is the format that is computed in, ``attention`` that of a GPU, ``kernels``
        those that compute it there.
        """
        computed = computed_in(self.model.backbone)
        location = {} if computed == self.dtype else {"arithmetic": computed}
        if self.model.device.type != "cpu":
            location["attention"] = describe_attention(self.model.backbone)
            location["kernels"] = enabled_kernels()
        return location

    @torch.inference_mode()
    def score(
        self,
        prompts: Sequence[EncodedPrompt],
        tree: LabelTree,
        is_wanted: Callable[[int], bool] | None = None,
    ) -> list[LabelLogprobs | CustosError]:
        """Score every label after every prompt.

        Args:
            prompts: Prompts of one rubric.
            tree: Its label tree.
            is_wanted: As for :meth:`Engine.score`; a pass with a wanted prompt runs as a whole.

        Returns:
            For each prompt ``[labels]`` float32 log-probabilities, or ``UNWANTED``.
        """
        return self._read(prompts, tree, partial(label_logprobs, tree=tree), is_wanted)

    @torch.inference_mode()
    def next_token_logits(
        self, prompts: Sequence[EncodedPrompt], tokens: Sequence[int]
    ) -> list[list[float] | CustosError]:
        """Return the logits of some tokens right after every prompt, before any softmax.

        Args:
            prompts: Prompts with the same instruction, or with none.
            tokens: Different tokens.
        """
        tree = LabelTree.build([str(token) for token in tokens], [[token] for token in tokens])
        return self._read(prompts, tree, lambda logits: logits[:, 0, list(tokens)].float())

    def _read(
        self,
        prompts: Sequence[EncodedPrompt],
        tree: LabelTree,
        read: Callable[[Tensor], Tensor],
        is_wanted: Callable[[int], bool] | None = None,
    ) -> list[list[float] | CustosError]:
        """Run the model over prompts and a label tree, and read numbers from every prompt's logits.

        Args:
            prompts: Prompts of one rubric.
            tree: The label tree after each.
            read: Makes ``[N, numbers]`` of logits ``[N, slots, vocabulary]``.
            is_wanted: As for :meth:`score`.
        """
        numbers: list[list[float] | CustosError] = [UNWANTED] * len(prompts)
        batches = self._plan(prompts, tree)
        prefix = self._prefill(prompts[0].prefix_ids) if prompts else None

        def score_batch(number: int) -> None:
            rows = batches[number]
            chosen = [i for row in rows for i in row]
            if is_wanted and not any(map(is_wanted, chosen)):
                return
            positions = iter(range(len(chosen)))
            batch = lay_out(
                self.model,
                [prompts[i] for i in chosen],
                [tree] * len(chosen),
                self.pad_id,
                rows=[[next(positions) for _ in row] for row in rows],
            )
            logits = self.model(batch.to(self.model.device), prefix)
            for i, values in zip(chosen, read(logits).tolist(), strict=True):
                numbers[i] = values

        num_cores = torch.get_num_threads() if self.model.device.type == "cpu" else 1
        if min(num_cores, len(batches)) > 1:
            run_on_cores(score_batch, range(len(batches)), num_cores)
        else:
            for number in range(len(batches)):
                score_batch(number)
        return numbers

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
        Arguments as for :meth:`Engine.generate`.
        """
        tokenizer = encoder.backbone.tokenizer
        lengths = [prompt.positions.shape[1] for prompt in prompts]
        budget = 1 if self.model.is_recurrent else self.text_budget
        for indices in pack_texts(lengths, sampling.max_new_tokens, budget):

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


def _text_budget(model: TreeModel) -> int:
    """Return how many tokens of texts a model's device remembers at once, the same on every day.

    A share of all memory, not of what is free just now: batches of other sizes round otherwise.
    """
    if model.device.type != "cuda":
        return TEXT_TOKENS_ON_CPU
    config = model.backbone.config.get_text_config()
    heads = config.num_key_value_heads or config.num_attention_heads
    width = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    token_bytes: int = 2 * config.num_hidden_layers * heads * width * model.backbone.dtype.itemsize
    memory = torch.cuda.get_device_properties(model.device).total_memory
    return int(memory * TEXT_MEMORY_SHARE) // token_bytes


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
