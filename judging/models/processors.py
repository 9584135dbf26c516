"""The library's Qwen-VL processors without their video half, which would need torchvision."""

from __future__ import annotations

from typing import Any

from transformers import AutoImageProcessor, AutoTokenizer, ProcessorMixin
from transformers import Qwen2_5_VLProcessor as _Qwen2_5_VLProcessor
from transformers import Qwen3VLProcessor as _Qwen3VLProcessor


def _set_tokens(processor: Any, tokenizer: Any, names: dict[str, str]) -> None:
    for attribute, default in names.items():
        token = getattr(tokenizer, attribute, None) or default
        setattr(processor, attribute, token)
        setattr(processor, f"{attribute}_id", tokenizer.convert_tokens_to_ids(token))


# The library's classes have no types, and strict mypy wants a mark on subclasses of them.
class Qwen25ImageProcessor(_Qwen2_5_VLProcessor):  # type: ignore[misc]
    """Qwen2.5-VL's processor for text and images."""

    def __init__(
        self,
        image_processor: Any = None,
        tokenizer: Any = None,
        chat_template: str | None = None,
        **kwargs: Any,
    ) -> None:
        _set_tokens(
            self, tokenizer, {"image_token": "<|image_pad|>", "video_token": "<|video_pad|>"}
        )
        ProcessorMixin.__init__(self, image_processor, tokenizer, chat_template=chat_template)


class Qwen3ImageProcessor(_Qwen3VLProcessor):  # type: ignore[misc]
    """Qwen3-VL's processor for text and images."""

    def __init__(
        self,
        image_processor: Any = None,
        tokenizer: Any = None,
        chat_template: str | None = None,
        **kwargs: Any,
    ) -> None:
        _set_tokens(
            self,
            tokenizer,
            {
                "image_token": "<|image_pad|>",
                "video_token": "<|video_pad|>",
                "vision_start_token": "<|vision_start|>",
                "vision_end_token": "<|vision_end|>",
            },
        )
        ProcessorMixin.__init__(self, image_processor, tokenizer, chat_template=chat_template)


def load_processor(source: str, model_type: str, revision: str = "main") -> Any:
    """Load tokenizer, PIL image processor and chat template of a checkpoint folder or hub id."""
    tokenizer = AutoTokenizer.from_pretrained(source, revision=revision)
    images = AutoImageProcessor.from_pretrained(source, revision=revision, backend="pil")
    processor_class = Qwen3ImageProcessor if model_type == "qwen3_vl" else Qwen25ImageProcessor
    return processor_class(images, tokenizer, chat_template=tokenizer.chat_template)
