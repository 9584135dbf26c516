"""The plan of a training run: what it trains, its memory and time, and what to change."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from transformers import AutoConfig, PretrainedConfig

from judging.errors import CustosError, FieldError, Missing
from judging.models.backbones import load_backbone
from judging.models.checkpoints import CONFIG, check_config
from judging.scoring.prompts import Encoder
from train.methods import method_of
from train.methods.own_critiques import OwnCritiques
from train.plan.planner import (
    CHARACTERS_PER_TOKEN,
    MEMORY_OF_GPU,
    CharacterEncoder,
    Hardware,
    RunPlan,
    machine_memory,
    made_up_row,
    pixel_limits,
    row_sizes,
)
from train.setup.engines import FSDP, check_processes
from train.setup.recipe import Recipe, find_recipe, parse_recipe, read_values, recipe_of_task
from train.setup.starting_adapter import with_shape_of_init


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
    """Plan a run of a recipe, given by its file, its name or the name of a task.

    ``gpus`` is a number; 0: the CPU. ``memory`` is in GiB of one GPU, or of the machine; default
    78, or this machine's. ``rate`` is the tokens that one GPU trains on in a second. GPUs that are
    ``shared`` hold one model together. Tokens of a row default to those of the recipe's files; only
    beside ``tokens_per_row`` are pixels and ``num_rows`` used. Raises ``CustosError`` if so many
    GPUs cannot train the recipe.
    """
    if shared and gpus < 2:
        raise CustosError("--shared: give the number of GPUs that share the model: --gpus N")
    path = find_recipe(recipe_of_task(recipe) or recipe)
    values = read_values(path, keys)
    method = method_of(path, values)
    parsed = parse_recipe(method.recipe_class, path, keys, values)
    if issubclass(method, OwnCritiques):
        raise CustosError(f"{recipe}: steps of TRL's trainers cannot be planned; try --dry-run 2")
    check_processes(parsed, {"WORLD_SIZE": str(gpus or 1), FSDP: str(shared)})
    try:
        parsed = with_shape_of_init(parsed)
    except Missing:  # an earlier stage that has yet to run
        pass
    hardware = Hardware(gpus, memory or (MEMORY_OF_GPU if gpus else machine_memory()), shared)
    config, encoder = _backbone(parsed)
    is_text = method.learns_text
    if tokens_per_row is None:
        try:
            train = method.read_rows(parsed).train
            rows = row_sizes(train, method.supervision(encoder), parsed, config)
        except Missing as error:
            raise FieldError(
                "data", f"{error}; or plan without data: --tokens-per-row 500 --rows 10000"
            ) from None
        is_exact, num_rows = not isinstance(encoder, CharacterEncoder), len(rows)
        counted = "tokenizer" if is_exact else f"{CHARACTERS_PER_TOKEN} characters a token"
    else:
        counted, limits = "--tokens-per-row", pixel_limits(parsed, config, encoder)
        sizes = tokens_per_row, pixels_per_row
        row = made_up_row(*sizes, config, limits, prompts=method.prompts, is_text=is_text)
        rows = [row] * (num_rows or 1)
    return RunPlan(parsed, is_text, config, rows, hardware, num_rows or 0, counted, rate)


def _backbone(recipe: Recipe) -> tuple[Any, Encoder]:
    """Read the configuration of the backbone, and choose what counts its tokens."""
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
    """Read the configuration of a backbone, from the shapes known here if it is one of them."""
    if name in PUBLISHED:
        return published_config(name)
    if not (Path(name) / CONFIG).is_file():
        return load_backbone(name, weights=False).model.config
    check_config(name, PretrainedConfig.get_config_dict(name)[0])
    return AutoConfig.from_pretrained(name)


# Shapes of published Qwen-VL checkpoints, so that a plan needs neither hub nor download: the values
# of each config.json on the hub, such as
# https://huggingface.co/Qwen/Qwen3-VL-4B-Instruct/blob/main/config.json, without keys that do not
# change the size. tests/train/plan/test_planner.py compares the parameters counted from them with
# published totals; for Qwen2.5-VL-72B none was at hand to the last digit.
_QWEN_2_5_VISION: dict[str, Any] = {
    **{"depth": 32, "hidden_size": 1280, "num_heads": 16, "patch_size": 14, "window_size": 112},
    **{"spatial_merge_size": 2, "temporal_patch_size": 2, "fullatt_block_indexes": [7, 15, 23, 31]},
}
_QWEN_3_VISION: dict[str, Any] = {
    **{"num_heads": 16, "patch_size": 16, "spatial_merge_size": 2, "temporal_patch_size": 2},
    "num_position_embeddings": 2304,
}
_SMALL_TOWER = {
    **{"depth": 24, "hidden_size": 1024, "intermediate_size": 4096},
    "deepstack_visual_indexes": [5, 11, 17],
}
_LARGE_TOWER = {
    **{"depth": 27, "hidden_size": 1152, "intermediate_size": 4304},
    "deepstack_visual_indexes": [8, 16, 24],
}
_EXPERTS: dict[str, Any] = {
    **{"num_experts": 128, "num_experts_per_tok": 8, "moe_intermediate_size": 768},
    **{"decoder_sparse_step": 1, "mlp_only_layers": [], "norm_topk_prob": True},
}
_TEXT_KEYS = (
    *("hidden_size", "intermediate_size", "num_hidden_layers"),
    *("num_attention_heads", "num_key_value_heads", "vocab_size"),
)
# The values of these keys, whether input and output embeddings are tied, and what the vision tower
# has beside what its family has.
_SHAPES: dict[str, tuple[tuple[int, ...], bool, dict[str, Any]]] = {
    "Qwen2.5-VL-3B": ((2048, 11008, 36, 16, 2, 151936), True, {"intermediate_size": 3420}),
    "Qwen2.5-VL-7B": ((3584, 18944, 28, 28, 4, 152064), False, {"intermediate_size": 3420}),
    "Qwen2.5-VL-32B": ((5120, 27648, 64, 40, 8, 152064), False, {"intermediate_size": 3456}),
    "Qwen2.5-VL-72B": ((8192, 29568, 80, 64, 8, 152064), False, {"intermediate_size": 3456}),
    "Qwen3-VL-2B": ((2048, 6144, 28, 16, 8, 151936), True, _SMALL_TOWER),
    "Qwen3-VL-4B": ((2560, 9728, 36, 32, 8, 151936), True, _SMALL_TOWER),
    "Qwen3-VL-8B": ((4096, 12288, 36, 32, 8, 151936), False, _LARGE_TOWER),
    "Qwen3-VL-32B": ((5120, 25600, 64, 64, 8, 151936), False, _LARGE_TOWER),
    "Qwen3-VL-30B-A3B": ((2048, 6144, 48, 32, 4, 151936), False, _LARGE_TOWER),
}
PUBLISHED = tuple(f"Qwen/{name}-Instruct" for name in _SHAPES)
"""Hub ids whose shapes are known here."""


def published_config(name: str) -> Any:
    """Build the configuration of a checkpoint in :data:`PUBLISHED`."""
    values, tied, tower = _SHAPES[name.removeprefix("Qwen/").removesuffix("-Instruct")]
    shape: dict[str, Any] = dict(zip(_TEXT_KEYS, values, strict=True))
    if "Qwen2.5" in name:
        family, vision, sections = "qwen2_5_vl", _QWEN_2_5_VISION, [16, 24, 24]
    else:
        family, vision, sections = "qwen3_vl", _QWEN_3_VISION, [24, 20, 20]
        shape["head_dim"] = 128
        if "A3B" in name:
            family, shape = "qwen3_vl_moe", {**shape, **_EXPERTS}
    rope = {"rope_type": "default", "rope_theta": 1e6, "mrope_section": sections}
    rotary = {"rope_parameters": rope, "max_position_embeddings": 128000}
    return AutoConfig.for_model(
        family,
        text_config={**shape, **rotary, "tie_word_embeddings": tied},
        vision_config={**vision, **tower, "out_hidden_size": shape["hidden_size"]},
        tie_word_embeddings=tied,
    )
