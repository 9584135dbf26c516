"""The plan of a training run: sizes of its rows, memory and time, and what to change."""

from __future__ import annotations

import copy
import os
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from accelerate import Accelerator
from accelerate.utils import gather_object
from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import smart_resize

from judging.errors import FieldError, errors_at
from judging.files.pictures import PictureSize, PixelLimits, picture_size
from judging.models.attention import attention_line, choose_attention
from judging.models.backbones import empty_model
from judging.models.checkpoints import TEXT_FAMILIES, no_pictures
from judging.models.devices import CGROUP, computes_bfloat16
from judging.scoring.label_tree import LabelTree
from judging.scoring.prompts import Encoder
from judging.scoring.tree_batch import TreeModel
from judging.tasks import get_task
from judging.types import JudgeRequest, LabelledExample
from train.loop.accelerator import processes_here
from train.loop.checkpoint import newest_settings
from train.loop.objective import TextModel
from train.loop.sharding import is_sharded
from train.plan.step_memory import RowSize, StepMemory, step_memory
from train.rows.data import ReplaySection
from train.rows.rows import Rows, Supervision
from train.setup.recipe import Recipe
from train.setup.run_log import RUN_LOG

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


class CharacterEncoder(Encoder):
    """Stands in for an encoder where no tokenizer can be had: some characters are a token."""

    def __init__(self, response_budget: int) -> None:
        self.response_budget = response_budget
        self.shows_all_pictures = False

    def text(self, text: str) -> list[int]:
        """Give as many numbers as the text has tokens, equal where the text is."""
        size = CHARACTERS_PER_TOKEN
        return [zlib.crc32(text[i : i + size].encode()) for i in range(0, len(text), size)]

    data = text


def pixel_limits(recipe: Recipe, config: Any, encoder: Encoder) -> PixelLimits:
    """Find between which areas a run scales pictures, with or without the checkpoint's files."""
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
    """Measure training rows."""
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
    counts = ("instruction", "tokens", "prompts", "supervised", "patches")
    return replace(deepest, **{name: max(getattr(row, name) for row in rows) for name in counts})


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


