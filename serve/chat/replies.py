"""Replies to chat clients: verdicts in the words of benchmark scripts, and free text."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from judging import CustosError, JudgeRequest, Verdict
from judging.errors import FieldError
from judging.judge import Judge
from judging.judge.best_judge import Familiarity, familiarity
from judging.tasks import get_task
from judging.types import Message, ReferenceMode, score_of
from serve.calls.errors import ApiError
from serve.calls.limits import MAX_SEED
from serve.calls.waiting import Deadline
from serve.chat.contract import JSON_REPLY, Contract
from serve.chat.layout import ALTERNATIVES, PromptFields, PromptLayout, decoded
from serve.chat.messages import ChatRequest, Turn
from serve.chat.models import ChatModel
from serve.chat.slots import (
    Boolean,
    Decision,
    Label,
    Score,
    Slot,
    Text,
    choice_piece,
    object_pieces,
    text_value,
)
from serve.chat.structured import form_of_schema, is_verdict
from serve.chat.wire import Ending, Piece, Reply
from serve.queue.intake import CheckedRequest, TokenCounter, picture_tokens, text_tokens
from serve.queue.service import Service
from serve.requests.parse import check_items, check_request, refusal

if TYPE_CHECKING:
    from judging.scoring.engine import Sampling

PROBES = ("hello", "hi", "ping", "test")
"""Lone messages of clients that only ask if anybody answers, as VLMEvalKit does."""
NEUTRAL = str.maketrans("<>", "‹›")
"""A critique may quote a response, so nothing in it may look like a tag of the reply."""
NAMED_KEY = re.compile(
    r"[\"'“](\w{1,40})[\"'”]\s*:|\b(\w{1,40})\s*:\s*(?:string|bool|boolean|number|int|integer|float)\b"
)
"""A key as prompts write it that ask for a JSON object."""
MAX_NEW_TOKENS = 4096
"""A larger ``max_tokens`` is taken as this. A reply that reaches it ends with ``length``."""
DEFAULT_NEW_TOKENS = 512
MAX_STOP_CHARS = 1000


def ready_text(chat: ChatRequest, model: ChatModel) -> str | None:
    """Write the reply that needs no judge: to a probe, or to a prompt for the steps of a criterion.

    Return ``None`` for other prompts.
    """
    if len(chat.messages) == 1 and chat.messages[0].text.strip(" .!?").lower() in PROBES:
        return f"Hello, this is {model.name}."
    steps = model.contract and model.contract.steps
    fields = steps and steps.cut(*chat.prompt)
    if not fields or not fields.is_certain:
        return None
    return f'{{"steps": [{text_value(fields.texts["criterion"])}]}}'


async def ready_reply(chat: ChatRequest, service: Service, judge: str, text: str) -> Reply:
    """Yield a text that is known already, and its end."""
    yield Piece(text)
    yield await _ending("stop", service, judge, chat.text, text)


@dataclass(frozen=True)
class ScriptPrompt:
    """A prompt of a benchmark script, and what it asks."""

    contract: Contract
    layout: PromptLayout
    request: JudgeRequest
    form: Mapping[str, Slot] | None
    """Keys of the JSON object that the reply is; ``None``: it is a text."""
    tool: str | None
    """Name of the tool whose arguments the object is."""
    text: str
    """The text of all messages, to count its tokens."""
    note: str
    """What the reply must say of the judge."""

    @property
    def shows_critique(self) -> bool:
        """Tell whether the reply, as a text, holds the critique."""
        return self.contract.has_critique and self.form is None


def read_prompt(
    chat: ChatRequest, contract: Contract, service: Service, judge: str
) -> ScriptPrompt:
    """Cut a prompt into the fields of a request, as a judge takes it, and check the request.

    Its pictures are left as they are. Raises ``ApiError`` 422 if the fields cannot be told apart,
    or the task does not take the request.
    """
    text, system = chat.prompt
    layout, fields = contract.read(text, system)
    form, tool = _form(chat, contract, layout, fields)
    texts = fields.texts
    references, reference_mode = _references(contract, layout, texts.get("reference", ""))
    names = ("response_a", "response_b") if "response_a" in texts else ("response",)
    if not {*names} <= texts.keys():
        raise ApiError(422, "the prompt holds no response to judge", "messages")
    has_critique = contract.has_critique and (
        form is None or any(isinstance(slot, Text) for slot in form.values())
    )
    context = texts.get("context", "")
    request = JudgeRequest.model_construct(
        task=contract.task,
        variant=layout.variant,
        question="\n\nContext:\n".join(filter(None, (texts.get("question", ""), context))),
        references=references,
        reference_mode=reference_mode,
        criteria=tuple(filter(None, (texts.get("criterion"),))),
        responses=tuple(texts[name] for name in names),
        reasoning="keep" if chat.reasoning == "keep" else "drop",
        images=chat.images,
        mode="critique" if has_critique else None,
        seed=chat.seed or 0,
    )
    grader = service.judges[judge]
    try:
        request = grader.resolve(request)
    except CustosError as error:
        raise refusal(error) from None
    check_items(dict(request), "", service.limits)
    check_request(request, "", service.limits)
    rubric = get_task(request.task).rubric(request)
    is_trained = familiarity(grader, request.task, rubric) >= Familiarity.TRAINED
    note = "" if is_trained else "not measured on this task"
    return ScriptPrompt(contract, layout, request, form, tool, chat.text, note)


def _form(
    chat: ChatRequest, contract: Contract, layout: PromptLayout, fields: PromptFields
) -> tuple[Mapping[str, Slot] | None, str | None]:
    """Find what is under the keys of the JSON object to reply, and the tool it is for.

    Raises ``ApiError`` 422 if it would lack a key that the caller may look at, as some callers take
    a missing key for a pass.
    """
    if {"low", "high"} <= fields.texts.keys():
        layout = replace(layout, form=_scaled(layout.form, fields))
    index, tool, schema, path = chat.tool(), None, None, ""
    if index is not None and chat.tools:
        called = chat.tools[index].function
        tool, schema, path = called.name, called.parameters, f"tools.{index}.function.parameters"
    if chat.format == "json_schema":
        if tool is not None:
            raise ApiError(422, "give a schema or tools, not both", "tools")
        given = chat.response_format and chat.response_format.json_schema
        schema, path = given and given.content, "response_format.json_schema.schema"
    elif chat.format == "json_object" and tool is None and not layout.system:
        schema = _schema_within(chat.prompt[1])
        path = "messages" if schema else ""
    if path:
        form = form_of_schema(schema, path, contract, layout)
        if lacking := _asked_for(contract, layout, fields) - form.keys():
            raise ApiError(422, f"the prompt asks for '{min(lacking)}', but no such key", path)
        return form, tool
    if contract.reply == JSON_REPLY:
        return layout.form, None
    if chat.format == "text":
        return None, None
    named = _named_keys(fields)
    if not layout.form or not named <= layout.form.keys():
        wanted = ", ".join(sorted(named))[:200] if named else "the keys that you read"
        raise ApiError(
            422,
            f"{contract.harness} reads no such object; for one with {wanted}, give its schema: "
            "response_format json_schema",
            "response_format",
        )
    return layout.form, None


def _schema_within(system: str) -> dict[str, Any] | None:
    """Find the JSON schema that a system message spells out, as instructor writes it."""
    start = system.find("{")
    end = system.rfind("}") + 1
    schema = decoded(system[start:end]) if 0 <= start < end else None
    return schema if schema and "properties" in schema else None


def _asked_for(contract: Contract, layout: PromptLayout, fields: PromptFields) -> set[str]:
    """List the keys of verdicts that a prompt asks for."""
    if contract.reply == JSON_REPLY:
        return {key for key, slot in layout.form.items() if isinstance(slot, Boolean | Label)}
    return {key for key in _named_keys(fields) if is_verdict(key)}


def _named_keys(fields: PromptFields) -> set[str]:
    """List the keys of objects that the script's own words name."""
    return {key for pair in NAMED_KEY.findall(fields.surroundings) for key in pair if key}


