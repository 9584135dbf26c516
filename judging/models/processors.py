"""What turns conversations into tokens and pictures, by family.

Vision families have the library's Qwen-VL processors without their video half, which would need
torchvision.
"""

from pathlib import Path
from typing import Any, ClassVar

from transformers import (
    AutoTokenizer,
    ProcessorMixin,
    Qwen2_5_VLProcessor,
    Qwen2VLImageProcessorPil,
    Qwen3VLProcessor,
)

from judging.errors import CustosError
from judging.models.checkpoints import TEMPLATE_JSON, TEXT_FAMILIES, reading
from judging.types import END_TOKEN, START_TOKEN

_TOKENIZER_FILES = ("tokenizer_config.json", "tokenizer.json", "vocab.json", "merges.txt")
IMAGE_FILES = ("preprocessor_config.json", "processor_config.json")
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


class TextProcessor:
    """A tokenizer with its chat template, used as a processor of families that read text alone."""

    image_processor = None

    def __init__(self, tokenizer: Any, chat_template: str) -> None:
        self.tokenizer = tokenizer
        self.chat_template = chat_template

    def apply_chat_template(
        self, conversation: Any, *, processor_kwargs: Any = None, **kwargs: Any
    ) -> Any:
        """Apply the template as a processor does, to turns whose parts are all text."""
        if "enable_thinking" in self.chat_template:
            kwargs["enable_thinking"] = False
        kwargs.setdefault("tokenize", False)
        is_batch = isinstance(conversation[0], list)
        conversations = [
            [
                {**turn, "content": "".join(part["text"] for part in turn["content"])}
                for turn in turns
            ]
            for turns in (conversation if is_batch else [conversation])
        ]
        return self.tokenizer.apply_chat_template(
            conversations if is_batch else conversations[0],
            chat_template=self.chat_template,
            **(processor_kwargs or {}),
            **kwargs,
        )


def load_processor(folder: Path, model_type: str) -> Any:
    """Load tokenizer, PIL image processor and chat template of a checkpoint.

    Published checkpoints have the template for pictures in a file of the processor
    (``chat_template.json`` or, if there is none, ``chat_template.jinja``); the one of their
    tokenizer may take text only. Raises ``CustosError`` if the template cannot place a picture or
    lets every answer begin with a thought, or a file cannot be used.
    """
    source = str(folder)
    processor_class = (
        Qwen3ImageProcessor if model_type.startswith("qwen3") else Qwen25ImageProcessor
    )
    with reading(folder, *_TOKENIZER_FILES, *_TEMPLATE_FILES):
        tokenizer = AutoTokenizer.from_pretrained(source)
    for token in (START_TOKEN, END_TOKEN):
        if token not in tokenizer.added_tokens_encoder:
            raise CustosError(
                f"backbone '{source}': its tokenizer has no control token '{token}', which begins "
                f"or ends every turn of a prompt; use a checkpoint with Qwen's chat format"
            )
    if model_type in TEXT_FAMILIES:
        processor = TextProcessor(tokenizer, _chosen(source, tokenizer.chat_template))
        _check_template(source, processor)
        return processor
    with reading(folder, *IMAGE_FILES):
        # The class is named, because older checkpoints name classes that the library no longer has.
        images = Qwen2VLImageProcessorPil.from_pretrained(source)
    with reading(folder, *IMAGE_FILES, *_TEMPLATE_FILES):
        files, _ = processor_class.get_processor_dict(source)
    template = _chosen(source, files.get("chat_template") or tokenizer.chat_template)
    processor = processor_class(images, tokenizer, chat_template=template)
    _check_template(source, processor)
    return processor


def _chosen(source: str, template: str | dict[str, str] | None) -> str:
    """Return a chat template, the default one of several by name."""
    if isinstance(template, dict):
        template = template.get("default")
    if not template:
        raise _bad_template(source, "there is none")
    return template


def _check_template(source: str, processor: Any) -> None:
    """Render a short request, with a picture if the family reads any.

    Each of its texts must stand in a turn of its own, as it is, and no date may stand beside it.
    """
    texts = ["Say how.", "Question: Who?", "Ground truth: Ann", "Response: It is Bob."]
    turns = [{"role": "user", "content": [{"type": "text", "text": text}]} for text in texts]
    turns[0]["role"] = "system"
    if processor.image_processor:
        turns[1]["content"] = [{"type": "image"}, {"type": "text", "text": texts[1]}]
    dates = ("1", "2") if "strftime_now" in processor.chat_template else ("",)
    options = [{"strftime_now": lambda _, date=date: date} if date else {} for date in dates]
    try:
        prompt, *others = (
            processor.apply_chat_template(turns, add_generation_prompt=True, **option)
            for option in options
        )
    except Exception as error:  # noqa: BLE001 (a template is a program)
        raise _bad_template(source, f"it fails: {error}") from None
    parts = prompt.split(START_TOKEN)  # by which a judge knows where a text begins
    places = [next((at for at, part in enumerate(parts) if text in part), 0) for text in texts]
    lacks_picture = processor.image_processor and processor.image_token not in prompt
    for reason, is_so in (
        (f"it begins a turn without {START_TOKEN}, leaves out or changes the text of one",
         0 in places),
        ("it joins turns", places != sorted(set(places))),
        ("it does not begin the turn of the answer", places[-1] == len(parts) - 1),
        ("it prints the date, so verdicts would change with it", others and others[0] != prompt),
        ("it leaves pictures out", lacks_picture),
    ):  # fmt: skip
        if is_so:
            raise _bad_template(source, reason)
    if prompt.rstrip().endswith("<think>"):
        raise CustosError(
            f"backbone '{source}': its chat template begins every answer with a thought; use the "
            f"Instruct checkpoint of the family"
        )


def _bad_template(source: str, reason: str) -> CustosError:
    reason = " ".join(reason.split())
    return CustosError(
        f"backbone '{source}': the chat template cannot be used ({reason}); copy "
        f"chat_template.json or chat_template.jinja of the published checkpoint into the folder"
    )
