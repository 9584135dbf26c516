"""Checkpoints laid out file by file as on the Hugging Face hub, with tiny random weights."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
import transformers
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import AutoConfig

from tests.tiny import TEXT

SPECIAL = (
    *("endoftext", "im_start", "im_end", "object_ref_start", "object_ref_end", "box_start"),
    *("box_end", "quad_start", "quad_end", "vision_start", "vision_end", "vision_pad"),
    *("image_pad", "video_pad"),
)
PLAIN = (
    *("<tool_call>", "</tool_call>", "<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>"),
    *("<|fim_pad|>", "<|repo_name|>", "<|file_sep|>", "<tool_response>", "</tool_response>"),
    *("<think>", "</think>"),
)
"""Added tokens that published tokenizers do not call special."""
SPLIT = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)

# Both templates do what the published ones do, in our own words.
TEXT_TEMPLATE = (
    "{% if tools %}{{ '<|im_start|>system\\n' + tools | tojson + '<|im_end|>\\n' }}{% endif %}"
    "{% for m in messages %}{{ '<|im_start|>' + m.role + '\\n' + m.content + '<|im_end|>\\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)
"""As on tokenizers: contents are text only, so a list of parts raises ``TypeError``."""
_PARTS = (
    "{% macro show(content) %}{% if content is string %}{{ content }}{% else %}"
    "{% for part in content %}{% if part.type == 'image' or 'image' in part %}"
    "<|vision_start|><|image_pad|><|vision_end|>{% else %}{{ part.text }}{% endif %}{% endfor %}"
    "{% endif %}{% endmacro %}"
)
_TURNS = (
    "{% for m in messages %}{{ '<|im_start|>' + m.role + '\\n' + show(m.content) + "
    "'<|im_end|>\\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}"
)
VISION_TEMPLATE = (
    _PARTS + "{% if messages[0].role != 'system' %}{{ '<|im_start|>system\\nHelp.<|im_end|>\\n' }}"
    "{% endif %}" + _TURNS + "{% endif %}"
)
THINKING_TEMPLATE = (
    _PARTS + "{% if not messages | selectattr('role', 'equalto', 'user') | list %}"
    "{{ raise_exception('no user turn') }}{% endif %}" + _TURNS + "{% if enable_thinking is false"
    " %}{{ '<think>\\n\\n</think>\\n\\n' }}{% else %}{{ '<think>\\n' }}{% endif %}{% endif %}"
)
"""As Qwen3.5's: it refuses a conversation without a user and thinks unless it is told not to."""

PLAIN_TEMPLATE = (
    "{% if messages[0].role != 'system' %}{{ '<|im_start|>system\\nHelp.<|im_end|>\\n' }}"
    "{% endif %}" + TEXT_TEMPLATE
)
"""As Qwen2.5's, which brings a system turn where there is none."""
TEXT_THINKING_TEMPLATE = (
    TEXT_TEMPLATE.removesuffix("{% endif %}")
    + "{% if enable_thinking is defined and enable_thinking is false %}"
    + "{{ '<think>\\n\\n</think>\\n\\n' }}{% endif %}{% endif %}"
)
"""As Qwen3's, which thinks unless it is told not to."""


@dataclass(frozen=True)
class HubLayout:
    """Which files a published checkpoint has, and what is in its configuration."""

    template_file: str | None
    """``None``: the template is in the tokenizer's configuration alone, as of text families."""
    template: str
    image_processor: dict[str, Any] | None
    config: dict[str, Any]
    video_processor: dict[str, Any] | None = None
    generation: dict[str, Any] | None = field(
        default_factory=lambda: {"do_sample": True, "temperature": 0.7, "top_p": 0.8, "top_k": 20}
    )
    shard: str = "model-{:05}-of-{:05}.safetensors"
    tokenizer_class: str = "Qwen2Tokenizer"
    tokenizer_template: str = TEXT_TEMPLATE


