"""From a request to tokens: instruction prefix, item suffix, images, positions.

The chat template, placeholder expansion and image processing are the library's. Whatever comes
from outside (question, references, response) is data: control tokens inside it are encoded as
plain text. Every field is a turn of its own, which begins and ends with control tokens, so no text
can end its field and begin another.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from judging.errors import FieldError
from judging.files.pictures import PictureSize, picture_size, read_image, was_scaled
from judging.scoring.label_tree import LabelTree
from judging.tasks.base import Field, JudgeTask
from judging.types import END_TOKEN, START_TOKEN, JudgeRequest, Message, conversation

if TYPE_CHECKING:
    from PIL.Image import Image
    from torch import Tensor

    from judging.models.backbones import Backbone

CUT_MARK = " [...] "


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
    scaled_pictures: int = 0
    """Number of pictures that were larger than the backbone's limit and were scaled down."""
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


class PromptSize(NamedTuple):
    """Size of a prompt, from its text and from the headers of its pictures."""

    suffix_tokens: int
    """Tokens after the instruction, those of the pictures included."""
    scaled_pictures: tuple[str, ...]
    """Sources of the pictures that will be scaled down."""
    prefix_tokens: int
    """Tokens of the instruction."""


class Encoder:
    """Encodes requests for one backbone.

    Args:
        backbone: Loaded backbone; its processor's pixel limits apply.
        response_budget: Most tokens of one response; longer ones lose their middle.
        shows_all_pictures: Show the pictures of tasks that read text alone, too.
        is_untrained: Ask for critiques as one asks a model that has seen none in training.
    """

    def __init__(
        self,
        backbone: Backbone,
        response_budget: int = 1024,
        *,
        shows_all_pictures: bool = False,
        is_untrained: bool = False,
    ) -> None:
        self.backbone = backbone
        self.response_budget = response_budget
        self.shows_all_pictures = shows_all_pictures
        self.is_untrained = is_untrained
        self._turn_start: int = backbone.tokenizer.convert_tokens_to_ids(START_TOKEN)
        self._around: dict[tuple[str, int, int], tuple[int, int]] = {}

    @cached_property
    def twin(self) -> Encoder:
        """Return an equal encoder for one other thread; see :meth:`counter` for why."""
        twin = copy.copy(self)
        twin.backbone = replace(self.backbone, processor=copy.deepcopy(self.backbone.processor))
        return twin

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

    def pictures(self, task: JudgeTask, request: JudgeRequest) -> tuple[str, ...]:
        """Return the pictures of a request that the model sees."""
        return request.images if self.shows_all_pictures else task.pictures(request)

    def instruction(self, task: JudgeTask, request: JudgeRequest) -> str:
        """Return the instruction of a request, the same for all of its rubric and mode."""
        rubric = task.rubric(request)
        if self.is_untrained and request.mode == "critique":
            return task.untrained_instruction(rubric)
        return task.instruction(rubric)

    def counter(self) -> Callable[[str], int]:
        """Make a function that counts the tokens of untrusted text, for any thread to call.

        How control tokens are read is a setting of a whole tokenizer, so two threads cannot share
        one; the function has its own. Call this before another thread encodes.
        """
        tokenizer = copy.deepcopy(self.backbone.tokenizer.backend_tokenizer)
        tokenizer.encode_special_tokens = True
        tokenizer.no_truncation()

        def count(text: str) -> int:
            # Other threads go on meanwhile: no list of tokens is made, which would hold Python.
            (encoding,) = tokenizer.encode_batch_fast([text], add_special_tokens=False)
            return len(encoding)

        return count

    def encode(self, requests: Sequence[tuple[JudgeTask, JudgeRequest]]) -> list[EncodedPrompt]:
        """Encode requests, each under its task; one library call for all that have no images.

        Raises ``FieldError`` if an image cannot be read or a prompt is longer than the context.
        """
        conversations, truncations = [], []
        for task, request in requests:
            texts, truncated = self._field_texts(task.item(request))
            told = self.instruction(task, request)
            conversations.append(conversation(told, texts, self.pictures(task, request)))
            truncations.append(truncated)
        encoded = self._encode_conversations(conversations)
        prompts = []
        for (_, request), messages, truncated, (ids, vision, num_scaled) in zip(
            requests, conversations, truncations, encoded, strict=True
        ):
            prefix = ids[: self._prefix_length(ids)]
            self._check_length(len(ids), request)
            positions = self.backbone.positions(ids, vision.get("image_grid_thw"))
            suffix = ids[len(prefix) :]
            prompts.append(
                EncodedPrompt(prefix, suffix, positions, vision, truncated, num_scaled, messages)
            )
        return prompts

    def measure(self, requests: Sequence[tuple[JudgeTask, JudgeRequest]]) -> Iterator[PromptSize]:
        """Measure the prompts of requests as :meth:`encode` makes them; no picture is decoded.

        The texts of all requests are tokenized in one call; the ``FieldError`` of a picture or a
        length is raised when the size of its request is due.
        """
        fields = [self._field_texts(task.item(request))[0] for task, request in requests]
        encoded = self.backbone.tokenizer(
            [text for texts in fields for text in texts],
            add_special_tokens=False,
            split_special_tokens=True,
            return_attention_mask=False,
        )
        lengths = map(len, encoded["input_ids"])
        most, sizes = self.backbone.pixels.max_pixels, dict[str, PictureSize]()
        for (task, request), texts in zip(requests, fields, strict=True):
            shown = self.pictures(task, request)
            for name in set(shown) - sizes.keys():
                sizes[name] = picture_size(name)
            pictures = sum(self.backbone.num_picture_tokens(sizes[name]) for name in shown)
            prefix, around = self._tokens_around(
                self.instruction(task, request), len(texts), len(shown)
            )
            num_tokens = prefix + around + sum(islice(lengths, len(texts))) + pictures
            self._check_length(num_tokens, request)
            scaled = tuple(n for n in dict.fromkeys(shown) if sizes[n].pixels > most)
            yield PromptSize(num_tokens - prefix, scaled, prefix)

    def _tokens_around(
        self, instruction: str, num_fields: int, num_pictures: int
    ) -> tuple[int, int]:
        """Count the tokens of the instruction, and those of the template around the fields."""
        key = (instruction, num_fields, num_pictures)
        if key not in self._around:
            text, source = "Question: a", "picture"
            opened: dict[str, Image] = {}
            if num_pictures:
                from PIL.Image import new

                images = self.backbone.processor.image_processor
                side = images.patch_size * images.merge_size
                opened[source] = new("RGB", (side, side))  # of one token
            turns = [
                _turn(message, opened)
                for message in conversation(
                    instruction, [text] * num_fields, (source,) * num_pictures
                )
            ]
            options = {"do_resize": False} if num_pictures else None
            ids = list(self._apply_template([turns], options)["input_ids"][0])  # a token a picture
            prefix, of_fields = self._prefix_length(ids), num_fields * len(self.data(text))
            self._around[key] = prefix, len(ids) - prefix - num_pictures - of_fields
        return self._around[key]

    def _prefix_length(self, ids: Sequence[int]) -> int:
        """Tell how many tokens the instruction has."""
        # Control tokens of a request are plain text, so the second start is the first field's turn.
        return ids.index(self._turn_start, 1)

    def encode_conversation(self, messages: Sequence[Message]) -> EncodedPrompt:
        """Encode a free conversation of any length, without an instruction of ours."""
        [(ids, vision, num_scaled)] = self._encode_conversations([messages])
        positions = self.backbone.positions(ids, vision.get("image_grid_thw"))
        return EncodedPrompt((), ids, positions, vision, False, num_scaled)

    def encode_question(self, text: str, images: Sequence[str] = ()) -> EncodedPrompt:
        """Encode a question that the backbone is to answer, without an instruction of ours."""
        prompt = self.encode_conversation([Message(role="user", text=text, images=tuple(images))])
        self._check_length(len(prompt.suffix_ids))
        return prompt

    def _check_length(self, num_tokens: int, request: JudgeRequest | None = None) -> None:
        if num_tokens >= self.backbone.context:
            raise FieldError(
                longest_field(request) if request else "question",
                f"the prompt has {num_tokens:,} tokens; {self.backbone.name} "
                f"reads {self.backbone.context:,}; shorten the question, references or choices",
            )

    def _encode_conversations(
        self, conversations: Sequence[Sequence[Message]]
    ) -> list[tuple[tuple[int, ...], dict[str, Tensor], int]]:
        """Return token ids, pictures and the number of scaled ones of each conversation."""
        import torch

        pictured = [any(message.images for message in messages) for messages in conversations]
        text_only = [
            [_turn(message, {}) for message in messages]
            for messages, has_images in zip(conversations, pictured, strict=True)
            if not has_images
        ]
        text_ids = iter(self._apply_template(text_only)["input_ids"] if text_only else ())
        encoded: list[tuple[tuple[int, ...], dict[str, Tensor], int]] = []
        for messages, has_images in zip(conversations, pictured, strict=True):
            if not has_images:
                encoded.append((tuple(next(text_ids)), {}, 0))
                continue
            opened, num_scaled = self._open_pictures(messages)
            turns = [_turn(message, opened) for message in messages]
            inputs = self._apply_template([turns], {})
            vision = {
                key: torch.as_tensor(inputs[key])  # the PIL processor gives NumPy
                for key in ("pixel_values", "image_grid_thw")
            }
            encoded.append((tuple(inputs["input_ids"][0]), vision, num_scaled))
        return encoded

    def _open_pictures(self, messages: Sequence[Message]) -> tuple[dict[str, Image], int]:
        """Return the pictures of a conversation by source, and how many are to be scaled down."""
        sources = [source for message in messages for source in message.images]
        opened = {source: read_image(source) for source in dict.fromkeys(sources)}
        for picture in opened.values():
            self.backbone.num_picture_tokens(PictureSize(*picture.size))  # refuses narrow ones
        most = self.backbone.pixels.max_pixels
        num_scaled = sum(
            was_scaled(name) or math.prod(opened[name].size) > most for name in sources
        )
        return opened, num_scaled

    def _apply_template(
        self, conversations: list[list[dict[str, Any]]], image_options: dict[str, Any] | None = None
    ) -> Any:
        """Return tokens and pictures of conversations; options only where there are pictures."""
        return self.backbone.processor.apply_chat_template(
            conversations,
            tokenize=True,
            return_dict=True,
            add_generation_prompt=True,
            sanitize_control_tokens=True,
            processor_kwargs={"return_tensors": None} if image_options is None else image_options,
        )

    def _field_texts(self, fields: Sequence[Field]) -> tuple[list[str], bool]:
        """Return the texts of the user's turns, and whether a response was cut."""
        texts, truncated = [], False
        for field in fields:
            text = field.shown
            if field.is_response:
                text, cut = self._cut_middle(text)
                truncated |= cut
            texts.append(f"{field.heading}: {text}")
        return texts, truncated

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


def longest_field(request: JudgeRequest) -> str:
    """Name the field with most text of those that a judge reads whole."""
    names = ("question", "choices", "references", "criteria")
    return max(names, key=lambda name: len("".join(getattr(request, name))))


def _turn(message: Message, opened: Mapping[str, Image]) -> dict[str, Any]:
    """Return a message as the library's chat template takes it, with its opened pictures."""
    pictures = [{"type": "image", "image": opened[source]} for source in message.images]
    return {"role": message.role, "content": [*pictures, {"type": "text", "text": message.text}]}
