"""Memory of one training step, counted without weights.

The step itself runs: the same model, adapter, batch layout and backpropagation as in training, on
tensors that have shapes but no data. Every storage is counted while it lives, so the count follows
the code; no formula has to.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from types import MethodType
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from judging.models.adapters import BITS, add_adapter, quantized_layers
from judging.models.attention import choose_attention
from judging.models.backbones import empty_model
from judging.scoring.label_tree import LabelTree
from judging.scoring.packing import lay_out
from judging.scoring.prompts import EncodedPrompt
from judging.scoring.tree_batch import TreeBatch, TreeModel
from losses import token_logprobs
from train.loop.objective import TextModel
from train.loop.sharding import text_layers, tower_parameters
from train.setup.recipe import Recipe

LAYERS_TOGETHER = 2
"""Layers that are whole at the same time: the one that runs, and the next one on its way."""
GRADIENTS_TOGETHER = 3
"""Whole gradients of a layer at the same time: as computed, as sent, and those sent before."""
STATES_OF_ADAMW = 2
"""Numbers that AdamW keeps for each trained one."""
LEAST_IN_8_BITS = 4096
"""Smaller tensors keep moments of 32 bits in the optimizer of 8 bits ..."""
BLOCK = 256
"""... and the others a scale of 32 bits for each block of their moments."""


@dataclass(frozen=True)
class RowSize:
    """The size of a training row, or of rows of one size that share a forward pass."""

    rubric: str
    instruction: int
    """Tokens of the instruction, which all prompts share."""
    tokens: int
    """Tokens after it and before the answer, of the longest prompt."""
    prompts: int
    tree: LabelTree
    """What follows each prompt: the label tree, or one branch with the text of an answer."""
    supervised: int
    """Tokens of each prompt whose logits enter the loss."""
    patches: int = 0
    """Patches of the pictures of one prompt."""

    @property
    def length(self) -> int:
        """Count the tokens after the instruction, of all prompts."""
        return self.prompts * (self.tokens + len(self.tree.node_tokens))


@dataclass(frozen=True)
class StepMemory:
    """Parameters, and bytes of each part of a step on one device where it takes most memory."""

    parameters: int
    """Parameters of the backbone and the adapter."""
    trained: int
    """Parameters of the adapter."""
    weights: int
    """Bytes of the backbone's weights."""
    adapter: int
    gradients: int
    optimizer: int
    gathered: int
    """Layers that are put together where processes share the model, and their gradients."""
    activations: int
    """What the forward pass keeps for backpropagation."""
    logits: int
    """Logits at supervised positions, with their gradients."""
    pictures: int
    """Pixels, and what the vision tower makes of them."""
    workspace: int
    """Intermediate results."""
    buckets: int = 0
    """Gradients on their way between GPUs that each hold a copy."""
    gaps: int = 0
    """What the C library keeps between tensors on a CPU."""
    reserve: int = 0
    """What a process takes beside its tensors."""

    def parts(self) -> dict[str, int]:
        """List the bytes of each part, those of the backbone's weights first."""
        parts = asdict(self)
        del parts["parameters"], parts["trained"]
        return {name: int(size) for name, size in parts.items()}

    @property
    def total(self) -> int:
        """Add up the bytes of all parts."""
        return sum(self.parts().values())

    @property
    def tensors(self) -> int:
        """Add up the bytes of tensors alone."""
        return self.total - self.buckets - self.gaps - self.reserve

    @property
    def of_rows(self) -> int:
        """Add up the bytes of what a step makes of its rows."""
        return self.activations + self.logits + self.pictures + self.workspace


