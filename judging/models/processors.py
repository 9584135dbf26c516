"""The library's Qwen-VL processors without their video half, which would need torchvision."""

from __future__ import annotations

from typing import Any, ClassVar

from transformers import (
    AutoImageProcessor,
    AutoTokenizer,
    ProcessorMixin,
    Qwen2_5_VLProcessor,
    Qwen3VLProcessor,
)


class _WithoutVideo:
    """Makes a processor of a tokenizer and an image processor alone."""

    special_tokens: ClassVar[dict[str, str]]
    """Attribute of the processor to its token, for tokenizers that do not name it."""

    def __init__(
        self,
        image_processor: Any = None,
        tokenizer: Any = None,
        chat_template: str | None = None,
        **kwargs: Any,
    ) -> None:
        for attribute, default in self.special_tokens.items():
            token = getattr(tokenizer, attribute, None) or default
            setattr(self, attribute, token)
            setattr(self, f"{attribute}_id", tokenizer.convert_tokens_to_ids(token))
        ProcessorMixin.__init__(self, image_processor, tokenizer, chat_template=chat_template)


# The library's classes have no types, and strict mypy wants a mark on subclasses of them.
class Qwen25ImageProcessor(_WithoutVideo, Qwen2_5_VLProcessor):  # type: ignore[misc]
    """Qwen2.5-VL's processor for text and images."""

    special_tokens: ClassVar = {"image_token": "<|image_pad|>", "video_token": "<|video_pad|>"}


class Qwen3ImageProcessor(_WithoutVideo, Qwen3VLProcessor):  # type: ignore[misc]
    """Qwen3-VL's processor for text and images."""

    special_tokens: ClassVar = {
        "image_token": "<|image_pad|>",
        "video_token": "<|video_pad|>",
        "vision_start_token": "<|vision_start|>",
        "vision_end_token": "<|vision_end|>",
    }


def load_processor(source: str, model_type: str, revision: str = "main") -> Any:
    """Load tokenizer, PIL image processor and chat template of a checkpoint folder or hub id."""
    tokenizer = AutoTokenizer.from_pretrained(source, revision=revision)
    images = AutoImageProcessor.from_pretrained(source, revision=revision, backend="pil")
    processor_class = Qwen3ImageProcessor if model_type == "qwen3_vl" else Qwen25ImageProcessor
    return processor_class(images, tokenizer, chat_template=tokenizer.chat_template)
