"""The engine that runs the model in this process, with few forward passes for many prompts."""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, partial
from itertools import chain
from typing import Literal, TypeVar

import torch
from torch import Tensor
from torch.utils.hooks import RemovableHandle
from transformers.modeling_layers import GradientCheckpointingLayer

from judging.errors import CustosError
from judging.models.attention import describe_attention, enabled_kernels, missing_kernels_line
from judging.models.devices import computed_in
from judging.scoring.engine import UNWANTED, GeneratedText, LabelLogprobs, Sampling, TextBatch
from judging.scoring.generation import TextMemory, generate_texts
from judging.scoring.label_tree import LabelTree
from judging.scoring.packing import lay_out, pack, pack_apart, pack_texts
from judging.scoring.prompts import EncodedPrompt, Encoder
from judging.scoring.tree_batch import Prefix, TreeModel, label_logprobs
from judging.types import END_TOKEN

logger = logging.getLogger("custos")
Item = TypeVar("Item")

MAX_PREFIXES = 16
TOKEN_BUDGETS = {"cpu": 512, "cuda": 16384}
"""Item tokens in one pass, by device. On a CPU a small batch's activations stay in its cache."""
TEXT_TOKENS_ON_CPU = 16_384
"""Tokens that a batch of texts remembers on a CPU, about 24 critiques of 512 tokens."""
TEXT_MEMORY_SHARE = 1 / 8
"""Share of a GPU's memory, weights included, for keys and values of a batch of texts."""


@cache
def warn_once(line: str) -> None:
    """Log a warning, the first time that this process has it."""
    logging.getLogger("custos").warning(line)


