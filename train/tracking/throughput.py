"""Speed of training: tokens, padding, arithmetic against the device's peak, memory.

The arithmetic of a step is counted as in Kaplan et al. (2020, section 2.1) and PaLM (Chowdhery et
al. 2022, appendix B). A weight costs 2 operations a token forward. Backward it costs 2 for the
gradient of its input and 2 for its own. So trained weights cost 6 and frozen ones 4, as they need
no gradient of their own. Attention costs ``12 * heads * head_dim * keys`` a token and layer, all
keys of a row counted, those that a causal mask hides too. The vision tower is frozen and runs
forward only: 2 operations a weight and patch, and ``4 * hidden * keys`` a patch and layer. The
vocabulary projection counts where logits are computed. What gradient checkpointing computes twice
counts once, as in PaLM.
"""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, TextIO

import torch
from accelerate import Accelerator
from torch import Tensor

from judging.models.adapters import num_weights
from judging.scoring.tree_batch import TreeBatch, TreeModel

TERA, GIGA = 1e12, 1e9
LEAST_SECONDS = 0.05
"""Time over which the peak is measured ..."""
SIZES = {"cpu": 1024, "cuda": 8192}
"""... by products of square matrices with so many rows."""


@dataclass(frozen=True)
class StepCost:
    """Floating-point operations of training, forward and backward.

    Args:
        per_token: Operations of a token in all layers, attention left out.
        per_logits: Operations of the vocabulary projection at one position.
        per_pair: Operations of attention for each pair of a token and a key in its row.
        per_patch: Operations of the vision tower for a patch, attention left out.
        per_patch_pair: Operations of attention for each pair of patches of a picture, in the
            layers in which all patches see each other.
        per_window_patch: Operations of attention for a patch in the layers that have windows.
    """

    per_token: float
    per_logits: float
    per_pair: float
    per_patch: float
    per_patch_pair: float
    per_window_patch: float

    @classmethod
    def of_model(cls, tree_model: TreeModel) -> StepCost:
        """Count the operations of a model from its weights and its configuration."""
        config = tree_model.backbone.config
        text: Any = config.get_text_config()
        vision: Any = getattr(config, "vision_config", None)
        per_token, per_patch = 0.0, 0.0
        for name, parameter in tree_model.named_parameters():
            if parameter.dim() < 2 or "embed" in name and "patch_embed" not in name:
                continue  # norms and biases; tables that are looked up
            if ".visual." in name:
                merged = ".merger" in name or ".deepstack_merger" in name
                share = 1 / vision.spatial_merge_size**2 if merged else 1
                per_patch += 2 * share * num_weights(parameter)
            elif "lm_head" not in name:
                used = num_weights(parameter)
                if ".experts." in name:  # a token passes those it is sent to
                    used = parameter.numel() * text.num_experts_per_tok / text.num_experts
                per_token += (6 if parameter.requires_grad else 4) * used
        head_dim = getattr(text, "head_dim", None) or text.hidden_size // text.num_attention_heads
        kinds = getattr(text, "layer_types", None) or ["full_attention"] * text.num_hidden_layers
        layers = sum(kind != "linear_attention" for kind in kinds)
        of_text = (
            per_token,
            4 * tree_model.output_embedding.numel(),
            12 * layers * text.num_attention_heads * head_dim,
        )
        if vision is None:
            return cls(*of_text, 0, 0, 0)
        whole = len(getattr(vision, "fullatt_block_indexes", None) or range(vision.depth))
        width = getattr(vision, "embed_dim", vision.hidden_size)  # Qwen2-VL names it so
        window = float(getattr(vision, "window_size", 0) / vision.patch_size) ** 2
        return cls(
            *of_text, per_patch, 4 * whole * width, 4 * (vision.depth - whole) * width * window
        )

    def operations(self, batch: TreeBatch, tokens_by_row: Tensor) -> float:
        """Count the operations of a batch."""
        prefix, tokens = len(batch.prefix_ids), float(tokens_by_row.sum())
        pairs = prefix**2 + float((tokens_by_row * (tokens_by_row + prefix)).sum())
        grids: Iterable[Any] = batch.vision.get("image_grid_thw", ())
        patches = [float(grid.prod()) for grid in grids]
        operations: float = (
            self.per_token * (prefix + tokens)
            + self.per_logits * batch.slots.numel()
            + self.per_pair * pairs
            + (self.per_patch + self.per_window_patch) * sum(patches)
            + self.per_patch_pair * sum(count**2 for count in patches)
        )
        return operations


