"""The plan of a training run: what it trains, its memory and time, and what to change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from judging.errors import CustosError, FieldError, Missing
from judging.models.backbones import load_backbone
from judging.models.checkpoints import CONFIG, check_config
from judging.scoring.prompts import Encoder
from train.methods import method_of
from train.methods.base import JudgeMethod
from train.methods.own_critiques import OwnCritiques
from train.plan.planner import GIB, MEMORY_OF_GPU, Hardware, Planner, machine_memory
from train.plan.published import PUBLISHED, published_config
from train.plan.row_sizes import (
    CHARACTERS_PER_TOKEN,
    CharacterEncoder,
    RowSize,
    longest,
    made_up_rows,
    pixel_limits,
    row_sizes,
)
from train.plan.step_memory import StepMemory
from train.setup.engines import FSDP, check_processes
from train.setup.recipe import Recipe, parse_recipe, read_values
from train.setup.recipe_files import find_recipe, recipe_of_task
from train.setup.starting_adapter import with_shape_of_init


@dataclass(frozen=True)
class RunPlan:
    """The needs of a run."""

    backbone: str
    hardware: Hardware
    counted: str
    """How the tokens of rows were counted."""
    rows: int
    longest: RowSize
    micro_batch: int
    """Rows of one forward pass of one process, if all are as long as the longest."""
    checkpointing: bool
    reason: str | None
    """Why memory decided so about checkpointing; ``None`` if the recipe says it."""
    batch_size: int
    """Rows of an optimizer step."""
    attention: str
    """Attention of text and vision; that of the vision tower depends on what is installed here."""
    memory: StepMemory
    reserve: int
    buckets: int
    """Bytes of gradients on their way between GPUs."""
    gaps: int
    """Bytes that the C library keeps between tensors on a CPU."""
    tokens_per_step: int
    steps: int | None
    seconds: float | None
    advice: str | None
    """What to change if the run does not fit."""

    @property
    def total(self) -> int:
        """Return the bytes that one process needs."""
        return self.memory.total + self.reserve + self.buckets + self.gaps

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
        return {**parts, "buckets": self.buckets, "gaps": self.gaps, "reserve": self.reserve}


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
    method = method_of(path, read_values(path, keys))
    parsed = parse_recipe(method.recipe_class, path, keys)
    if not isinstance(parsed, Recipe) or not issubclass(method, JudgeMethod):
        raise CustosError(f"{recipe}: only recipes that train an adapter can be planned")
    if issubclass(method, OwnCritiques):
        raise CustosError(f"{recipe}: steps of TRL's trainers cannot be planned; try --dry-run 2")
    check_processes(parsed, {"WORLD_SIZE": str(gpus or 1), FSDP: str(shared)})
    parsed = with_shape_of_init_if_there(parsed)
    config, encoder = _backbone(parsed)
    if tokens_per_row is None:
        rows = _rows_of_files(parsed, method, config, encoder)
        counted, count = _way_of_counting(encoder), len(rows)
    else:
        limits = pixel_limits(parsed, config, encoder)
        rows = made_up_rows(
            tokens_per_row,
            pixels_per_row,
            num_rows or 1,
            config,
            limits,
            prompts=method.prompts,
            is_text=method.learns_text,
        )
        counted, count = "--tokens-per-row", num_rows or 0
    hardware = Hardware(gpus, memory or (MEMORY_OF_GPU if gpus else machine_memory()), shared)
    planner = Planner(parsed, method.learns_text, config, rows, hardware)
    tokens = planner.tokens_per_step
    steps = planner.steps if count else parsed.optim.max_steps
    checkpointing = planner.checkpointing
    chosen = (
        planner.needs(planner.micro_batch, checkpointing=True)
        if checkpointing
        else planner.without_checkpointing
    )
    return RunPlan(
        backbone=parsed.backbone,
        hardware=hardware,
        counted=counted,
        rows=count,
        longest=longest(rows),
        micro_batch=planner.micro_batch,
        checkpointing=checkpointing,
        reason=planner.reason,
        batch_size=parsed.optim.batch_size,
        attention=planner.attention,
        memory=chosen,
        reserve=planner.reserve,
        buckets=planner.buckets(chosen),
        gaps=planner.gaps(chosen),
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


def _rows_of_files(
    recipe: Recipe, method: type[JudgeMethod], config: Any, encoder: Encoder
) -> list[RowSize]:
    try:
        train = method.read_rows(recipe).train
        return row_sizes(train, method.supervision(encoder), recipe, config)
    except Missing as error:
        raise FieldError(
            "data", f"{error}; or plan without data: --tokens-per-row 500 --rows 10000"
        ) from None