class TreeEngine:
    """Engine that scores label trees with one pass per batch over a shared, prefilled instruction.

    Instructions stay prefilled: make a new engine after the weights have changed. Where the memory
    of a GPU is too small, passes and batches of texts become smaller, for as long as the engine
    lives; a prompt fails on its own only if it is too long for that memory. By default the device,
    and its memory, decide the most item tokens of a pass (``token_budget``) and the most tokens
    that a batch of texts remembers (``text_budget``).
    """

    posterior: Literal["exact"] = "exact"

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
        self._hooks: list[RemovableHandle] = []
        if line := missing_kernels_line(model.backbone, model.device):
            warn_once(line)

    @property
    def numerics(self) -> dict[str, str]:
        """Return the engine, the format of the weights and that of the positions."""
        return {"dtype": self.dtype, "engine": "tree", "positions": "float32"}

    @property
    def location(self) -> dict[str, str]:
        """Tell how this device computes, where it differs from the weights' format on a CPU.

        ``arithmetic`` is the format that is computed in, ``attention`` that of a GPU, ``kernels``
        those that compute it there.
        """
        computed = computed_in(self.model.backbone)
        location = {} if computed == self.dtype else {"arithmetic": computed}
        if self.model.device.type != "cpu":
            location["attention"] = describe_attention(self.model.backbone)
            location["kernels"] = enabled_kernels()
        return location

    def call_between_layers(self, call: Callable[[], None]) -> None:
        """Have a function called before every layer of a pass, in place of an earlier function.

        It may run passes of this model or of others. A GPU is told of a pass long before it is
        computed, so there it is never called.
        """
        while self._hooks:
            self._hooks.pop().remove()
        if self.model.device.type == "cpu":
            self._hooks = [
                module.register_forward_pre_hook(lambda *_: call())
                for module in self.model.backbone.modules()
                if isinstance(module, GradientCheckpointingLayer)
            ]

    @torch.inference_mode()
    def score(
        self,
        prompts: Sequence[EncodedPrompt],
        tree: LabelTree,
        is_wanted: Callable[[int], bool] | None = None,
    ) -> list[LabelLogprobs | CustosError]:
        """Score every label after every prompt, in float32, as :meth:`Engine.score` says.

        A pass with a wanted prompt runs as a whole.
        """
        return self._read(prompts, tree, partial(label_logprobs, tree=tree), is_wanted)

    @torch.inference_mode()
    def next_token_logits(
        self, prompts: Sequence[EncodedPrompt], tokens: Sequence[int]
    ) -> list[list[float] | CustosError]:
        """Return the logits of different tokens right after every prompt, before any softmax.

        All prompts have the same instruction, or none.
        """
        tree = LabelTree.build([str(token) for token in tokens], [[token] for token in tokens])
        columns = torch.tensor(tokens, device=self.model.device)
        return self._read(prompts, tree, lambda logits: logits[:, 0, columns].float())

    def _read(
        self,
        prompts: Sequence[EncodedPrompt],
        tree: LabelTree,
        read: Callable[[Tensor], Tensor],
        is_wanted: Callable[[int], bool] | None = None,
    ) -> list[list[float] | CustosError]:
        """Run the model over prompts and a label tree, and read numbers from every prompt's logits.

        ``read`` makes ``[N, numbers]`` of logits ``[N, slots, vocabulary]``.
        """
        numbers: list[list[float] | CustosError] = [UNWANTED] * len(prompts)
        try:
            prefix = self._prefill(prompts[0].prefix_ids) if prompts else None
        except torch.OutOfMemoryError:
            return [_too_long(len(prompts[0].prefix_ids))] * len(prompts)
        # On the model's device until all passes are under way: a copy would wait for its pass.
        scored: list[tuple[list[int], Tensor]] = []
        too_large: list[tuple[list[int], int]] = []

        def score_batch(rows: list[list[int]]) -> None:
            chosen = [i for row in rows for i in row]
            if too_large or (is_wanted and not any(map(is_wanted, chosen))):
                return
            positions = iter(range(len(chosen)))
            batch = lay_out(
                self.model,
                [prompts[i] for i in chosen],
                [tree] * len(chosen),
                self.pad_id,
                rows=[[next(positions) for _ in row] for row in rows],
            )
            try:
                logits = self.model(batch.to(self.model.device), prefix)
                scored.append((chosen, read(logits)))
            except torch.OutOfMemoryError:
                too_large.append((chosen, batch.input_ids.numel()))

        left = list(range(len(prompts)))
        while left:
            plan = self._plan([prompts[i] for i in left], tree)
            batches = [[[left[i] for i in row] for row in rows] for rows in plan]
            # Side by side on the cores of a CPU, one after the other on a GPU.
            on_cpu = self.model.device.type == "cpu"
            run_on_cores(score_batch, batches, torch.get_num_threads() if on_cpu else 1)
            if not too_large:
                break
            for chosen, tokens in too_large:
                if len(chosen) == 1:
                    numbers[chosen[0]] = _too_long(tokens)
                    left.remove(chosen[0])
            if sizes := [tokens for chosen, tokens in too_large if len(chosen) > 1]:
                # Once, however many batches ran side by side.
                self.token_budget = self._halved(
                    self.token_budget, min(sizes), "a pass (--token-budget)"
                )
            too_large.clear()
            done = {i for chosen, _ in scored for i in chosen}
            left = [i for i in left if i not in done]
        if scored:
            values = torch.cat([values for _, values in scored]).tolist()
            for i, own in zip((i for chosen, _ in scored for i in chosen), values, strict=True):
                numbers[i] = own
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
        num_reported = [0] * len(prompts)

        def plan(left: Sequence[int]) -> list[list[int]]:
            budget = 1 if self.model.is_recurrent else self.text_budget
            batches = pack_texts([lengths[i] for i in left], sampling.max_new_tokens, budget)
            return [[left[i] for i in batch] for batch in batches]

        def generate(indices: list[int]) -> tuple[Sequence[GeneratedText], TextMemory] | None:
            """Return texts, ``None`` if there is too little memory for so many."""
            written = dict.fromkeys(indices, 0)

            def report(row: int, piece: str) -> None:
                index = indices[row]
                written[index] += len(piece)
                num_new = written[index] - num_reported[index]  # a text may come a second time
                num_reported[index] = max(num_reported[index], written[index])
                if on_text:
                    on_text(index, piece[-num_new:] if num_new > 0 else "")

            with suppress(torch.OutOfMemoryError):
                return generate_texts(
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
            return None

        batches = plan(range(len(prompts)))
        while batches:
            indices = batches.pop(0)
            made = generate(indices)
            if made is None and len(indices) > 1:
                width = max(lengths[i] for i in indices) + sampling.max_new_tokens
                tokens = len(indices) * width
                self.text_budget = self._halved(self.text_budget, tokens, "a batch of texts")
                batches = plan([*indices, *chain.from_iterable(batches)])
                continue
            if made is None:
                yield TextBatch(self, indices, [_too_long(lengths[indices[0]])])
                continue
            # A recurrent state cannot be taken back to where a text was cut.
            kept = None if self.model.is_recurrent else made[1]
            batch = _RememberedBatch(self, indices, made[0], kept)
            del made, kept
            yield batch
            batch.memory = None

    def _halved(self, budget: int, tokens: int, what: str) -> int:
        """Free what no tensor holds, and halve a budget that was too large, for good."""
        torch.cuda.empty_cache()
        budget = max(1, min(budget, tokens) // 2)
        logger.warning(
            "out of memory on the GPU: from now on at most %d tokens in %s", budget, what
        )
        return budget

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
            tokens, prefix = torch.tensor(ids, device=self.model.device), None
            with suppress(torch.OutOfMemoryError):
                prefix = self.model.prefill(tokens)
            if prefix is None:
                self._prefixes.clear()
                torch.cuda.empty_cache()
                prefix = self.model.prefill(tokens)
            self._prefixes[ids] = prefix
            if len(self._prefixes) > MAX_PREFIXES:
                self._prefixes.popitem(last=False)
        self._prefixes.move_to_end(ids)
        return self._prefixes[ids]


def _text_budget(model: TreeModel) -> int:
    """Tell how many tokens of texts a model's device remembers at once, the same on every day.

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


def _too_long(tokens: int) -> CustosError:
    return CustosError(
        f"out of memory on the GPU with one prompt of {tokens:,} tokens; no --token-budget mends "
        "that: shorten it, show smaller pictures, or take a GPU with more memory"
    )


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
        if self.memory and self.memory.is_continued_by(prompts):
            with suppress(torch.OutOfMemoryError):
                logits = self.memory.score(self.engine.model, prompts, tree, self.engine.pad_id)
                scores: list[LabelLogprobs] = label_logprobs(logits, tree).tolist()
                return scores
            self.memory = None
        return self.engine.score(prompts, tree)


def run_on_cores(run: Callable[[Item], None], items: Sequence[Item], num_cores: int) -> None:
    """Call a function for every item, on several threads that compute with one core each.

    The matrix products of a small batch are too small for several cores to share them well. One
    pass of a model on each core finishes sooner than all cores on one pass after another (``python
    -m experiments scoring_speed``). If a call fails, no further one begins, and its error is raised
    when those that run have ended.
    """
    if min(num_cores, len(items)) < 2:
        for item in items:
            run(item)
        return
    threads_before = torch.get_num_threads()

    def compute_on_one_core() -> None:
        torch.get_num_threads()  # torch gives a thread the usual number when it first asks
        torch.set_num_threads(1)

    infer = torch.inference_mode()(run)
    pool = ThreadPoolExecutor(num_cores, "pass", initializer=compute_on_one_core)
    try:
        for future in [pool.submit(infer, item) for item in items]:
            future.result()
    finally:
        pool.shutdown(cancel_futures=True)
        # What a thread sets holds for itself and for every thread that is started later.
        torch.set_num_threads(threads_before)
