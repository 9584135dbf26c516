"""The adapter a run trains: a fresh one, or an earlier run's."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TypeVar

from safetensors import SafetensorError, safe_open
from torch import nn

from judging.errors import CustosError, FieldError, Missing
from judging.judge.card import CARD_FILE, shipped_judges
from judging.models.adapters import (
    ADAPTER_CONFIG,
    ADAPTER_FILE,
    ALL_MODULES,
    add_adapter,
    load_adapter,
)
from judging.models.backbones import Backbone
from judging.models.fetched import text_version
from train.setup.recipe import Recipe

AnyRecipe = TypeVar("AnyRecipe", bound=Recipe)


def with_shape_of_init(recipe: AnyRecipe) -> AnyRecipe:
    """Copy the shape of the adapter that ``adapter.init`` names into the recipe.

    Raises ``FieldError`` if the recipe asks for another one.
    """
    adapter, folder = recipe.adapter, recipe.adapter.init_folder
    if folder is None:
        return recipe
    if not folder.is_dir():
        shipped = ", ".join(shipped_judges())
        raise Missing(
            f"adapter.init={adapter.init}: no such run folder, and no shipped judge ({shipped})"
        )
    weights, config = folder / ADAPTER_FILE, folder / ADAPTER_CONFIG
    for file in (weights, config):
        if not file.is_file():
            raise CustosError(f"adapter.init={adapter.init}: no {file.name}")
    try:
        with safe_open(weights, "pt") as file:
            names = list(file.keys())
        settings = json.loads(config.read_text(encoding="utf-8"))
        shape = {
            "r": settings["r"],
            "alpha": settings["lora_alpha"],
            "modules": tuple(m for m in ALL_MODULES if any(f".{m}_proj." in n for n in names)),
            "rslora": bool(settings.get("use_rslora")),
            "dora": bool(settings.get("use_dora")),
            "merger": any(".visual." in name for name in names),
        }
    except SafetensorError as error:
        raise CustosError(f"{weights}: damaged: {error}") from None
    except (ValueError, TypeError, KeyError) as error:
        raise CustosError(f"{config}: not of a LoRA adapter: {error}") from None
    for key, value in shape.items():
        given = getattr(adapter, key)
        differs = set(given) != set(value) if key == "modules" else given != value
        if key in adapter.model_fields_set and differs:
            raise FieldError(
                f"adapter.{key}", f"{given}: the adapter of adapter.init={adapter.init} has {value}"
            )
    return recipe.model_copy(update={"adapter": adapter.model_copy(update=shape)})


def with_adapter(backbone: Backbone, recipe: Recipe) -> Backbone:
    """Put the recipe's trainable adapter on the backbone, fresh or from an earlier run.

    Without ``adapter.merger`` adapters change only the text tower, so an earlier run may have had
    another vision tower.
    """
    from peft.tuners.lora import LoraLayer

    adapter, folder = recipe.adapter, recipe.adapter.init_folder
    if folder:
        _check_version(recipe, folder, backbone)
        adapted = load_adapter(backbone.model, folder, trainable=True)
        for module in adapted.modules():  # the adapter was saved with a dropout of its own
            if isinstance(module, LoraLayer):
                for name in list(module.lora_dropout):
                    dropout = nn.Dropout(adapter.dropout) if adapter.dropout else nn.Identity()
                    module.lora_dropout[name] = dropout
        for config in adapted.peft_config.values():
            config.lora_dropout = adapter.dropout
    else:
        settings = adapter.model_dump(exclude={"init"})
        adapted = add_adapter(backbone.model, **settings, seed=recipe.run.seed)
    return backbone.with_model(adapted)


def _check_version(recipe: Recipe, folder: Path, backbone: Backbone) -> None:
    card = folder / CARD_FILE
    if not card.is_file():
        return
    try:
        trained_on = str(json.loads(card.read_bytes())["backbone_version"])
    except (ValueError, TypeError, KeyError) as error:
        raise CustosError(f"{card}: not a judge card: {error}") from None
    versions, part = [trained_on, backbone.version], "weights"
    if not recipe.adapter.merger:
        versions, part = [text_version(version) for version in versions], "text weights"
    if versions[0] != versions[1]:
        raise CustosError(
            f"adapter.init={recipe.adapter.init}: trained on version {trained_on}, which has "
            f"other {part} than version {backbone.version} of {backbone.name}"
        )
