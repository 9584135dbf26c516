"""Engines: label log-probabilities and texts for many prompts; ours needs few forward passes."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Literal, Protocol

import torch
from torch import Tensor

from judging.models.device_dtype import computed_in
from judging.scoring.generation import Generated, Sampling, TextMemory, generate
from judging.scoring.label_tree import LabelTree
from judging.scoring.packing import pack
from judging.scoring.prompts import END_TOKEN, EncodedPrompt, Encoder
from judging.scoring.tree_batch import Prefix, TreeModel, label_logprobs, make_tree_batch

MAX_PREFIXES = 16
GENERATED_ROWS = 16
TOKEN_BUDGETS = {"cpu": 512, "cuda": 16384}
"""A CPU is fastest while activations stay in its cache (512 against 2048: 1.4 times the rows)."""


OnTexts = Callable[[Sequence[int], Sequence[Generated]], None]


class Engine(Protocol):
    """What runs the model: :class:`TreeEngine` here, or a server elsewhere."""

    @property
    def posterior(self) -> Literal["exact", "approximate"]:
        """Whether :meth:`score` gives the probability of every label, whatever it is."""
        ...

    @property
    def numerics(self) -> Mapping[str, str]:
        """What a calibration is bound to: ``dtype`` and ``engine``."""
        ...

    @property
    def location(self) -> Mapping[str, str]:
        """What else could change a verdict: which server, which model there."""
        ...

    def score(self, prompts: Sequence[EncodedPrompt], tree: LabelTree) -> Tensor:
        """Log-probability of every label for every prompt, ``[prompts, labels]`` float32.

        Raises:
            RowsFailed: If some prompts have none.
        """
        ...

    def generate(
        self,
        prompts: Sequence[EncodedPrompt],
        encoder: Encoder,
        stop: str,
        seeds: Sequence[int],
        sampling: Sampling,
        on_text: Callable[[int, str], None] | None = None,
        on_texts: OnTexts | None = None,
    ) -> list[Generated]:
        """Draw a text after every prompt, up to ``stop``.

        ``on_texts`` is called with prompts' indices and texts, each once, while scores of what
        continues these texts are cheapest.

        Raises:
            RowsFailed: If some prompts have none.
        """
        ...


class TreeEngine:
    """Scores label trees with one forward pass per batch over a shared, prefilled instruction.

    Instructions stay prefilled: make a new engine after the weights have changed.

    Args:
        model: Backbone in a :class:`~judging.scoring.tree_batch.TreeModel`, in eval mode.
        pad_id: Padding token.
        token_budget: Most item tokens (padding included) in one pass; default by device.
        dtype: What the weights were rounded to; default what they are in.
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
        self._written: TextMemory | None = None

    @property
    def posterior(self) -> Literal["exact"]:
        """Always exact."""
        return "exact"

    @property
    def numerics(self) -> dict[str, str]:
        """The tree, with weights rounded to a dtype, positions exact."""
        return {"dtype": self.dtype, "engine": "tree", "positions": "float32"}

    @property
    def location(self) -> dict[str, str]:
        """What is computed in, where the weights were rounded to something else."""
        computed = computed_in(self.model.backbone)
        return {} if computed == self.dtype else {"arithmetic": computed}

    @torch.inference_mode()
    def score(self, prompts: Sequence[EncodedPrompt], tree: LabelTree) -> Tensor:
        """Log-probability of every label for every prompt.

        Args:
            prompts: Prompts of one rubric.
            tree: Its label tree.

        Returns:
            ``[prompts, labels]`` float32 on the CPU, in the order given.
        """
        if self._written and self._written.begins(prompts):
            logits = self._written.score(self.model, prompts, tree, self.pad_id)
            return label_logprobs(logits, tree).cpu()
        result = torch.empty(len(prompts), len(tree.labels))
        device = self.model.device
        for rows in pack(prompts, len(tree.node_tokens), self.token_budget):
            chosen = [i for row in rows for i in row]
            places = iter(range(len(chosen)))
            batch = make_tree_batch(
                [prompts[i] for i in chosen],
                [tree] * len(chosen),
                self.pad_id,
                rows=[[next(places) for _ in row] for row in rows],
            )
            prefix = self._prefix(prompts[chosen[0]].prefix_ids, device)
            logits = self.model(batch.to(device), prefix)
            result[chosen] = label_logprobs(logits, tree).cpu()
        return result

    def generate(
        self,
        prompts: Sequence[EncodedPrompt],
        encoder: Encoder,
        stop: str,
        seeds: Sequence[int],
        sampling: Sampling,
        on_text: Callable[[int, str], None] | None = None,
        on_texts: OnTexts | None = None,
    ) -> list[Generated]:
        """Draw a text after every prompt (:func:`judging.scoring.generation.generate`), in batches.

        Args:
            prompts: Prompts of one rubric.
            encoder: Encoder they were made with.
            stop: Text that ends a text.
            seeds: One per prompt.
            sampling: How tokens are drawn.
            on_text: Called with a prompt's index and each new piece of its text.
            on_texts: Called with each batch's indices and texts. Until it returns, :meth:`score`
                reads prompts that begin with them from where the texts ended.
        """
        found: dict[int, Generated] = {}
        order = sorted(range(len(prompts)), key=lambda i: len(prompts[i].suffix_ids))
        tokenizer = encoder.backbone.tokenizer
        for start in range(0, len(order), GENERATED_ROWS):
            rows = order[start : start + GENERATED_ROWS]

            def tell(row: int, piece: str, rows: list[int] = rows) -> None:
                if on_text:
                    on_text(rows[row], piece)

            texts, written = generate(
                self.model,
                [prompts[i] for i in rows],
                self._prefix(prompts[rows[0]].prefix_ids, self.model.device),
                tokenizer.decode,
                pad_id=self.pad_id,
                end_id=tokenizer.convert_tokens_to_ids(END_TOKEN),
                stop=stop,
                seeds=[seeds[i] for i in rows],
                sampling=sampling,
                on_text=tell if on_text else None,
            )
            found |= dict(zip(rows, texts, strict=True))
            if on_texts:
                self._written = written
                try:
                    on_texts(rows, texts)
                finally:
                    self._written = None
        return [found[i] for i in range(len(prompts))]

    @torch.inference_mode()
    def _prefix(self, ids: tuple[int, ...], device: torch.device) -> Prefix | None:
        if not ids:
            return None
        if ids not in self._prefixes:
            self._prefixes[ids] = self.model.prefill(torch.tensor(ids, device=device))
            if len(self._prefixes) > MAX_PREFIXES:
                self._prefixes.popitem(last=False)
        self._prefixes.move_to_end(ids)
        return self._prefixes[ids]
