"""The library's Qwen-VL processors without their video half, which would need torchvision."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

from jinja2.exceptions import TemplateError
from transformers import (
    AutoTokenizer,
    ProcessorMixin,
    Qwen2_5_VLProcessor,
    Qwen2VLImageProcessorPil,
    Qwen3VLProcessor,
)

from judging.errors import CustosError
from judging.models.checkpoints import TEMPLATE_JSON, reading

_TOKENIZER_FILES = ("tokenizer_config.json", "tokenizer.json", "vocab.json", "merges.txt")
_IMAGE_FILES = ("preprocessor_config.json", "processor_config.json")
_TEMPLATE_FILES = (TEMPLATE_JSON, "chat_template.jinja")


class _WithoutVideo:
    """Makes a processor of a tokenizer and an image processor alone."""

    chat_template: str
    special_tokens: ClassVar[dict[str, str]]
    """Attribute of the processor to its token, for tokenizers that do not name it."""

    def __init__(
        self,
        image_processor: Any = None,
        tokenizer: Any = None,
        chat_template: str = "",
        **kwargs: Any,
    ) -> None:
        for attribute, default in self.special_tokens.items():
            token = getattr(tokenizer, attribute, None) or default
            setattr(self, attribute, token)
            setattr(self, f"{attribute}_id", tokenizer.convert_tokens_to_ids(token))
        ProcessorMixin.__init__(self, image_processor, tokenizer, chat_template=chat_template)

    def apply_chat_template(self, conversation: Any, *args: Any, **kwargs: Any) -> Any:
        """Apply the template so that the answer comes at once, not after a thought (Qwen3.5)."""
        if "enable_thinking" in self.chat_template:  # others would warn of an unknown argument
            kwargs["enable_thinking"] = False
        return super().apply_chat_template(conversation, *args, **kwargs)  # type: ignore[misc]  # untyped


class Qwen25ImageProcessor(_WithoutVideo, Qwen2_5_VLProcessor):  # type: ignore[misc]  # untyped
    """Qwen2-VL's and Qwen2.5-VL's processor for text and images."""

    special_tokens: ClassVar = {"image_token": "<|image_pad|>", "video_token": "<|video_pad|>"}


class Qwen3ImageProcessor(_WithoutVideo, Qwen3VLProcessor):  # type: ignore[misc]  # untyped
    """Qwen3-VL's and Qwen3.5's processor for text and images."""

    special_tokens: ClassVar = {
        "image_token": "<|image_pad|>",
        "video_token": "<|video_pad|>",
        "vision_start_token": "<|vision_start|>",
        "vision_end_token": "<|vision_end|>",
    }


def load_processor(folder: Path, model_type: str) -> Any:
    """Load tokenizer, PIL image processor and chat template of a checkpoint.

    Published checkpoints have the template for pictures in a file of the processor
    (``chat_template.json`` or, if there is none, ``chat_template.jinja``); the one of their
    tokenizer may take text only.

    Raises:
        CustosError: If a file has a value that the library cannot use, or the template cannot
            place a picture or lets every answer begin with a thought.
    """
    source = str(folder)
    processor_class = (
        Qwen3ImageProcessor if model_type.startswith("qwen3") else Qwen25ImageProcessor
    )
    with reading(folder, *_TOKENIZER_FILES, *_TEMPLATE_FILES):
        tokenizer = AutoTokenizer.from_pretrained(source)
    with reading(folder, *_IMAGE_FILES):
        # The class is named, because older checkpoints name classes that the library no longer has.
        images = Qwen2VLImageProcessorPil.from_pretrained(source)
    with reading(folder, *_IMAGE_FILES, *_TEMPLATE_FILES):
        files, _ = processor_class.get_processor_dict(source)
    template = files.get("chat_template") or tokenizer.chat_template
    if isinstance(template, dict):  # several templates by name
        template = template.get("default")
    if not template:
        raise CustosError(_bad_template(source, "there is none"))
    processor = processor_class(images, tokenizer, chat_template=template)
    _check_template(source, processor)
    return processor


def _check_template(source: str, processor: Any) -> None:
    """Render a short conversation with a picture."""
    text = {"type": "text", "text": "?"}
    turns = [
        {"role": "system", "content": [text]},
        {"role": "user", "content": [{"type": "image"}, text]},
    ]
    try:
        prompt = processor.apply_chat_template(turns, add_generation_prompt=True)
    except (TypeError, ValueError, TemplateError) as error:
        raise CustosError(_bad_template(source, f"it fails on a picture: {error}")) from None
    if processor.image_token not in prompt:
        raise CustosError(_bad_template(source, "it leaves pictures out"))
    if prompt.rstrip().endswith("<think>"):
        raise CustosError(
            f"backbone '{source}': its chat template begins every answer with a thought; use the "
            f"Instruct checkpoint of the family"
        )


def _bad_template(source: str, reason: str) -> str:
    return (
        f"backbone '{source}': the chat template is not one for pictures ({reason}); copy "
        f"chat_template.json or chat_template.jinja of the published checkpoint into the folder"
    )