_CLIP_MEAN = {
    "image_mean": [0.48145466, 0.4578275, 0.40821073],
    "image_std": [0.26862954, 0.26130258, 0.27577711],
}
_HALF = {"image_mean": [0.5, 0.5, 0.5], "image_std": [0.5, 0.5, 0.5]}
_PATCHES = {"patch_size": 14, "temporal_patch_size": 2, "merge_size": 2}
_GREEDY = {
    **{"do_sample": True, "repetition_penalty": 1.05, "temperature": 0.1},
    **{"top_p": 0.001, "top_k": 1},
}
_TEXT = {
    **{"hidden_act": "silu", "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2},
    **{"num_attention_heads": 4, "num_key_value_heads": 2, "rms_norm_eps": 1e-06},
    **{"initializer_range": 0.02, "attention_dropout": 0.0, "use_cache": True},
}
_FLAT = {
    **_TEXT,
    **{"max_position_embeddings": 128000, "max_window_layers": 2, "sliding_window": 32768},
    **{"use_sliding_window": False, "rope_theta": 1000000.0, "tie_word_embeddings": False},
    "rope_scaling": {"type": "mrope", "mrope_section": [2, 1, 1]},
    "torch_dtype": "bfloat16",
}
_VISION3 = {
    **{"depth": 2, "hidden_act": "gelu_pytorch_tanh", "hidden_size": 32, "in_channels": 3},
    **{"initializer_range": 0.02, "intermediate_size": 48, "num_heads": 2, "patch_size": 16},
    **{"num_position_embeddings": 36, "out_hidden_size": 32, "spatial_merge_size": 2},
    "temporal_patch_size": 2,
}
_TEXT3 = {
    **_TEXT,
    **{"attention_bias": False, "dtype": "bfloat16", "head_dim": 8},
    **{"max_position_embeddings": 262144, "rope_theta": 5000000},
    "rope_scaling": {
        **{"mrope_interleaved": True, "mrope_section": [2, 1, 1], "rope_type": "default"}
    },
}
_IMAGES3 = {
    "size": {"longest_edge": 16777216, "shortest_edge": 65536},
    **{"patch_size": 16, "temporal_patch_size": 2, "merge_size": 2, **_HALF},
    "processor_class": "Qwen3VLProcessor",
    "image_processor_type": "Qwen2VLImageProcessorFast",
}
_VIDEO3 = {
    "size": {"longest_edge": 25165824, "shortest_edge": 4096},
    **{"patch_size": 16, "temporal_patch_size": 2, "merge_size": 2, **_HALF},
    "processor_class": "Qwen3VLProcessor",
    "video_processor_type": "Qwen3VLVideoProcessor",
}

LAYOUTS: dict[str, HubLayout] = {
    "Qwen2-VL-7B-Instruct": HubLayout(
        "chat_template.json",
        VISION_TEMPLATE,
        {
            **{"min_pixels": 3136, "max_pixels": 12845056, **_PATCHES, **_CLIP_MEAN},
            **{"image_processor_type": "Qwen2VLImageProcessor"},
            "processor_class": "Qwen2VLProcessor",
        },
        {
            "architectures": ["Qwen2VLForConditionalGeneration"],
            **{**_FLAT, "model_type": "qwen2_vl", "max_position_embeddings": 32768},
            "vision_config": {
                **{"depth": 2, "embed_dim": 32, "mlp_ratio": 2, "num_heads": 2, "in_chans": 3},
                **{"hidden_size": 32, "patch_size": 14, "spatial_merge_size": 2},
                **{"spatial_patch_size": 14, "temporal_patch_size": 2},
            },
        },
        generation=_GREEDY,
    ),
    "Qwen2.5-VL-7B-Instruct": HubLayout(
        "chat_template.json",
        VISION_TEMPLATE,
        {
            **{"min_pixels": 3136, "max_pixels": 12845056, **_PATCHES, **_CLIP_MEAN},
            **{"image_processor_type": "Qwen2_5_VLImageProcessor"},
            "processor_class": "Qwen2_5_VLProcessor",
        },
        {
            "architectures": ["Qwen2_5_VLForConditionalGeneration"],
            **{**_FLAT, "model_type": "qwen2_5_vl"},
            "vision_config": {
                **{"depth": 2, "hidden_act": "silu", "hidden_size": 32, "intermediate_size": 48},
                **{"num_heads": 2, "in_chans": 3, "out_hidden_size": 32, "patch_size": 14},
                **{"spatial_merge_size": 2, "spatial_patch_size": 14, "window_size": 56},
                **{"fullatt_block_indexes": [1], "tokens_per_second": 2, "temporal_patch_size": 2},
            },
        },
        generation=_GREEDY,
    ),
    "Qwen3-VL-4B-Instruct": HubLayout(
        "chat_template.json",
        VISION_TEMPLATE,
        _IMAGES3,
        {
            "architectures": ["Qwen3VLForConditionalGeneration"],
            "model_type": "qwen3_vl",
            "text_config": {**_TEXT3, "model_type": "qwen3_vl_text", "tie_word_embeddings": True},
            "tie_word_embeddings": True,
            "vision_config": {
                **_VISION3,
                "deepstack_visual_indexes": [0, 1],
                "model_type": "qwen3_vl",
            },
        },
        _VIDEO3,
    ),
    "Qwen3-VL-30B-A3B-Instruct": HubLayout(
        "chat_template.json",
        VISION_TEMPLATE,
        _IMAGES3,
        {
            "architectures": ["Qwen3VLMoeForConditionalGeneration"],
            "model_type": "qwen3_vl_moe",
            "text_config": {
                **{**_TEXT3, "model_type": "qwen3_vl_moe_text", "moe_intermediate_size": 16},
                **{"decoder_sparse_step": 1, "mlp_only_layers": [], "norm_topk_prob": True},
                **{"num_experts": 4, "num_experts_per_tok": 2},
            },
            "tie_word_embeddings": False,
            "vision_config": {
                **_VISION3,
                "deepstack_visual_indexes": [0, 1],
                "model_type": "qwen3_vl_moe",
            },
        },
        _VIDEO3,
    ),
    "Qwen3.5-9B": HubLayout(
        "chat_template.jinja",
        THINKING_TEMPLATE,
        _IMAGES3,
        {
            "architectures": ["Qwen3_5ForConditionalGeneration"],
            "model_type": "qwen3_5",
            "text_config": {
                **{key: value for key, value in _TEXT3.items() if not key.startswith("rope")},
                **{"model_type": "qwen3_5_text", "attn_output_gate": True, "head_dim": 16},
                **{"full_attention_interval": 2, "mtp_num_hidden_layers": 1},
                "layer_types": ["linear_attention", "full_attention"],
                **{"linear_conv_kernel_dim": 4, "linear_key_head_dim": 8},
                **{"linear_num_key_heads": 2, "linear_num_value_heads": 4},
                **{"linear_value_head_dim": 8, "mamba_ssm_dtype": "float32"},
                "rope_parameters": {
                    **{"mrope_interleaved": True, "mrope_section": [2, 1, 1]},
                    **{"partial_rotary_factor": 0.5, "rope_theta": 10000000},
                    "rope_type": "default",
                },
            },
            "tie_word_embeddings": False,
            "vision_config": {**_VISION3, "deepstack_visual_indexes": [], "model_type": "qwen3_5"},
        },
        _VIDEO3,
        generation=None,
        shard="model.safetensors-{:05}-of-{:05}.safetensors",
        tokenizer_template=THINKING_TEMPLATE,
    ),
}

TEXT_LAYOUTS: dict[str, HubLayout] = {
    "Qwen2.5-0.5B-Instruct": HubLayout(
        None,
        "",
        None,
        {
            "architectures": ["Qwen2ForCausalLM"],
            **{key: value for key, value in _FLAT.items() if key != "rope_scaling"},
            **{"model_type": "qwen2", "max_position_embeddings": 32768},
            "tie_word_embeddings": True,
        },
        tokenizer_template=PLAIN_TEMPLATE,
    ),
    "Qwen3-4B": HubLayout(
        None,
        "",
        None,
        {
            "architectures": ["Qwen3ForCausalLM"],
            **{key: value for key, value in _FLAT.items() if key != "rope_scaling"},
            **{"model_type": "qwen3", "max_position_embeddings": 40960, "head_dim": 16},
            **{"attention_bias": False, "rope_scaling": None},
        },
        tokenizer_template=TEXT_THINKING_TEMPLATE,
    ),
}
"""Families that read text alone."""


def save_hub_layout(folder: Path, name: str) -> Path:
    """Write a checkpoint with the published file names of a model."""
    layout = (LAYOUTS | TEXT_LAYOUTS)[name]
    folder.mkdir(parents=True, exist_ok=True)
    ids = _save_tokenizer(folder, layout)
    config = _config(layout, ids)
    _write(folder / "config.json", config)
    _save_weights(folder, layout)
    _write(folder / "config.json", config)  # as published, not as the library writes it
    if layout.image_processor:
        _write(folder / "preprocessor_config.json", layout.image_processor)
    if layout.video_processor:
        _write(folder / "video_preprocessor_config.json", layout.video_processor)
    (folder / "generation_config.json").unlink(missing_ok=True)
    if layout.generation:
        ends = {"eos_token_id": [ids["<|im_end|>"], ids["<|endoftext|>"]]}
        _write(folder / "generation_config.json", {**layout.generation, **ends})
    if layout.template_file is None:
        return folder
    if layout.template_file.endswith(".jinja"):
        (folder / layout.template_file).write_text(layout.template, encoding="utf-8")
    else:
        _write(folder / layout.template_file, {"chat_template": layout.template})
    return folder


def _save_tokenizer(folder: Path, layout: HubLayout) -> dict[str, int]:
    """Write the four tokenizer files and return the ids of the added tokens."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(SPLIT), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=400,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(TEXT.splitlines(), trainer)
    tokenizer.model.save(str(folder))  # vocab.json and merges.txt
    special = [f"<|{name}|>" for name in SPECIAL]
    tokenizer.add_special_tokens([AddedToken(t, normalized=False, special=True) for t in special])
    tokenizer.add_tokens([AddedToken(t, normalized=False) for t in PLAIN])
    tokenizer.save(str(folder / "tokenizer.json"))
    added = {token: i for token, i in tokenizer.get_vocab().items() if token in (*special, *PLAIN)}
    flags = {"lstrip": False, "normalized": False, "rstrip": False, "single_word": False}
    _write(
        folder / "tokenizer_config.json",
        {
            **{"add_bos_token": False, "add_prefix_space": False},
            "added_tokens_decoder": {
                str(i): {"content": token, **flags, "special": token in special}
                for token, i in sorted(added.items(), key=lambda entry: entry[1])
            },
            **{"additional_special_tokens": special[1:], "bos_token": None},
            "chat_template": layout.tokenizer_template,
            **{"clean_up_tokenization_spaces": False, "eos_token": "<|im_end|>"},
            **{"errors": "replace", "model_max_length": 131072, "pad_token": "<|endoftext|>"},
            **{"split_special_tokens": False, "tokenizer_class": layout.tokenizer_class},
            "unk_token": None,
        },
    )
    return added


def _config(layout: HubLayout, ids: dict[str, int]) -> dict[str, Any]:
    """Return the configuration with the ids of this tokenizer and a padded vocabulary."""
    names = {"image": "image_pad", "video": "video_pad"}
    names |= {"vision_start": "vision_start", "vision_end": "vision_end"}
    config = dict(layout.config)
    if layout.image_processor:
        config |= {f"{key}_token_id": ids[f"<|{token}|>"] for key, token in names.items()}
    text = {
        **{"bos_token_id": ids["<|endoftext|>"], "eos_token_id": ids["<|im_end|>"]},
        "vocab_size": max(ids.values()) + 21,  # published embeddings have more rows than tokens
    }
    if "text_config" in config:
        return {**config, "text_config": {**config["text_config"], **text}}
    return {**config, **text}


def _save_weights(folder: Path, layout: HubLayout) -> None:
    """Write random weights as shards with an index, under the published names."""
    config = AutoConfig.from_pretrained(folder)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(7)
        model = getattr(transformers, layout.config["architectures"][0])(config).float()
        for name, parameter in model.named_parameters():
            # Far from the library's tame initialisation: differences must show.
            scale = 0.05 if "norm" in name or parameter.ndim == 1 else 0.25
            parameter.data += scale * torch.randn_like(parameter)
    model.save_pretrained(folder, max_shard_size="80KB")
    index = json.loads((folder / "model.safetensors.index.json").read_text(encoding="utf-8"))
    shards = sorted(set(index["weight_map"].values()))
    names = {old: layout.shard.format(i, len(shards)) for i, old in enumerate(shards, 1)}
    for old, new in names.items():
        (folder / old).rename(folder / new)
    index["weight_map"] = {key: names[shard] for key, shard in index["weight_map"].items()}
    _write(folder / "model.safetensors.index.json", index)


def _write(path: Path, content: dict[str, Any]) -> None:
    path.write_text(json.dumps(content, indent=2), encoding="utf-8")


def shards(folder: Path) -> Sequence[Path]:
    """Return the shards of a checkpoint in order."""
    return sorted(folder.glob("*.safetensors"))