class Throughput:
    """Counts what training does between two reports, on all processes.

    Attributes:
        operations: Floating-point operations of this process since the last report.
    """

    def __init__(
        self,
        tree_model: TreeModel,
        accelerator: Accelerator,
        pad_id: int,
        peak_tflops: float | None,
    ) -> None:
        self.accelerator, self.pad_id, self.peak_tflops = accelerator, pad_id, peak_tflops
        self.cost = StepCost.of_model(tree_model)
        dtype = tree_model.output_embedding.dtype
        self.dtype = torch.bfloat16 if accelerator.mixed_precision == "bf16" else dtype
        self._reset()

    def _reset(self) -> None:
        self.tokens = self.columns = self.padding = self.operations = self.waited = 0.0
        self.norms: list[float] = []

    def add_batch(self, batch: TreeBatch) -> None:
        """Count a micro-batch that this process trains on, before it is moved to the device."""
        tokens_by_row = (batch.input_ids != self.pad_id).sum(1)
        tokens, columns = float(tokens_by_row.sum()), batch.input_ids.numel()
        self.tokens += tokens + len(batch.prefix_ids)
        self.columns += columns + len(batch.prefix_ids)
        self.padding += columns - tokens
        self.operations += self.cost.operations(batch, tokens_by_row)

    def add_step(self, gradient_norm: float, waited: float) -> None:
        """Count a step: the norm of its gradient before clipping, and seconds without data."""
        self.norms.append(gradient_norm)
        self.waited += waited

    def report(self, seconds: float) -> dict[str, float]:
        """Measure the figures since the last report; every process must ask for them.

        They are ``grad_norm`` (mean over the steps), ``tokens_per_second`` and ``padded_share`` of
        all processes, ``mfu``, ``data_wait_share`` (mean of the processes) and ``peak_memory_gb``
        (the process with the most).
        """
        accelerator, seconds = self.accelerator, max(seconds, 1e-9)
        peak = self.peak_tflops or measured_peak(accelerator.device.type, self.dtype)
        sums = [self.tokens, self.columns, self.padding, self.operations, self.waited]
        memory = peak_memory(accelerator.device) / GIGA
        values = torch.tensor([*sums, memory], device=accelerator.device)
        by_process = accelerator.gather(values[None]).double().cpu()
        tokens, columns, padding, operations, waited, _ = by_process.sum(0).tolist()
        count, norms = accelerator.num_processes, self.norms
        self._reset()
        return {
            "grad_norm": sum(norms) / max(1, len(norms)),
            "tokens_per_second": tokens / seconds,
            "padded_share": padding / max(1, columns),
            "mfu": operations / (seconds * peak * TERA * count),
            "data_wait_share": min(1.0, waited / (seconds * count)),
            "peak_memory_gb": by_process[:, -1].max().item(),
        }

    def describe_peak(self) -> str:
        """Describe in a line the peak that ``mfu`` is a share of."""
        if self.peak_tflops:
            return f"MFU is a share of {self.peak_tflops:g} TFLOP/s a device (run.peak_tflops)"
        peak = measured_peak(self.accelerator.device.type, self.dtype)
        return (
            f"MFU is a share of {peak:.3g} TFLOP/s a device, measured with a matrix product in "
            f"{str(self.dtype).removeprefix('torch.')}; run.peak_tflops states another peak"
        )


@lru_cache
def measured_peak(device: str, dtype: torch.dtype) -> float:
    """Measure how fast a device multiplies two square matrices, in TFLOP/s; once for a process.

    A CPU's time is this process's own, or beside other programs its peak would be too low for a
    whole run.
    """
    size = SIZES.get(device, 4096)
    generator = torch.Generator(device).manual_seed(0)  # the run's own random state stays
    left, right = (
        torch.randn(size, size, device=device, generator=generator).to(dtype) for _ in range(2)
    )
    is_cpu, threads = device == "cpu", torch.get_num_threads()
    best, spent = float("inf"), 0.0
    while spent < LEAST_SECONDS or best == spent:  # at least twice: the first one is slow
        _wait(device)
        started = time.process_time() / threads if is_cpu else time.perf_counter()
        left @ right
        _wait(device)
        taken = (time.process_time() / threads if is_cpu else time.perf_counter()) - started
        best, spent = min(best, taken), spent + taken
    return 2 * size**3 / best / TERA


def _wait(device: str) -> None:
    if device == "cuda":
        torch.cuda.synchronize()


@dataclass
class Part:
    """The seconds and the peak memory of one part of a run."""

    times: int = 0
    seconds: float = 0.0
    peak: int = 0
    """Bytes at the largest moment: of the GPU's tensors, or of the whole process on a CPU."""


class Parts:
    """The parts of a dry run, by name, in the order of their first beginning.

    Use :data:`PARTS`: memory is measured of a whole process, and so is this.
    """

    def __init__(self) -> None:
        self.by_name: dict[str, Part] | None = None
        self._open: list[str] = []
        self._since = 0.0
        self._screen: TextIO | None = None
        self.failed: str | None = None

    def start(self, *, silent: bool) -> None:
        """Measure from now on, and show the name of each part as it begins."""
        self.by_name, self._open, self.failed = {}, [], None
        self._screen = None if silent else sys.stderr

    def stop(self) -> dict[str, Part]:
        """Measure no longer; return what was measured."""
        measured, self.by_name = self.by_name or {}, None
        return measured

    @contextmanager
    def measured(self, name: str) -> Iterator[None]:
        """Measure the block as a part. A part that begins within another one interrupts it."""
        if self.by_name is None:
            yield
            return
        if name not in self.by_name and self._screen:
            self._screen.write(f"dry run: {name}\n")
        self._close()
        self._open.append(name)
        self.by_name.setdefault(name, Part()).times += 1
        self._begin()
        try:
            yield
        except BaseException:
            self.failed = self.failed or name
            raise
        finally:
            if self.by_name is not None:
                self._close()
                self._open.pop()
                self._begin()

    def _begin(self) -> None:
        gc.collect()
        reset_peak()
        self._since = time.monotonic()

    def _close(self) -> None:
        if self._open and self.by_name is not None:
            part = self.by_name[self._open[-1]]
            part.seconds += time.monotonic() - self._since
            device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
            part.peak = max(part.peak, peak_memory(device))


def reset_peak() -> None:
    """Forget the largest memory so far, where the system allows it."""
    if torch.cuda.is_available():
        torch.cuda.reset_peak_memory_stats()
        return
    with suppress(OSError):  # another system: the peaks of parts are then those of the run so far
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


def peak_memory(device: torch.device) -> int:
    """Measure the most bytes that this process has held: on a GPU, or resident in main memory."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    return process_peak(Path("/proc/self/status"))


def process_peak(status: Path) -> int:
    """Read the largest resident memory of a process from ``/proc/PID/status``; else 0."""
    try:
        lines = status.read_text(encoding="ascii").splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:")), 0)


PARTS = Parts()
