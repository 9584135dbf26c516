"""Tiny Qwen-VL checkpoints with random weights, made on the spot: no hub, no download."""

from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from PIL import Image
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    AutoModelForImageTextToText,
    PreTrainedTokenizerFast,
    Qwen2_5_VLConfig,
    Qwen2_5_VLForConditionalGeneration,
    Qwen2VLImageProcessorPil,
    Qwen3VLConfig,
    Qwen3VLForConditionalGeneration,
)

from judging.models.fetched import CHAT_TEMPLATE

Family = Literal["qwen2_5_vl", "qwen3_vl"]

SPECIAL_TOKENS = (
    "<|endoftext|>",
    "<|im_start|>",
    "<|im_end|>",
    "<|vision_start|>",
    "<|vision_end|>",
    "<|image_pad|>",
    "<|video_pad|>",
)

TEXT = """
A judge reads a question, then the reference, then what somebody answered, and says whether the
answer is right. It does not matter how long the answer is, or how sure it sounds; it matters what
it says. Correct, Partial and Wrong are the three words it may use.
The lighthouse keeper counted seven boats before breakfast and nine after lunch, so sixteen in all.
Two gardens lie behind the mill: one grows beans and barley, the other nothing but tall nettles.
Which river runs past the old town? The river is green in spring and brown in autumn.
How many apples are left if eleven fall from a tree that had thirty? Nineteen apples are left.
The chart shows rain per month, the table shows wind per hour, and neither shows the temperature.
system user assistant Question Response Ground truth References Options Reasoning Error
"""


def tiny_tokenizer() -> PreTrainedTokenizerFast:
    """Byte-level BPE over our own few sentences, with ChatML and vision tokens."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=420,
        special_tokens=list(SPECIAL_TOKENS),
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(TEXT.splitlines(), trainer)
    wrapped = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        eos_token="<|im_end|>",
        pad_token="<|endoftext|>",
        additional_special_tokens=list(SPECIAL_TOKENS[1:]),
    )
    wrapped.chat_template = CHAT_TEMPLATE
    return wrapped


def save_tiny(folder: Path, family: Family) -> Path:
    """Write a checkpoint folder that ``load_backbone`` reads."""
    tokenizer = tiny_tokenizer()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(7)
        model = _MODELS[family](_config(family, tokenizer)).float()
        for name, parameter in model.named_parameters():
            # Far from the library's tame initialisation: differences must show.
            scale = 0.05 if "norm" in name or parameter.ndim == 1 else 0.25
            parameter.data += scale * torch.randn_like(parameter)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    patch = 14 if family == "qwen2_5_vl" else 16
    Qwen2VLImageProcessorPil(
        patch_size=patch,
        size={"shortest_edge": (2 * patch) ** 2, "longest_edge": (12 * patch) ** 2},
    ).save_pretrained(folder)
    return folder


def reference_model(folder: str, attention: str = "eager") -> Any:
    """The same checkpoint as the library alone would load it, in float32."""
    config = AutoConfig.from_pretrained(folder)
    is_text = getattr(config, "vision_config", None) is None
    model_class = AutoModelForCausalLM if is_text else AutoModelForImageTextToText
    return model_class.from_pretrained(
        folder, config=config, dtype=torch.float32, attn_implementation=attention
    ).eval()


def brute_force(model: Any, ids: tuple[int, ...], label: list[int], vision: Any) -> float:
    """Log-probability of a label from one plain forward over prompt and label."""
    return float(plain_logprob(model, ids, label, vision).detach())


def plain_logprob(model: Any, ids: tuple[int, ...], label: list[int], vision: Any) -> torch.Tensor:
    """The same with its gradient."""
    row = torch.tensor([[*ids, *label]])
    if vision:
        vision = {**vision, "mm_token_type_ids": (row == model.config.image_token_id).int()}
    logits = model(input_ids=row, use_cache=False, **vision).logits[0].double()
    logprobs = logits.log_softmax(-1)
    scores = [logprobs[len(ids) - 1 + offset, token] for offset, token in enumerate(label)]
    return torch.stack(scores).sum()


def save_picture(path: Path, width: int, height: int, seed: int = 0) -> str:
    """Write a noisy picture and return its path."""
    pixels = np.random.default_rng(seed).integers(256, size=(height, width, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(path)
    return str(path)


_MODELS: dict[str, Any] = {
    "qwen2_5_vl": Qwen2_5_VLForConditionalGeneration,
    "qwen3_vl": Qwen3VLForConditionalGeneration,
}


def _config(family: Family, tokenizer: PreTrainedTokenizerFast) -> Any:
    token_ids = {
        f"{name}_token_id": tokenizer.convert_tokens_to_ids(token)
        for name, token in (
            ("vision_start", "<|vision_start|>"),
            ("vision_end", "<|vision_end|>"),
            ("image", "<|image_pad|>"),
            ("video", "<|video_pad|>"),
        )
    }
    text: dict[str, Any] = {
        "vocab_size": len(tokenizer),
        "hidden_size": 32,
        "intermediate_size": 48,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": 4096,
        "rope_parameters": {
            "rope_type": "default",
            "rope_theta": 10_000.0,
            "mrope_section": [2, 1, 1],
        },
        "bos_token_id": None,
        "eos_token_id": tokenizer.eos_token_id,
        "pad_token_id": tokenizer.pad_token_id,
    }
    vision: dict[str, Any] = {
        "depth": 2,
        "hidden_size": 32,
        "intermediate_size": 48,
        "num_heads": 2,
        "spatial_merge_size": 2,
        "temporal_patch_size": 2,
        "out_hidden_size": 32,
    }
    if family == "qwen2_5_vl":
        vision |= {"patch_size": 14, "window_size": 56, "fullatt_block_indexes": [1]}
        return Qwen2_5_VLConfig(text_config=text, vision_config=vision, **token_ids)
    text |= {"head_dim": 8}
    text["rope_parameters"]["mrope_interleaved"] = True
    vision |= {"patch_size": 16, "deepstack_visual_indexes": [0, 1], "num_position_embeddings": 36}
    return Qwen3VLConfig(text_config=text, vision_config=vision, **token_ids)