def _scaled(form: Mapping[str, Slot], fields: PromptFields) -> Mapping[str, Slot]:
    """Put the scale that a prompt names into the scores of a form."""
    ends = [fields.texts[name] for name in ("low", "high")]
    if not all(re.fullmatch(r"-?\d{1,6}", end) for end in ends) or int(ends[0]) >= int(ends[1]):
        raise ApiError(422, "the ends of the scale are no two numbers in order", "messages")
    low, high = map(int, ends)
    return {
        key: replace(slot, low=low, high=high) if isinstance(slot, Score) else slot
        for key, slot in form.items()
    }


def _references(
    contract: Contract, layout: PromptLayout, text: str
) -> tuple[tuple[str, ...], ReferenceMode]:
    """Read the references: one, or several with one of ``ALTERNATIVES`` between them.

    A script that reads partial credit has it for alternatives, too.
    """
    has_partial = any(0 < contract.worth.get(label, 0.0) < 1 for label in layout.words)
    for separator, mode in ALTERNATIVES.items():
        if separator in text:
            texts = tuple(part.strip() for part in text.split(separator) if part.strip())
            return texts, "any-partial" if mode == "any" and has_partial else mode
    return (text,) if text else (), layout.reference_mode


async def verdict_reply(
    prompt: ScriptPrompt,
    checked: CheckedRequest,
    service: Service,
    *,
    streamed: bool,
    deadline: Deadline,
) -> Reply:
    """Grade a request, and yield the reply piece by piece, then how it ended.

    A critique that is ``streamed`` is yielded while it is written; only then the cache is not used.
    Raises ``ApiError`` as ``Service.grade``; with the contract's status of a refusal, or 5xx, if
    there is no label, as none is made up.
    """
    head, _, tail = prompt.contract.reply.rpartition("{critique}")
    text = ""
    if streamed and prompt.shows_critique:
        parts: AsyncGenerator[str | Verdict] = service.stream(checked, deadline)
    else:
        parts = _graded(prompt, checked, service, deadline)
    verdict: Verdict | None = None
    async with aclosing(parts):
        async for part in parts:
            if isinstance(part, Verdict):
                verdict = part
            else:
                piece = Piece(("" if text else head) + part.translate(NEUTRAL))
                text += piece.text
                yield piece
    assert verdict
    for piece in _verdict_pieces(prompt, verdict, tail if text else head + tail):
        text += piece.text
        yield piece
    reason: Literal["stop", "length"] = (
        "length" if verdict.status == "truncated" and prompt.form is None else "stop"
    )
    async with deadline.within():
        ending = await _ending(reason, service, checked.name, prompt.text, text)
    yield ending


