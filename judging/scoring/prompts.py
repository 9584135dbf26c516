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
from judging.messages import Message
from judging.scoring.label_tree import LabelTree
from judging.tasks.base import Field, JudgeTask
from judging.types import JudgeRequest

if TYPE_CHECKING:
    from PIL.Image import Image
    from torch import Tensor

    from judging.models.backbones import Backbone

CUT_MARK = " [...] "
START_TOKEN, END_TOKEN = "<|im_start|>", "<|im_end|>"


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
    messages: tuple[Message, ...] = ()
    """The turns of a request before tokenization, for servers that tokenize themselves; empty for
    other conversations."""
    answer_ids: tuple[int, ...] = ()
    """Tokens of the assistant's turn so far, the end of ``suffix_ids``."""

    def extended(self, token_ids: Sequence[int]) -> EncodedPrompt:
        """Return the prompt with more tokens of the assistant's turn."""
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
        self._turn_start: int = backbone.tokenizer.convert_tokens_to_ids(START_TOKEN)

    def tree(self, labels: Sequence[str], end: str = END_TOKEN) -> LabelTree:
        """Lay label strings out as a tree of this backbone's tokens, each followed by ``end``."""
        closing = self.text(end)
        return LabelTree.build(labels, [[*self.text(label), *closing] for label in labels])

    def text(self, text: str) -> list[int]:
        """Return the tokens of trusted text; control tokens in it are control tokens."""
        ids: list[int] = self.backbone.tokenizer.encode(text, add_special_tokens=False)
        return ids

    def data(self, text: str) -> list[int]:
        """Return the tokens of untrusted text; control tokens in it are plain text."""
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
            FieldError: If an image cannot be read, or a prompt is longer than the backbone's
                context.
        """
        conversations, truncations = [], []
        for task, request in requests:
            text, truncated = self._item_text(task.item(request))
            instruction = Message(role="system", text=task.instruction(task.rubric(request)))
            user = Message(role="user", text=text, images=request.images)
            conversations.append((instruction, user))
            truncations.append(truncated)
        encoded = self._encode_conversations(conversations)
        prompts = []
        for messages, truncated, (ids, vision) in zip(
            conversations, truncations, encoded, strict=True
        ):
            # Control tokens of a request are plain text, so the second start is the user's turn.
            prefix = ids[: ids.index(self._turn_start, 1)]
            self._check_length(ids)
            positions = self.backbone.positions(ids, vision.get("image_grid_thw"))
            suffix = ids[len(prefix) :]
            prompts.append(EncodedPrompt(prefix, suffix, positions, vision, truncated, messages))
        return prompts

    def encode_conversation(self, messages: Sequence[Message]) -> EncodedPrompt:
        """Encode a free conversation of any length, without an instruction of ours.

        Raises:
            FieldError: If an image cannot be read.
        """
        [(ids, vision)] = self._encode_conversations([messages])
        positions = self.backbone.positions(ids, vision.get("image_grid_thw"))
        return EncodedPrompt((), ids, positions, vision, truncated=False)

    def encode_question(self, text: str, images: Sequence[str] = ()) -> EncodedPrompt:
        """Encode a question that the backbone is to answer, without an instruction of ours.

        Raises:
            FieldError: If an image cannot be read or the prompt is longer than the context.
        """
        prompt = self.encode_conversation([Message(role="user", text=text, images=tuple(images))])
        self._check_length(prompt.suffix_ids)
        return prompt

    def _check_length(self, ids: Sequence[int]) -> None:
        if len(ids) >= self.backbone.context:
            raise FieldError(
                "question",
                f"the prompt has {len(ids):,} tokens; {self.backbone.name} "
                f"reads {self.backbone.context:,}; shorten the question, references or choices",
            )

    def _encode_conversations(
        self, conversations: Sequence[Sequence[Message]]
    ) -> list[tuple[tuple[int, ...], dict[str, Tensor]]]:
        """Return the token ids and the pictures of each conversation."""
        import torch

        turns = [[_turn(message) for message in messages] for messages in conversations]
        pictured = [any(message.images for message in messages) for messages in conversations]
        text_only = [turns[i] for i, has_images in enumerate(pictured) if not has_images]
        text_ids = iter(self._apply_template(text_only)["input_ids"] if text_only else ())
        encoded: list[tuple[tuple[int, ...], dict[str, Tensor]]] = []
        for i, has_images in enumerate(pictured):
            if not has_images:
                encoded.append((tuple(next(text_ids)), {}))
                continue
            inputs = self._apply_template([turns[i]], has_images=True)
            vision = {
                key: torch.as_tensor(inputs[key])  # the PIL processor gives NumPy
                for key in ("pixel_values", "image_grid_thw")
            }
            encoded.append((tuple(inputs["input_ids"][0]), vision))
        return encoded

    def _apply_template(
        self,
        conversations: list[list[dict[str, Any]]],
        *,
        has_images: bool = False,
    ) -> Any:
        return self.backbone.processor.apply_chat_template(
            conversations,
            tokenize=True,
            return_dict=True,
            add_generation_prompt=True,
            sanitize_control_tokens=True,
            processor_kwargs={} if has_images else {"return_tensors": None},
        )

    def _item_text(self, fields: Sequence[Field]) -> tuple[str, bool]:
        """Return the text of a user message, and whether a response was cut."""
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


def _turn(message: Message) -> dict[str, Any]:
    """Return a message as the library's chat template takes it, with its pictures opened."""
    pictures = [{"type": "image", "image": read_image(source)} for source in message.images]
    return {"role": message.role, "content": [*pictures, {"type": "text", "text": message.text}]}


def read_image(source: str) -> Image:
    """Open a file path or a base64 data URL as an RGB picture.

    Raises:
        FieldError: If it cannot be read as a picture; the message never shows the content.
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
