"""From a request to tokens: instruction prefix, item suffix, images, positions.

The chat template, placeholder expansion and image processing are the library's. Whatever comes
from outside (question, references, response) is data: control tokens inside it are encoded as
plain text.
"""

from __future__ import annotations

import base64
import copy
import io
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from judging.errors import FieldError
from judging.scoring.label_tree import LabelTree
from judging.tasks.base import Field, JudgeTask
from judging.types import JudgeRequest

if TYPE_CHECKING:
    from PIL.Image import Image
    from torch import Tensor

    from judging.models.backbones import Backbone

CUT_MARK = " [...] "
END_TOKEN = "<|im_end|>"


@dataclass(frozen=True)
class Turns:
    """A prompt before it is rendered and tokenized: for servers that do this themselves."""

    instruction: str
    text: str
    images: tuple[str, ...]
    """As in the request; they come before the text."""


@dataclass(frozen=True)
class EncodedPrompt:
    """A prompt up to where the label begins."""

    prefix_ids: tuple[int, ...]
    """The instruction turn, the same for every request of a rubric."""
    suffix_ids: tuple[int, ...]
    """Everything after it, to the start of the assistant's turn."""
    positions: Tensor
    """``[3, P + S]`` int64: temporal, height and width positions of all tokens."""
    vision: dict[str, Tensor]
    """``pixel_values`` and ``image_grid_thw``, empty without images."""
    truncated: bool
    """Text was cut from the middle of a response."""
    turns: Turns | None = None
    """What was rendered; ``None`` for a prompt that is no request's."""
    answer_ids: tuple[int, ...] = ()
    """Tokens of the assistant's turn so far, the end of ``suffix_ids``."""

    def extended(self, token_ids: Sequence[int]) -> EncodedPrompt:
        """The prompt with more tokens of the assistant's turn."""
        import torch

        start = int(self.positions.max()) + 1
        more = torch.arange(start, start + len(token_ids)).expand(3, -1)
        return replace(
            self,
            suffix_ids=(*self.suffix_ids, *token_ids),
            answer_ids=(*self.answer_ids, *token_ids),
            positions=torch.cat([self.positions, more], dim=1),
        )