async def _ending(
    reason: Literal["stop", "length"], service: Service, judge: str, prompt: str, text: str
) -> Ending:
    """Build the end of a reply, with its tokens counted."""
    count = service.token_counters[judge]
    tokens = await service.readers.read(
        len(prompt) + len(text), lambda: (count(prompt), count(text))
    )
    return Ending(reason, *tokens)


async def _graded(
    prompt: ScriptPrompt, checked: CheckedRequest, service: Service, deadline: Deadline
) -> AsyncGenerator[str | Verdict]:
    """Yield the whole critique if it is shown, then the verdict, which must have a label."""
    (verdict,) = await service.grade([checked], deadline)
    _label(verdict, prompt.contract)
    if verdict.critique and prompt.shows_critique:
        yield verdict.critique
    yield verdict


def _label(verdict: Verdict, contract: Contract) -> str:
    """Read the label of a verdict, or raise why it has none."""
    if verdict.label is not None:
        return verdict.label
    message = f"no verdict: {verdict.message or verdict.status}"
    if fault := verdict.field_error:
        message = f"{fault.field}: {fault.message}"
    if verdict.status in ("not_judgeable", "abstain", "invalid"):
        raise ApiError(contract.refusal_status, message, "messages")
    raise ApiError(502 if verdict.status == "unparsed" else 500, message)


def _verdict_pieces(prompt: ScriptPrompt, verdict: Verdict, template: str) -> Iterator[Piece]:
    """Yield the label with its probability, and the text around it; or the whole object."""
    contract = prompt.contract
    label = _label(verdict, contract)
    chances = defaultdict[str, float](float)
    for full_label, probability in verdict.probabilities.items():
        chances[score_of(full_label)] += probability
    decision = Decision(
        label, dict(chances) or {label: 1.0}, contract.worth, verdict.critique, prompt.note
    )
    words = {label: contract.word(prompt.layout, label) for label in decision.probabilities}
    if prompt.form is not None:
        yield from object_pieces(prompt.form, decision, words)
        return
    piece = choice_piece(words, decision)
    assert piece.logprobs
    before, _, after = template.partition("{label}")
    after = after.replace("{confidence}", f"{math.exp(piece.logprobs[piece.text]):.2f}")
    if before:
        yield Piece(before)
    yield piece
    if after:
        yield Piece(after)


# Free text from an untrained backbone, for clients that ask for it by its own name.