GIB = 2**30
RESERVE = {True: GIB, False: GIB // 2}
"""Bytes that a process takes beside its tensors, on a GPU (CUDA's context and libraries) and on a
CPU (Python and its libraries)."""
GAPS = {True: 0.3, False: 0.9}
"""On a CPU, by whether it computes in bfloat16: the share that the C library keeps beside what a
step makes of its rows, gaps between tensors. Measured in processes of two backbones, with rows of
140 to 360 tokens: .25 to .37 of it in bfloat16, .65 to 1.01 in float32."""
MEMORY_OF_GPU = 78.0
"""GiB of an H100 for tensors and :data:`RESERVE`: it has 79.6, and the driver takes a part."""
SHARE_TO_FILL = 0.9
"""Share of the memory that a run without checkpointing may plan to fill: no plan is exact."""
SMALL = 10**9
"""Parameters below which a backbone on a CPU is taken to have the memory it needs: a plan takes
seconds."""


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
    def bytes(self) -> float:
        """Convert the memory to bytes."""
        return self.memory * GIB

    @property
    def device(self) -> torch.device:
        """Name the kind of device that trains."""
        return torch.device("cuda" if self.gpus else "cpu")


@dataclass(frozen=True)
class RunPlan:
    """The needs of a run, and of the same run with other keys."""

    recipe: Recipe
    is_text: bool
    """The answer is learnt as text."""
    config: Any
    """Configuration of the backbone."""
    rows: Sequence[RowSize]
    hardware: Hardware
    num_rows: int = 0
    """Number of training rows; 0 if it is not known."""
    counted: str = ""
    """How their tokens were counted."""
    rate: float | None = None
    """Tokens that one GPU trains on in a second, if known."""

    @cached_property
    def longest(self) -> RowSize:
        """Compute a size that no row exceeds."""
        return longest(self.rows)

    @property
    def micro_batch(self) -> int:
        """Count the rows of one forward pass of a process, if all are as long as the longest."""
        return self._most_rows(self.recipe.optim.token_budget)

    @property
    def _share(self) -> int:
        """Count the rows of a step that one process gets, rounded up as ``cut_step`` does."""
        return -(-self.recipe.optim.batch_size // max(1, self.hardware.gpus))

    @property
    def _widest(self) -> RowSize:
        """Compute the longest row as a forward pass holds it.

        Rows that share a model read their own instruction.
        """
        row = self.longest
        if not self.hardware.shared:
            return row
        return replace(row, instruction=0, tokens=row.tokens + row.instruction)

    def _most_rows(self, token_budget: int) -> int:
        return max(1, min(token_budget // self._widest.length, self._share))

    def _largest(self, token_budget: int) -> Iterator[RowSize]:
        """Yield the micro-batches that may take most memory within a budget of tokens.

        One has as many of the longest rows as fit. If that leaves tokens, another has one row more,
        all shorter, and uses them all. On a CPU either can take more: its attention keeps more for
        one long row than for two halves of it.
        """
        row, count = self._widest, self._most_rows(token_budget)
        yield replace(row, prompts=count * row.prompts)
        if count < self._share and count * row.length < token_budget:
            prompts = (count + 1) * row.prompts
            shorter = token_budget // prompts - len(row.tree.node_tokens)
            patches = 0
            if row.patches:  # a picture's token covers a square of patches
                square = self.config.vision_config.spatial_merge_size**2
                patches = min(row.patches, shorter * square)
            if shorter > 0:
                yield replace(row, tokens=shorter, patches=patches, prompts=prompts)

    @property
    def tokens_per_step(self) -> int:
        """Count the tokens of an optimizer step; rows of a forward pass share the instruction."""
        mean = sum(row.length for row in self.rows) / len(self.rows)
        readers = 1 if self.hardware.shared else self.micro_batch
        return round(self.recipe.optim.batch_size * (mean + self.rows[0].instruction / readers))

    @property
    def steps(self) -> int | None:
        """Count the optimizer steps of the run; ``None`` if they are not known."""
        optim, replay = self.recipe.optim, getattr(self.recipe, "replay", None)
        if not self.num_rows:
            return optim.max_steps
        is_mixed = isinstance(replay, ReplaySection) and replay.train and replay.rho > 0
        rubrics = Counter(row.rubric for row in self.rows)
        sizes = [len(self.rows)] if is_mixed else rubrics.values()  # else a step has one rubric
        every = sum(-(-size // optim.batch_size) for size in sizes) * optim.epochs
        return min(every, optim.max_steps or every)

    @property
    def seconds(self) -> float | None:
        """Estimate how long the steps take; ``None`` if it is not known."""
        if not self.rate or not self.steps:
            return None
        return self.tokens_per_step * self.steps / (self.rate * max(1, self.hardware.gpus))

    @cached_property
    def checkpointing(self) -> bool:
        """Decide whether activations are computed again: as the recipe says, or memory decides."""
        chosen = self.recipe.run.gradient_checkpointing
        if chosen != "auto":
            return chosen
        if self.is_small:
            return False
        return self.without_checkpointing.total > SHARE_TO_FILL * self.hardware.bytes

    @cached_property
    def is_small(self) -> bool:
        """Tell whether this is a small backbone on a CPU."""
        return not self.hardware.gpus and empty_model(self.config).num_parameters() < SMALL

    @property
    def reason(self) -> str | None:
        """Explain what memory decided about checkpointing; ``None`` if the recipe says it."""
        if self.recipe.run.gradient_checkpointing != "auto":
            return None
        if self.is_small:
            return "a small backbone on a CPU"
        needed = in_gib(self.without_checkpointing.total)
        limit = f"{self.hardware.memory:.3g} GiB"
        return f"without it {needed} of {limit}, of which {SHARE_TO_FILL * 100:.0f} % may be filled"

    @property
    def attention(self) -> str:
        """Choose the attention of text and vision; the vision tower's is what is installed here."""
        dtype = torch.bfloat16 if self._is_bfloat16 else torch.float32
        return attention_line(choose_attention(self.config, self.hardware.device, dtype))

    @property
    def _is_bfloat16(self) -> bool:
        return self.recipe.run.precision == "bf16" and computes_bfloat16(self.hardware.device)

    @cached_property
    def memory(self) -> StepMemory:
        """Count the memory of a step."""
        if not self.checkpointing:
            return self.without_checkpointing
        return self._needs(self.recipe.optim.token_budget, checkpointing=True)

    @cached_property
    def without_checkpointing(self) -> StepMemory:
        """Count the memory of a step that keeps all activations."""
        return self._needs(self.recipe.optim.token_budget, checkpointing=False)

    @property
    def fits(self) -> bool:
        """Tell whether the memory is enough."""
        return self.memory.total <= self.hardware.bytes

    def _needs(self, token_budget: int, checkpointing: bool) -> StepMemory:
        """Count the memory of the largest micro-batch within a budget of tokens."""
        hardware, recipe = self.hardware, self.recipe.with_checkpointing(checkpointing)
        sharers = hardware.gpus if hardware.shared else 1
        memory = max(
            (
                step_memory(
                    self.config,
                    recipe,
                    size,
                    is_text=self.is_text,
                    bf16=self._is_bfloat16,
                    gpu=hardware.gpus > 0,
                    sharers=sharers,
                )
                for size in self._largest(token_budget)
            ),
            key=lambda each: each.total,
        )
        return replace(
            memory,
            reserve=RESERVE[hardware.gpus > 0],
            buckets=memory.gradients if hardware.gpus > 1 and not hardware.shared else 0,
            gaps=0 if hardware.gpus else round(GAPS[self._is_bfloat16] * memory.of_rows),
        )

    @cached_property
    def advice(self) -> str | None:
        """Advise which key to change for the run to fit; ``None`` if it does."""
        if self.fits:
            return None
        limit, fixed = f"{self.hardware.memory:g} GiB", self.memory.total - self.memory.of_rows
        fixed -= self.memory.gaps
        if fixed < self.hardware.bytes:
            for keys, token_budget, checkpointing in self._changes(fixed):
                changed = self._needs(token_budget, checkpointing).total
                if changed <= self.hardware.bytes:
                    return f"set {keys}: {in_gib(changed)} of {limit}"
        needing = "weights need" if fixed > self.hardware.bytes else "a single row needs"
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

    def _changes(self, fixed: int) -> Iterator[tuple[str, int, bool]]:
        """Yield keys that save memory, those that cost least time first.

        ``fixed`` are the bytes that do not depend on the rows.
        """
        share = (self.hardware.bytes - fixed) / (self.memory.total - fixed)
        row, budget = self._widest.length, self.recipe.optim.token_budget
        full = max(row, min(budget, self._share * row))
        halves = [budget]
        while halves[-1] > row:  # with a budget of no more, a row is alone
            halves.append(halves[-1] // 2)
        smaller = [half for half in halves[1:] if half < full]
        fitting = [half for half in smaller if half <= share * full]
        for half in dict.fromkeys([*fitting[:1], *smaller[-1:]]):
            yield f"optim.token_budget={half}", half, self.checkpointing
        if not self.checkpointing:
            key = "run.gradient_checkpointing=true"
            yield key, budget, True
            for half in smaller[-1:]:
                yield f"{key} optim.token_budget={half}", half, True


def in_gib(size: float) -> str:
    """Write a number of bytes in GiB, in MiB below one."""
    return f"{size / GIB:.2f} GiB" if size >= GIB else f"{size / 2**20:.1f} MiB"


def gpu_memory(device: torch.device | None = None) -> float:
    """Look up the GiB of a GPU of this machine."""
    return float(torch.cuda.get_device_properties(device).total_memory / GIB)


def machine_memory(cgroup: Path = CGROUP) -> float:
    """Look up the GiB of this machine, or of its container if that may use less."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for limit in (cgroup / "memory.max", cgroup / "memory" / "memory.limit_in_bytes"):
        with suppress(OSError, ValueError):  # no such file, or "max": no limit
            memory = min(memory, int(limit.read_text(encoding="ascii")))
    return memory / GIB


def decide_checkpointing(
    recipe: Recipe,
    rows: Rows,
    config: Any,
    model_class: type[TreeModel],
    accelerator: Accelerator,
) -> Recipe:
    """Decide about ``run.gradient_checkpointing: auto``, alike on all processes.

    It stays on in a run whose newest checkpoint has it on. Otherwise the smallest memory decides.
    The result is the recipe with true or false; the log says what decided.
    """
    if recipe.run.gradient_checkpointing != "auto":
        return recipe
    on_gpu, num_processes = accelerator.device.type == "cuda", accelerator.num_processes
    on_cpu = machine_memory() / processes_here(accelerator)
    memory = gpu_memory(accelerator.device) if on_gpu else on_cpu
    kept = newest_settings(recipe.run.output) if accelerator.is_main_process else {}
    everywhere = gather_object([(kept.get("run.gradient_checkpointing"), memory)])
    if everywhere[0][0] is True:
        RUN_LOG.write("gradient checkpointing: on, as so far")
        return recipe.with_checkpointing(True)
    memory = min(memory for _, memory in everywhere)
    hardware = Hardware(num_processes if on_gpu else 0, memory, is_sharded(accelerator))
    config = copy.deepcopy(config)  # a plan sets the attention
    plan = RunPlan(recipe, issubclass(model_class, TextModel), config, (), hardware)
    if not plan.is_small:
        plan = replace(plan, rows=largest_rows(rows, recipe, config))
    state = "on" if plan.checkpointing else "off"
    RUN_LOG.write(f"gradient checkpointing: {state} ({plan.reason})")
    return recipe.with_checkpointing(plan.checkpointing)