class Encoder:
    """Encodes requests for one backbone.

    Args:
        backbone: Loaded backbone; its processor's pixel limits apply.
        response_budget: Most tokens of one response; longer ones lose their middle.
    """

    def __init__(self, backbone: Backbone, response_budget: int = 1024) -> None:
        self.backbone = backbone
        self.response_budget = response_budget
        self._prefixes: dict[str, tuple[int, ...]] = {}

    def tree(self, labels: Sequence[str], end: str = END_TOKEN) -> LabelTree:
        """Label tree of label strings under this backbone's tokenizer, each followed by ``end``."""
        closing = self.text(end)
        return LabelTree.build(labels, [[*self.text(label), *closing] for label in labels])

    def text(self, text: str) -> list[int]:
        """Tokens of trusted text; control tokens in it are control tokens."""
        ids: list[int] = self.backbone.tokenizer.encode(text, add_special_tokens=False)
        return ids

    def data(self, text: str) -> list[int]:
        """Tokens of untrusted text; control tokens in it are plain text."""
        ids: list[int] = self.backbone.tokenizer.encode(
            text, add_special_tokens=False, split_special_tokens=True
        )
        return ids

    def counter(self) -> Callable[[str], int]:
        """Make a function that counts the tokens of untrusted text, for any thread to call.

        How control tokens are read is a setting of a whole tokenizer, so two threads cannot share
        one; the function has its own. Call this before another thread encodes.
        """
        tokenizer, lock = copy.deepcopy(self.backbone.tokenizer), threading.Lock()

        def count(text: str) -> int:
            with lock:
                ids = tokenizer.encode(text, add_special_tokens=False, split_special_tokens=True)
            return len(ids)

        return count

    def encode(self, requests: Sequence[tuple[JudgeTask, JudgeRequest]]) -> list[EncodedPrompt]:
        """Encode requests, each under its task; one library call for all that have no images.

        Raises:
            CustosError: If an image cannot be read, or a prompt is longer than the backbone's
                context; the message names the field.
        """
        import torch

        cut = [self._fields(task.item(request)) for task, request in requests]
        instructions = [task.instruction(task.rubric(request)) for task, request in requests]
        images = [[read_image(source) for source in request.images] for _, request in requests]
        conversations = [
            _conversation(instruction, text, len(pictures))
            for instruction, (text, _), pictures in zip(instructions, cut, images, strict=True)
        ]
        text_only = [i for i, pictures in enumerate(images) if not pictures]
        token_ids: dict[int, list[int]] = {}
        if text_only:
            encoded = self._template([conversations[i] for i in text_only], [])
            token_ids = dict(zip(text_only, encoded["input_ids"], strict=True))
        prompts = []
        for i, instruction in enumerate(instructions):
            prefix = self._prefix(instruction)
            vision: dict[str, Any] = {}
            if images[i]:
                encoded = self._template([conversations[i]], images[i])
                token_ids[i] = encoded["input_ids"][0]
                for key in ("pixel_values", "image_grid_thw"):  # the PIL processor gives NumPy
                    vision[key] = torch.as_tensor(encoded[key])
            ids = tuple(token_ids[i])
            if ids[: len(prefix)] != prefix:
                raise RuntimeError("the chat template does not put the instruction first")
            self._check_length(ids)
            positions = self.backbone.positions(ids, vision.get("image_grid_thw"))
            turns = Turns(instruction, cut[i][0], requests[i][1].images)
            prompts.append(
                EncodedPrompt(prefix, ids[len(prefix) :], positions, vision, cut[i][1], turns)
            )
        return prompts

    def encode_question(self, text: str, images: Sequence[str] = ()) -> EncodedPrompt:
        """Encode a bare question, which is to be answered, without any instruction of ours.

        Raises:
            CustosError: If an image cannot be read or the prompt is longer than the context.
        """
        import torch

        pictures = [read_image(source) for source in images]
        encoded = self._template([_conversation("", text, len(pictures))[1:]], pictures)
        ids = tuple(encoded["input_ids"][0])
        self._check_length(ids)
        vision = {
            key: torch.as_tensor(encoded[key])
            for key in ("pixel_values", "image_grid_thw")
            if pictures
        }
        positions = self.backbone.positions(ids, vision.get("image_grid_thw"))
        return EncodedPrompt((), ids, positions, vision, truncated=False)

    def _check_length(self, ids: Sequence[int]) -> None:
        if len(ids) >= self.backbone.context:
            raise FieldError(
                "question",
                f"the prompt has {len(ids):,} tokens; {self.backbone.name} "
                f"reads {self.backbone.context:,}; shorten the question, references or choices",
            )

    def _prefix(self, instruction: str) -> tuple[int, ...]:
        if instruction not in self._prefixes:
            system_turn = _conversation(instruction, "", 0)[:1]
            encoded = self._template([system_turn], [], add_generation_prompt=False)
            self._prefixes[instruction] = tuple(encoded["input_ids"][0])
        return self._prefixes[instruction]

    def _template(
        self,
        conversations: list[list[dict[str, Any]]],
        images: list[Image],
        add_generation_prompt: bool = True,
    ) -> Any:
        """Render and tokenize; pictures, if any, belong to the single conversation."""
        for conversation in conversations:
            pictures = iter(images)
            for part in conversation[-1]["content"]:
                if part["type"] == "image":
                    part["image"] = next(pictures)
        return self.backbone.processor.apply_chat_template(
            conversations,
            tokenize=True,
            return_dict=True,
            add_generation_prompt=add_generation_prompt,
            sanitize_control_tokens=True,
            processor_kwargs={"return_tensors": None} if not images else {},
        )

    def _fields(self, fields: Sequence[Field]) -> tuple[str, bool]:
        """Item text, and whether a response was cut."""
        lines, truncated = [], False
        for field in fields:
            text = field.text.strip()
            if field.is_response:
                text, cut = self._cut_middle(text)
                truncated |= cut
            lines.append(f"{field.heading}: {text}")
        return "\n".join(lines), truncated

    def _cut_middle(self, text: str) -> tuple[str, bool]:
        if len(text.encode()) <= self.response_budget:  # a token is at least one byte
            return text, False
        encoded = self.backbone.tokenizer(
            text, add_special_tokens=False, return_offsets_mapping=True, split_special_tokens=True
        )
        offsets = encoded["offset_mapping"]
        if len(offsets) <= self.response_budget:
            return text, False
        head = self.response_budget // 2
        tail = self.response_budget - head
        start = offsets[head - 1][1] if head else 0
        return text[:start] + CUT_MARK + text[offsets[-tail][0] :], True


def _conversation(instruction: str, text: str, num_images: int) -> list[dict[str, Any]]:
    content: list[dict[str, Any]] = [{"type": "image"} for _ in range(num_images)]
    return [
        {"role": "system", "content": [{"type": "text", "text": instruction}]},
        {"role": "user", "content": [*content, {"type": "text", "text": text}]},
    ]


def read_image(source: str) -> Image:
    """Open a file path or a base64 data URL as an RGB picture.

    Raises:
        CustosError: If it cannot be read as a picture; the message never shows the content.
    """
    from PIL import Image, UnidentifiedImageError

    try:
        if source.startswith("data:"):
            header, _, payload = source.partition(",")
            if not header.endswith(";base64"):
                raise FieldError("images", "a data URL must be base64")
            data: Any = io.BytesIO(base64.b64decode(payload, validate=True))
        else:
            data = Path(source)
        with Image.open(data) as picture:
            return picture.convert("RGB")
    # A PNG with a broken chunk raises SyntaxError, one that ends too soon may raise EOFError.
    except (
        *(OSError, ValueError, SyntaxError, EOFError),
        *(UnidentifiedImageError, Image.DecompressionBombError),
    ):
        name = "data URL" if source.startswith("data:") else f"'{source}'"
        raise FieldError("images", f"{name} is not a readable picture") from None
