"""Shapes of published Qwen-VL checkpoints, so that a plan needs neither hub nor download.

The values follow each checkpoint's ``config.json`` on the hub, such as
https://huggingface.co/Qwen/Qwen3-VL-4B-Instruct/blob/main/config.json; keys that do not change the
size of the model are left out. The parameters counted from them were compared with published totals
for eight checkpoints (``tests/train/plan/test_published.py``). For Qwen2.5-VL-72B no total was at
hand to the last digit.
"""

from __future__ import annotations

from typing import Any

from transformers import AutoConfig

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
# Checkpoint: hidden size, intermediate size, layers, query heads, key-value heads, vocabulary,
# whether input and output embeddings are tied, intermediate size of the vision tower.
_QWEN_2_5 = {
    "3B": (2048, 11008, 36, 16, 2, 151936, True, 3420),
    "7B": (3584, 18944, 28, 28, 4, 152064, False, 3420),
    "32B": (5120, 27648, 64, 40, 8, 152064, False, 3456),
    "72B": (8192, 29568, 80, 64, 8, 152064, False, 3456),
}
# The same, with the vision tower instead of its intermediate size.
_QWEN_3: dict[str, tuple[int, int, int, int, int, int, bool, dict[str, Any]]] = {
    "2B": (2048, 6144, 28, 16, 8, 151936, True, _SMALL_TOWER),
    "4B": (2560, 9728, 36, 32, 8, 151936, True, _SMALL_TOWER),
    "8B": (4096, 12288, 36, 32, 8, 151936, False, _LARGE_TOWER),
    "32B": (5120, 25600, 64, 64, 8, 151936, False, _LARGE_TOWER),
    "30B-A3B": (2048, 6144, 48, 32, 4, 151936, False, _LARGE_TOWER),
}
_EXPERTS: dict[str, Any] = {
    **{"num_experts": 128, "num_experts_per_tok": 8, "moe_intermediate_size": 768},
    **{"decoder_sparse_step": 1, "mlp_only_layers": [], "norm_topk_prob": True},
}

PUBLISHED = (
    *(f"Qwen/Qwen2.5-VL-{size}-Instruct" for size in _QWEN_2_5),
    *(f"Qwen/Qwen3-VL-{size}-Instruct" for size in _QWEN_3),
)
"""Hub ids whose shapes are known here."""


def published_config(name: str) -> Any:
    """Return the configuration of a checkpoint in :data:`PUBLISHED`."""
    size = name.partition("-VL-")[2].removesuffix("-Instruct")
    if "Qwen2.5" in name:
        *text, tied, intermediate = _QWEN_2_5[size]
        family, head = "qwen2_5_vl", {}
        vision = {**_QWEN_2_5_VISION, "intermediate_size": intermediate}
    else:
        *text, tied, tower = _QWEN_3[size]
        family, head = "qwen3_vl", {"head_dim": 128}
        vision = {**_QWEN_3_VISION, **tower}
        if size == "30B-A3B":
            family, head = "qwen3_vl_moe", {"head_dim": 128, **_EXPERTS}
    keys = (
        *("hidden_size", "intermediate_size", "num_hidden_layers"),
        *("num_attention_heads", "num_key_value_heads", "vocab_size"),
    )
    shape = dict(zip(keys, text, strict=True))
    return AutoConfig.for_model(
        family,
        text_config={**shape, **head, "tie_word_embeddings": tied, **_rotary(family)},
        vision_config={**vision, "out_hidden_size": shape["hidden_size"]},
        tie_word_embeddings=tied,
    )


def _rotary(family: str) -> dict[str, Any]:
    sections = [16, 24, 24] if family == "qwen2_5_vl" else [24, 20, 20]
    rope = {"rope_type": "default", "rope_theta": 1e6, "mrope_section": sections}
    return {"rope_parameters": rope, "max_position_embeddings": 128000}
