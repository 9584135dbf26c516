"""The plan of a training run: what it trains, its memory and time, and what to change."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from transformers import AutoConfig, PretrainedConfig

from data_prep.tables.mapping import TableMapping
from judging.errors import CustosError, FieldError, Missing
from judging.files.opening import shipped_yaml
from judging.models.backbones import load_backbone
from judging.models.checkpoints import CONFIG, check_config
from judging.models.fetched import is_made
from judging.models.gguf_files import NAMED
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
    of_task = recipe_of_task(recipe)
    path = find_recipe(of_task or recipe)
    values = read_values(path, keys)
    method = method_of(path, values)
    parsed = parse_recipe(method.recipe_class, path, keys, values)
    changes: dict[str, Any] = {"cal": None, "test": None}  # no step reads them
    if of_task:  # rows that name no task are of this one, as in training
        mapping = parsed.data.mapping or TableMapping()
        changes["mapping"] = mapping.model_copy(update={"task": mapping.task or recipe})
    parsed = parsed.model_copy(update={"data": parsed.data.model_copy(update=changes)})
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
    name, characters = recipe.backbone, CharacterEncoder(recipe.run.response_budget)
    if name in NAMED and not is_made(NAMED[name].file.version):
        return backbone_config(name), characters  # its tokenizer comes with all of its weights
    try:
        backbone = load_backbone(name, weights=False)
    except Missing:
        if name in PUBLISHED or (Path(name) / CONFIG).is_file():  # a folder without a tokenizer
            return backbone_config(name), characters
        raise
    backbone = backbone.with_pixels(recipe.run.min_pixels, recipe.run.max_pixels)
    return backbone.model.config, Encoder(backbone, recipe.run.response_budget)


def backbone_config(name: str) -> Any:
    """Read the configuration of a backbone, from the shapes known here if it is one of them."""
    name = NAMED[name].base_model if name in NAMED else name
    if name in PUBLISHED:
        return published_config(name)
    if not (Path(name) / CONFIG).is_file():
        return load_backbone(name, weights=False).model.config
    check_config(name, PretrainedConfig.get_config_dict(name)[0])
    return AutoConfig.from_pretrained(name)


SHAPES = shipped_yaml(Path(__file__).with_name("shapes.yaml"))
PUBLISHED = tuple(f"Qwen/{name}-Instruct" for name in SHAPES["checkpoints"])
"""Hub ids whose shapes are known here."""


def published_config(name: str) -> Any:
    """Build the configuration of a checkpoint in :data:`PUBLISHED`."""
    shape = SHAPES["checkpoints"][name.removeprefix("Qwen/").removesuffix("-Instruct")]
    family, tied = SHAPES["families"][shape["family"]], shape["tied"]
    rope = {"rope_type": "default", "rope_theta": 1e6}
    text: dict[str, Any] = {**family["text"], **shape["text"], "tie_word_embeddings": tied}
    if "vision" not in family:
        return AutoConfig.for_model(shape["family"], **text, rope_parameters=rope)
    rope["mrope_section"] = family["mrope_section"]
    rotary = {"rope_parameters": rope, "max_position_embeddings": 128000}
    vision = {**family["vision"], **shape["vision"], "out_hidden_size": text["hidden_size"]}
    return AutoConfig.for_model(
        shape["family"],
        text_config=text | rotary,
        vision_config=vision,
        tie_word_embeddings=tied,
    )