def sampling_of(chat: ChatRequest) -> tuple[Sampling, str | None]:
    """Read how a text is to be sampled, and the text that ends it.

    Raises ``ApiError`` 422 for an option that would change the text and is not supported.
    """
    from judging.scoring.engine import Sampling

    stops = [chat.stop] if isinstance(chat.stop, str) else chat.stop or []
    is_stop = len(stops) <= 1 and all(0 < len(stop) <= MAX_STOP_CHARS for stop in stops)
    for name, is_refused, message in (
        ("response_format", chat.format != "text", "this model cannot promise a JSON object"),
        ("tools", chat.tools, "this model cannot promise to call a tool"),
        ("n", (chat.n or 1) > 1, "only verdicts may be wanted several times"),
        ("presence_penalty", chat.presence_penalty, "not supported here"),
        ("frequency_penalty", chat.frequency_penalty, "not supported here"),
        ("logprobs", chat.logprobs, "only judges give log-probabilities, those of their labels"),
        ("seed", not 0 <= (chat.seed or 0) <= MAX_SEED, f"expected 0 to {MAX_SEED}"),
        ("stop", not is_stop, f"expected one text of 1 to {MAX_STOP_CHARS:,} characters"),
    ):
        if is_refused:
            raise ApiError(422, message, name)
    budget = chat.max_completion_tokens or chat.max_tokens or DEFAULT_NEW_TOKENS
    temperature = 1.0 if chat.temperature is None else chat.temperature
    sampling = Sampling(
        max_new_tokens=min(budget, MAX_NEW_TOKENS),
        temperature=0.0 if chat.top_p == 0 else temperature,  # a nucleus of the likeliest token
        top_p=chat.top_p or 1.0,
    )
    return sampling, stops[0] if stops else None


async def free_reply(
    chat: ChatRequest, turns: Sequence[Turn], service: Service, judge: str, deadline: Deadline
) -> Reply:
    """Yield the text piece by piece, then how it ended.

    Raises ``ApiError`` as ``Service.write`` and :func:`sampling_of`; 422 if the texts alone are
    longer than the model reads, or a picture cannot be read.
    """
    sampling, stop = sampling_of(chat)
    writer = service.judges[judge]
    texts = [turn.message.text for turn in turns]
    conversation: list[Message] = []
    tokens = text_tokens(texts) + sampling.max_new_tokens
    async with deadline.within():
        await service.readers.read(
            sum(map(len, texts)), _check_length, texts, writer, service.token_counters[judge]
        )
        for message, sizes in turns:
            try:
                images, seen = await service.intake.decoded(message.images, sizes, writer)
            except FieldError as error:
                raise ApiError(422, f"{error.field}: {error.message}", "messages") from None
            conversation.append(message.model_copy(update={"images": images}))
            tokens += picture_tokens(seen, writer)
    write = partial(complete, writer, conversation, sampling, chat.seed or 0, stop)
    parts = service.write(judge, write, tokens, deadline)
    async with aclosing(parts):
        async for part in parts:
            yield part if isinstance(part, Ending) else Piece(part)


def _check_length(texts: Sequence[str], writer: Judge, count: TokenCounter) -> None:
    if sum(len(text.encode(errors="replace")) for text in texts) >= writer.backbone.context:
        _require_fit(sum(map(count, texts)), writer)  # otherwise, a byte a token, they fit


def _require_fit(num_tokens: int, writer: Judge) -> None:
    if num_tokens >= (context := writer.backbone.context):
        raise ApiError(422, f"{num_tokens:,} tokens, but the model reads {context:,}", "messages")


def complete(
    writer: Judge,
    conversation: Sequence[Message],
    sampling: Sampling,
    seed: int,
    stop: str | None,
    on_text: Callable[[str], None],
) -> Ending:
    """Continue a conversation with a judge's backbone; ``on_text`` gets each new piece.

    The writer is an untrained judge, as an adapter knows how to judge, but not how to chat. Control
    tokens in messages are plain text. The text ``stop`` ends the answer and is left out of it.

    Raises:
        ApiError: 422 if the conversation is longer than the model reads.
        RequestRefused: If the model's server cannot read the conversation.
        CustosError: If the model's server fails.
    """
    from judging.scoring.engine import texts_in_order
    from judging.types import END_TOKEN

    prompt = writer.encoder.encode_conversation(conversation)
    num_tokens = len(prompt.suffix_ids)
    _require_fit(num_tokens, writer)
    budget = min(sampling.max_new_tokens, writer.backbone.context - num_tokens)
    batches = writer.engine.generate(
        [prompt],
        writer.encoder,
        stop or END_TOKEN,
        [seed],
        replace(sampling, max_new_tokens=budget),
        lambda _, piece: on_text(piece),
    )
    [text] = texts_in_order(batches)
    if isinstance(text, CustosError):
        raise text
    return Ending("stop" if text.finished else "length", num_tokens, len(text.tokens))
