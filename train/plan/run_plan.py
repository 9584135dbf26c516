"""The plan of a training run: what it trains, its memory and time, and what to change."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from judging.errors import CustosError, FieldError, Missing
from judging.models.attention import attention_line, choose_attention, installed_flash
from judging.models.backbones import load_backbone
from judging.models.checkpoints import CONFIG, TEXT_FAMILIES, check_config
from judging.models.device_dtype import computes_bfloat16
from judging.scoring.prompts import Encoder
from train.critiques.recipe import CritiqueRecipe
from train.plan.published import PUBLISHED, published_config
from train.plan.row_sizes import (
    CHARACTERS_PER_TOKEN,
    CharacterEncoder,
    RowSize,
    longest,
    made_up_rows,
    pixel_limits,
    row_sizes,
    steps_of_epoch,
)
from train.plan.step_memory import StepMemory, StepSize, step_memory
from train.setup.engines import FSDP, check_processes
from train.setup.recipe import Recipe, parse_recipe, read_values
from train.setup.recipe_files import TEXT_SCRIPT, find_recipe, recipe_of_task, script_of
from train.setup.recipe_keys import recipe_model
from train.setup.starting_adapter import with_shape_of_init

GIB = 2**30
RESERVE = {True: GIB, False: GIB // 2}
"""Bytes that a process takes beside its tensors, on a GPU (CUDA's context and libraries) and on a
CPU (Python and its libraries)."""
MEMORY_OF_GPU = 78.0
"""GiB of an H100 for tensors and :data:`RESERVE`: it has 79.6, and the driver takes a part."""


@dataclass(frozen=True)
class Hardware:
    """The hardware that a run is planned for."""

    gpus: int
    """Number of GPUs; 0: one process on the CPU."""
    memory: float
    """GiB of one GPU, or of the machine."""
    shared: bool = False
    """Whether the GPUs share one model; otherwise each holds a copy."""

    @property
    def sharers(self) -> int:
        """Return the number of processes that share a model."""
        return self.gpus if self.shared else 1


@dataclass(frozen=True)
class RunPlan:
    """The needs of a run."""

    backbone: str
    script: str
    hardware: Hardware
    counted: str
    """How the tokens of rows were counted."""
    rows: int
    longest: RowSize
    micro_batch: int
    """Rows of one forward pass of one process, if all are as long as the longest."""
    checkpointing: bool
    attention: str
    """Attention of text and vision; that of the vision tower depends on what is installed here."""
    memory: StepMemory
    reserve: int
    buckets: int
    """Bytes of gradients on their way between GPUs."""
    tokens_per_step: int
    steps: int | None
    seconds: float | None
    advice: str | None
    """What to change if the run does not fit."""

    @property
    def total(self) -> int:
        """Return the bytes that one process needs."""
        return self.memory.total + self.reserve + self.buckets

    @property
    def fits(self) -> bool:
        """Return whether the memory is enough."""
        return self.total <= self.hardware.memory * GIB

    def parts(self) -> dict[str, int]:
        """Return the bytes of each part."""
        memory = self.memory
        names = (
            *("weights", "adapter", "gradients", "optimizer", "gathered"),
            *("activations", "logits", "pictures", "workspace"),
        )
        parts = {name: int(getattr(memory, name)) for name in names}
        return {**parts, "buckets": self.buckets, "reserve": self.reserve}


def plan_run(
    recipe: str,
    keys: Sequence[str],
    *,
    gpus: int,
    memory: float | None,
    rate: float | None,
    shared: bool = False,
    tokens_per_row: int | None = None,
    pixels_per_row: int = 0,
    num_rows: int | None = None,
) -> RunPlan:
    """Plan a run.

    Args:
        recipe: File or name of a recipe, or name of a task.
        keys: ``key.path=value`` of the recipe.
        gpus: Number of GPUs; 0: the CPU.
        memory: GiB of one GPU, or of the machine; default 78, or this machine's.
        rate: Tokens that one GPU trains on in a second.
        shared: The GPUs share one model.
        tokens_per_row: Tokens of a row; default those of the recipe's files.
        pixels_per_row: Pixels of the pictures of a row, beside ``tokens_per_row``.
        num_rows: Number of training rows, beside ``tokens_per_row``.

    Raises:
        CustosError: If the recipe, its backbone or its data cannot be read, or so many GPUs cannot
            train it.
    """
    if shared and gpus < 2:
        raise CustosError("--shared: give the number of GPUs that share the model: --gpus N")
    path = find_recipe(recipe_of_task(recipe) or recipe)
    script = script_of(path, read_values(path, keys))
    parsed = parse_recipe(recipe_model(script), path, keys)
    if not isinstance(parsed, Recipe):
        raise CustosError(f"{recipe}: only recipes that train an adapter can be planned")
    if isinstance(parsed, CritiqueRecipe):
        raise CustosError(f"{recipe}: steps of TRL's trainers cannot be planned; try --dry-run 2")
    check_processes(parsed, {"WORLD_SIZE": str(gpus or 1), FSDP: str(shared)})
    parsed = with_shape_of_init_if_there(parsed)
    config, encoder = _backbone(parsed)
    if tokens_per_row is None:
        rows = _rows_of_files(parsed, script, config, encoder)
        counted, count = _way_of_counting(encoder), len(rows)
    else:
        limits = pixel_limits(parsed, config, encoder)
        rows = made_up_rows(script, tokens_per_row, pixels_per_row, num_rows or 1, config, limits)
        counted, count = "--tokens-per-row", num_rows or 0
    hardware = Hardware(gpus, memory or (MEMORY_OF_GPU if gpus else _machine_memory()), shared)
    planner = _Planner(parsed, script, config, rows, hardware)
    tokens = planner.tokens_per_step
    steps = planner.steps if count else parsed.optim.max_steps
    chosen = planner.needs(planner.micro_batch, parsed.run.gradient_checkpointing)
    return RunPlan(
        backbone=parsed.backbone,
        script=script,
        hardware=hardware,
        counted=counted,
        rows=count,
        longest=longest(rows),
        micro_batch=planner.micro_batch,
        checkpointing=parsed.run.gradient_checkpointing,
        attention=planner.attention,
        memory=chosen,
        reserve=planner.reserve,
        buckets=planner.buckets(chosen),
        tokens_per_step=tokens,
        steps=steps,
        seconds=tokens * steps / (rate * max(1, gpus)) if rate and steps else None,
        advice=planner.advice(chosen),
    )


def with_shape_of_init_if_there(recipe: Recipe) -> Recipe:
    """Return the recipe with the shape of the adapter it starts from, if that exists already."""
    try:
        return with_shape_of_init(recipe)
    except Missing:  # an earlier stage that has yet to run
        return recipe


@dataclass(frozen=True)
class _Planner:
    """Counts the memory of a run, and of the same run with other keys."""

    recipe: Recipe
    script: str
    config: Any
    rows: Sequence[RowSize]
    hardware: Hardware

    @property
    def tokens_per_step(self) -> int:
        """Return the tokens of an optimizer step; rows of a forward pass share the instruction."""
        mean = sum(row.length for row in self.rows) / len(self.rows)
        readers = 1 if self.hardware.shared else self.micro_batch
        return round(self.recipe.optim.batch_size * (mean + self.rows[0].instruction / readers))

    @property
    def steps(self) -> int:
        """Return the optimizer steps of the run."""
        optim = self.recipe.optim
        every = steps_of_epoch(self.rows, self.recipe) * optim.epochs
        return min(every, optim.max_steps or every)

    @property
    def micro_batch(self) -> int:
        """Return the most rows of one forward pass of a process."""
        return self.most_rows(self.recipe.optim.token_budget)

    def most_rows(self, token_budget: int) -> int:
        """Return how many of the longest rows a forward pass has under a budget of tokens."""
        optim, row = self.recipe.optim, longest(self.rows)
        # Rows that share a model read their own instruction.
        width = row.length + row.prompts * row.instruction * self.hardware.shared
        share = -(-optim.batch_size // max(1, self.hardware.gpus))  # rounded up, as cut_step does
        return max(1, min(token_budget // width, share))

    @property
    def reserve(self) -> int:
        """Return the bytes that a process takes beside its tensors."""
        return RESERVE[self.hardware.gpus > 0]

    def buckets(self, memory: StepMemory) -> int:
        """Return the bytes of gradients on their way between GPUs that each hold a copy."""
        return memory.gradients if self.hardware.gpus > 1 and not self.hardware.shared else 0

    def fits(self, memory: StepMemory) -> bool:
        """Return whether one device has the memory."""
        return self._total(memory) <= self.hardware.memory * GIB

    @property
    def attention(self) -> str:
        """Return the attention that a run on this machine would choose."""
        dtype = torch.bfloat16 if self.is_bfloat16 else torch.float32
        is_text = self.config.model_type in TEXT_FAMILIES
        chosen = choose_attention(self.device.type, dtype, installed_flash(), text_alone=is_text)
        return attention_line(chosen)

    @property
    def device(self) -> torch.device:
        """Return the kind of device that trains."""
        return torch.device("cuda" if self.hardware.gpus > 0 else "cpu")

    @property
    def is_bfloat16(self) -> bool:
        """Return whether the run computes in bfloat16."""
        return self.recipe.run.precision == "bf16" and computes_bfloat16(self.device)

    def needs(self, micro_batch: int, checkpointing: bool) -> StepMemory:
        """Return the memory of the longest rows in one micro-batch."""
        row, run = longest(self.rows), self.recipe.run
        instruction = 0 if self.hardware.shared else row.instruction
        key = {"gradient_checkpointing": checkpointing}
        return step_memory(
            self.config,
            self.recipe.model_copy(update={"run": run.model_copy(update=key)}),
            StepSize(
                prompts=micro_batch * row.prompts,
                instruction=instruction,
                tokens=row.tokens + row.instruction - instruction,
                tree=row.tree,
                supervised=row.supervised,
                is_text=self.script == TEXT_SCRIPT,
                patches=row.patches,
            ),
            bf16=self.is_bfloat16,
            gpu=self.device.type == "cuda",
            sharers=self.hardware.sharers,
        )

    def advice(self, memory: StepMemory) -> str | None:
        """Return which key to change for the run to fit; ``None`` if it does."""
        if self.fits(memory):
            return None
        limit = f"{self.hardware.memory:g} GiB"
        fixed = memory.fixed + self.reserve + self.buckets(memory)
        if fixed < self.hardware.memory * GIB:
            for keys, micro_batch, checkpointing in self._changes(memory):
                changed = self.needs(micro_batch, checkpointing)
                if self.fits(changed):
                    return f"set {keys}: {in_gib(self._total(changed))} of {limit}"
        needing = "weights need" if fixed > self.hardware.memory * GIB else "a single row needs"
        if self.hardware.shared:
            return (
                f"take more GPUs, GPUs with more memory, or a smaller backbone: {needing} more "
                f"than {limit}"
            )
        return (
            f"set backbone to a smaller checkpoint, take devices with more memory, or let several "
            f"GPUs share the model (--shared): every device holds the whole model, and {needing} "
            f"more than {limit}"
        )

    def _changes(self, memory: StepMemory) -> Iterator[tuple[str, int, bool]]:
        """Yield keys that save memory, those that cost least time first."""
        checkpointing = self.recipe.run.gradient_checkpointing
        free = self.hardware.memory * GIB - memory.fixed - self.reserve - self.buckets(memory)
        share = free / (memory.total - memory.fixed)
        halves = [half for n in range(1, 20) if (half := self.recipe.optim.token_budget >> n)]
        smaller: dict[int, int] = {}  # the largest of these budgets, by the rows that it allows
        for half in halves:
            smaller.setdefault(self.most_rows(half), half)
        estimated = [n for n in smaller if n <= share * self.micro_batch and n < self.micro_batch]
        for size in dict.fromkeys([*estimated[:1], *[n for n in smaller if n == 1]]):
            if size < self.micro_batch:
                yield f"optim.token_budget={smaller[size]}", size, checkpointing
        if not checkpointing:
            key = "run.gradient_checkpointing=true"
            yield key, self.micro_batch, True
            if 1 in smaller:
                yield f"{key} optim.token_budget={smaller[1]}", 1, True

    def _total(self, memory: StepMemory) -> int:
        return memory.total + self.reserve + self.buckets(memory)


def in_gib(size: float) -> str:
    """Return a number of bytes as text in GiB, in MiB below one."""
    return f"{size / GIB:.2f} GiB" if size >= GIB else f"{size / 2**20:.1f} MiB"


def _backbone(recipe: Recipe) -> tuple[Any, Encoder]:
    """Return the configuration of the backbone, and what counts its tokens."""
    name = recipe.backbone
    try:
        backbone = load_backbone(name, weights=False)
    except Missing:
        characters = CharacterEncoder(recipe.run.response_budget)
        if name in PUBLISHED or (Path(name) / CONFIG).is_file():  # a folder without a tokenizer
            return backbone_config(name), characters
        raise
    backbone = backbone.with_pixels(recipe.run.min_pixels, recipe.run.max_pixels)
    return backbone.model.config, Encoder(backbone, recipe.run.response_budget)


def backbone_config(name: str) -> Any:
    """Return the configuration of a backbone, from the shapes known here if it is one of them.

    Raises:
        CustosError: If it has none, or is of a family that is not supported.
    """
    from transformers import AutoConfig, PretrainedConfig

    if name in PUBLISHED:
        return published_config(name)
    if not (Path(name) / CONFIG).is_file():
        return load_backbone(name, weights=False).model.config
    check_config(name, PretrainedConfig.get_config_dict(name)[0])
    return AutoConfig.from_pretrained(name)


def _way_of_counting(encoder: Encoder) -> str:
    is_exact = not isinstance(encoder, CharacterEncoder)
    return "tokenizer" if is_exact else f"{CHARACTERS_PER_TOKEN} characters a token"


def _rows_of_files(recipe: Recipe, script: str, config: Any, encoder: Encoder) -> list[RowSize]:
    try:
        return row_sizes(recipe, script, config, encoder)
    except Missing as error:
        raise FieldError(
            "data", f"{error}; or plan without data: --tokens-per-row 500 --rows 10000"
        ) from None


def _machine_memory() -> float:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / GIB