def step_memory(
    config: Any,
    recipe: Recipe,
    size: RowSize,
    *,
    is_text: bool = False,
    bf16: bool,
    gpu: bool,
    sharers: int = 1,
) -> StepMemory:
    """Count the memory of one step of training, whose rows have a ``size`` together.

    An answer that ``is_text`` has its logits computed in chunks. ``bf16`` sets weights and
    computation in bfloat16, else float32; ``gpu`` counts attention and optimizer as on a GPU, else
    as on a CPU. ``sharers`` processes share the model; 1: it is whole on the device.
    """
    dtype = torch.bfloat16 if bf16 else torch.float32
    model = empty_model(config)
    device = torch.device("cuda" if gpu else "cpu")
    model.set_attn_implementation(choose_attention(config, device, dtype))
    pixels, tower = _tower_memory(model, config, size, dtype)
    layers = quantized_layers(model) if recipe.run.quantization else ()
    quantized = [layer.weight.numel() for _, _, layer in layers]
    model = add_adapter(model, **recipe.adapter.model_dump(exclude={"init"}))
    merger = _merger_memory(model, config, size, dtype) if recipe.adapter.merger else 0
    static = list({id(tensor): tensor for tensor in model.parameters()}.values())
    trained = [tensor for tensor in static if tensor.requires_grad]
    shared = SharedModel(model, sharers, dtype)
    in_4_bits = sum(quantized)
    frozen = sum(shared.held(tensor) for tensor in static if not tensor.requires_grad) - in_4_bits
    adapter = sum(shared.held(tensor) * 4 for tensor in trained)
    # One moment of AdamW in 8 bits; small tensors keep 32.
    moment = sum(
        count + 4 * -(-count // BLOCK) if count >= LEAST_IN_8_BITS else 4 * count
        for count in (tensor.numel() for tensor in trained)
    )
    checkpointing = recipe.run.gradient_checkpointing is True
    live, kept, kept_logits = _run_step(model, size, dtype, is_text, checkpointing)
    # A layer in 4 bits is computed in the format of the run, one after the other.
    step = live.peak + max(quantized, default=0) * dtype.itemsize
    # AdamW on a GPU takes a square root of every second moment at once; activations are gone then.
    is_adamw = recipe.optim.optimizer == "adamw"
    peak = max(step, adapter if gpu and is_adamw else 0)
    activations = min(kept - kept_logits, peak)
    logits = min(live.most_logits, peak - activations)
    return StepMemory(
        parameters=sum(tensor.numel() for tensor in static),
        trained=sum(tensor.numel() for tensor in trained),
        weights=frozen * dtype.itemsize + round(in_4_bits * BITS / 8),
        adapter=adapter,
        gradients=adapter,
        optimizer=STATES_OF_ADAMW * (adapter if is_adamw else moment),
        gathered=shared.gathered(peak),
        activations=activations,
        logits=logits,
        pictures=pixels + merger + max(0, tower - live.peak),
        workspace=peak - activations - logits,
    )


class _Live(TorchDispatchMode):
    """Counts the bytes of all tensors that operations make, while they live."""

    def __init__(self, known: Sequence[Tensor] = (), vocabulary: int = 0) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.bytes = self.logits = self.peak = self.most_logits = 0
        self._vocabulary = vocabulary
        self._sizes = {tensor.untyped_storage()._cdata: (0, False) for tensor in known}

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        for tensor in tree_leaves(result):
            if isinstance(tensor, Tensor):
                self._count(tensor)
        return result

    def _count(self, tensor: Tensor) -> None:
        storage = tensor.untyped_storage()
        key, size = storage._cdata, storage.nbytes()
        if key in self._sizes:
            return
        is_logits = bool(tensor.ndim) and tensor.shape[-1] == self._vocabulary
        self._sizes[key] = size, is_logits
        self.bytes += size
        self.logits += size * is_logits
        self.peak = max(self.peak, self.bytes)
        self.most_logits = max(self.most_logits, self.logits)
        weakref.finalize(storage, self._free, key)

    def _free(self, key: int) -> None:
        size, is_logits = self._sizes.pop(key)
        self.bytes -= size
        self.logits -= size * is_logits


def _run_step(
    model: Any, size: RowSize, dtype: torch.dtype, is_text: bool, checkpointing: bool
) -> tuple[_Live, int, int]:
    """Run a step without data; count what lives at the end, and the bytes after the forward pass.

    The latter are those of all tensors and of logits alone.
    """
    from torch._subclasses import FakeTensorMode

    for module in model.modules():
        if hasattr(module, "gate_up_proj") and isinstance(module.gate_up_proj, nn.Parameter):
            module.forward = MethodType(_even_experts, module)
    vocabulary = model.config.get_text_config().vocab_size
    with FakeTensorMode():
        prompt = EncodedPrompt(
            (0,) * size.instruction,
            (0,) * size.tokens,
            torch.arange(size.instruction + size.tokens).expand(3, -1),
            {},
            truncated=False,
        )
        prompts, trees = [prompt] * size.prompts, [size.tree] * size.prompts
        share_prefix = size.instruction > 0
        batch = lay_out(TreeModel(model), prompts, trees, 0, share_prefix=share_prefix)
        known = _without_data(model, dtype)
        tree_model = (TextModel if is_text else TreeModel)(model).train()
        if checkpointing:
            tree_model.checkpoint_activations()
        for parameter in tree_model.parameters():
            if parameter.requires_grad:  # as in every micro-batch but the first
                parameter.grad = torch.zeros_like(parameter)
                known.append(parameter.grad)
        live = _Live(known, vocabulary)
        with live:
            loss = _loss(tree_model, batch, size.supervised, dtype)
            kept, logits = live.bytes, live.logits
            loss.backward()
    return live, kept, logits


def _loss(model: TreeModel, batch: TreeBatch, supervised: int, dtype: torch.dtype) -> Tensor:
    """Add up the negative log-probabilities at the first ``supervised`` positions of each prompt.

    What it makes on the way is freed when it returns, as in an objective.
    """
    with torch.autocast("cpu", torch.bfloat16, enabled=dtype == torch.bfloat16):
        if isinstance(model, TextModel):
            targets = torch.zeros(batch.slots.shape, dtype=torch.int64)
            logprobs: Tensor = model(batch, targets=targets)
            return -logprobs.sum()
        logits: Tensor = model(batch)
    scored = logits[:, :supervised].flatten(0, 1)
    targets = torch.zeros(len(scored), dtype=torch.int64)
    # "+ 0" copies, as the objective does when it selects positions.
    return -token_logprobs(scored + 0, targets).sum()


def _without_data(model: nn.Module, dtype: torch.dtype) -> list[Tensor]:
    """Replace all tensors of a model on ``meta`` by tensors without data that stand for the CPU's.

    Frozen weights get the format of the run; trained ones and buffers keep theirs.
    """
    replaced: dict[int, tuple[Tensor, Tensor]] = {}
    for module in model.modules():
        tables: tuple[dict[str, Any], ...] = (module._parameters, module._buffers)
        for tensors in tables:
            for name, tensor in tensors.items():
                if tensor is None:
                    continue
                if id(tensor) not in replaced:
                    is_frozen = isinstance(tensor, nn.Parameter) and not tensor.requires_grad
                    new = torch.empty(tensor.shape, dtype=dtype if is_frozen else tensor.dtype)
                    if isinstance(tensor, nn.Parameter):
                        new = nn.Parameter(new, requires_grad=tensor.requires_grad)
                    replaced[id(tensor)] = tensor, new
                tensors[name] = replaced[id(tensor)][1]
    return [new for _, new in replaced.values()]


def _even_experts(self: Any, hidden: Tensor, index: Tensor, weights: Tensor) -> Tensor:
    """Stand in for the experts of a layer: every token visits as many as the router asks for.

    Which ones depends on data; how much memory they take does not.
    """
    flat = hidden.reshape(-1, hidden.shape[-1])
    visits = flat.repeat_interleave(index.shape[-1], dim=0)
    gate, up = nn.functional.linear(visits, self.gate_up_proj[0]).chunk(2, dim=-1)
    result = nn.functional.linear(self.act_fn(gate) * up, self.down_proj[0])
    weighted = result * weights.reshape(-1, 1).to(result.dtype)
    return weighted.view(len(flat), -1, hidden.shape[-1]).sum(1).view(hidden.shape)


def _tower_memory(model: Any, config: Any, size: RowSize, dtype: torch.dtype) -> tuple[int, int]:
    """Count the bytes that pictures take until the end of a step, and those of the vision tower.

    The tower is frozen: it keeps nothing, so its largest block counts.
    """
    patches = size.patches * size.prompts
    if not patches:
        return 0, 0
    vision, tower = config.vision_config, model.model.visual
    merged = patches // vision.spatial_merge_size**2
    outputs = 1 + len(getattr(vision, "deepstack_visual_indexes", ()))
    numbers = 3 * vision.temporal_patch_size * vision.patch_size**2
    kept = patches * numbers * 4 + merged * vision.out_hidden_size * outputs * dtype.itemsize
    # The tower is put back into float32 on the meta device, where that costs nothing.
    block = tower.blocks[0].to(dtype)
    with torch.device("meta"), torch.no_grad():
        hidden = torch.empty(patches, vision.hidden_size, dtype=dtype)
        angles = torch.empty(patches, vision.hidden_size // vision.num_heads)
    ends = torch.arange(size.prompts + 1, dtype=torch.int32) * size.patches
    live = _Live([hidden, angles, *block.parameters()])
    with torch.no_grad(), live:
        block(hidden, cu_seqlens=ends, position_embeddings=(angles, angles))
    block.to(torch.float32)
    return kept, live.peak + hidden.untyped_storage().nbytes()


def _merger_memory(model: Any, config: Any, size: RowSize, dtype: torch.dtype) -> int:
    """Count the bytes that a trained vision merger keeps for backpropagation."""
    from torch._subclasses import FakeTensorMode

    vision = config.vision_config
    patches = size.patches * size.prompts
    if not patches:
        return 0
    visual = model.get_base_model().model.visual
    mergers = [visual.merger, *getattr(visual, "deepstack_merger_list", ())]
    with FakeTensorMode():
        known = [tensor for merger in mergers for tensor in _without_data(merger, dtype)]
        hidden = torch.empty(patches, vision.hidden_size, dtype=dtype)
        live = _Live([hidden, *known])
        with live, torch.autocast("cpu", torch.bfloat16, enabled=dtype == torch.bfloat16):
            outputs = [merger(hidden) for merger in mergers]
            kept = live.bytes
    freed: int = sum(output.untyped_storage().nbytes() for output in outputs)
    return kept - freed


class SharedModel:
    """Sizes of an adapted model's parameters in one of the processes that share it (FSDP2).

    With one process they are those of the model.
    """

    def __init__(self, model: nn.Module, processes: int, dtype: torch.dtype) -> None:
        self._processes, self._dtype = processes, dtype
        self._whole = {id(parameter) for parameter in tower_parameters(model)}
        layers = [list(layer.parameters()) for layer in text_layers(model)]
        of_layers = {id(parameter) for layer in layers for parameter in layer} | self._whole
        self._rest = [each for each in model.parameters() if id(each) not in of_layers]
        self._layer = max(layers, key=self._bytes)

    def held(self, parameter: nn.Parameter) -> int:
        """Count the numbers of a parameter that a process holds: of a sharded one, some rows."""
        if self._processes == 1 or id(parameter) in self._whole:
            return parameter.numel()
        rows = -(-len(parameter) // self._processes)
        return rows * (parameter.numel() // len(parameter))

    def gathered(self, peak: int) -> int:
        """Count the bytes of what is put together of all parts at the moment of the most memory.

        What belongs to no layer, such as embeddings, stays whole for a step. While it is put
        together it takes twice its bytes; at that time nothing is kept of the step yet.
        """
        if self._processes == 1:
            return 0
        rest, layer = self._bytes(self._rest), self._bytes(self._layer)
        gradients = sum(each.numel() * 4 for each in self._layer if each.requires_grad)
        in_step = rest + LAYERS_TOGETHER * layer + GRADIENTS_TOGETHER * gradients
        return max(in_step, 2 * rest + layer - peak)

    def _bytes(self, parameters: Iterable[nn.Parameter]) -> int:
        return sum(
            each.numel() * (4 if each.requires_grad else self._dtype.itemsize)
            for each in parameters
        )
