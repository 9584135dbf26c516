"""Requests to a judge, examples that people have labelled, verdicts, and turns of conversations.

The same request object is a JSONL or Parquet row, the body of ``POST /judge`` and an item of a
training batch. Everything is validated at the boundary and immutable afterwards.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal, Protocol, TypedDict, TypeVar, Unpack

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
    field_validator,
    model_validator,
)

from judging.base64_pictures import one_form
from judging.errors import CustosError, FieldError, InvalidRequest, Unparsed, nearest_name
from judging.reasoning import without_thoughts

ReferenceMode = Literal["all", "any", "any-partial"]
Mode = Literal["score", "critique"]
Reasoning = Literal["drop", "keep"]
Status = Literal[
    "scored", "truncated", "not_judgeable", "abstain", "unparsed", "invalid", "judge_error"
]
FAILURES: frozenset[Status] = frozenset({"unparsed", "invalid", "judge_error"})
"""Statuses of requests that were not judged. The others are answers of a judge."""
Split = Literal["train", "val", "cal", "test"]

R = TypeVar("R", bound=BaseModel)

PAIR_NAMES = frozenset({"response_a", "response_b"})
RESPONSE_NAMES = PAIR_NAMES | {"response"}
"""Names of a request's responses beside ``responses``."""
MAX_TEXT_CHARS = 200_000
MAX_ERROR_CHARS = 10_000
"""Most characters of the error in a verdict, which may show a field of a request."""
MAX_CRITIQUE_TOKENS = 2048
MAX_IMAGE_CHARS = 28_000_000


class _Record(BaseModel):
    # NaN and infinity would be written to files as null, which could not be read again.
    model_config = ConfigDict(
        frozen=True, extra="forbid", str_max_length=MAX_TEXT_CHARS, allow_inf_nan=False
    )


class JudgeRequest(_Record):
    """One question with its references and the response (or two) to be judged."""

    id: str = ""
    """The caller's identifier. It is copied to the verdict, never shown to the judge or hashed."""
    task: str = "hieval-qs"
    """Registered task name: what is asked and which labels may be answered."""
    variant: str = "plain"
    """Tolerance, rubric, cell or language within the task."""
    question: str = ""
    """The question as the responder was asked it; only a task that can do without lets it be
    empty."""
    choices: tuple[str, ...] = ()
    """Answer options as shown to the responder, in order."""
    references: tuple[str, ...] = ()
    """Ground truth, one string per element or alternative. A string stands for a list of one."""
    reference_mode: ReferenceMode = "all"
    """``all``: the references together form the answer set. ``any``: each is right on its own.
    ``any-partial``: so too, and a response may be partly right."""
    responses: tuple[str, ...] = Field(min_length=1, max_length=2)
    """One response, or two for pairs; ``response``, ``response_a``, ``response_b`` also work."""
    reasoning: Reasoning = Field(default="drop", exclude_if=lambda value: value == "drop")
    """``drop``: what stands in thinking tags (``<think>`` and its like) of a response is not
    graded, and a response that never leaves them is empty. ``keep``: the whole text is graded."""
    images: tuple[Annotated[str, StringConstraints(max_length=MAX_IMAGE_CHARS)], ...] = ()
    """File paths in files, data URLs over HTTP."""
    criteria: tuple[str, ...] = ()
    """The caller's own criteria, beside the task's; only tasks that take some show them. A string
    stands for a list of one."""
    order: Literal["both", "given"] = "both"
    """Pair tasks: judge in both presentation orders, or only as given."""
    mode: Mode | None = None
    """``score``: decide at once. ``critique``: write a critique first, then decide. ``None``: the
    way that the judge was trained for; ``score`` for a judge that was not trained."""
    critique_tokens: int = Field(default=512, ge=1, le=MAX_CRITIQUE_TOKENS)
    """Most tokens of a critique. A longer one is cut and closed, and its label is read."""
    given_critique: str | None = Field(default=None, exclude_if=lambda text: text is None)
    """Critique to decide after, instead of one that the judge writes: the verdict says what that
    critique leads to, and not what the judge itself thinks. Of a pair it names the responses as
    given. A longer one than ``critique_tokens`` is cut."""
    seed: int = Field(default=0, ge=-(2**63), le=2**64 - 1)
    """Seed with which a critique is drawn."""
    risk: float | None = Field(default=None, gt=0, lt=1, exclude_if=lambda risk: risk is None)
    """Largest share of wrong verdicts among those without ``needs_review``; ``needs_review`` is
    set where the confidence does not suffice for it. ``None``: no level is kept."""
    metadata: dict[str, Any] = Field(default_factory=dict)
    """What to slice reports by (``answerer``, ``domain``, ``level``); never shown to the judge."""

    @field_validator("images")
    @classmethod
    def _in_one_form(cls, images: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(map(one_form, images))

    @model_validator(mode="before")
    @classmethod
    def _accept_response_aliases(cls, data: Any) -> Any:
        if isinstance(data, JudgeRequest):
            return data
        if not isinstance(data, dict):
            raise ValueError("expected a JSON object")
        single, pair = "response" in data, "response_a" in data or "response_b" in data
        if single + pair + ("responses" in data) > 1:
            raise ValueError("give only one of 'responses', 'response', 'response_a'/'response_b'")
        data = dict(data)
        for name in ("references", "criteria"):
            if isinstance(text := data.get(name), str):
                data[name] = (text,) if text else ()
        if single:
            data["responses"] = (data.pop("response"),)
        elif pair:
            if "response_a" not in data or "response_b" not in data:
                raise ValueError(_half_pair(data, cls.model_fields.keys()))
            data["responses"] = (data.pop("response_a"), data.pop("response_b"))
        return data

    @property
    def answers(self) -> tuple[str, ...]:
        """Return the responses as they are graded: without thoughts, unless ``reasoning`` is keep.

        Judges, rules and baselines read these; files and pages show :attr:`responses`.
        """
        if self.reasoning == "keep":
            return self.responses
        return tuple(map(without_thoughts, self.responses))

    @property
    def asked(self) -> str:
        """Return what rows about one thing share: the question, or the responses without one."""
        return self.question if self.question.strip() else "\n".join(self.responses)

    @property
    def response(self) -> str:
        """Return the first of :attr:`answers`, which is the only one unless it is a pair."""
        return self.answers[0]


def each_request(requests: Iterable[JudgeRequest]) -> Iterator[JudgeRequest]:
    """Yield a caller's requests; raise ``TypeError`` for a single one, or a row, in their place."""
    if isinstance(requests, JudgeRequest):
        raise TypeError("expected an iterable of requests; give one request as [request]")
    for request in requests:
        if not isinstance(request, JudgeRequest):
            kind = type(request).__name__
            raise TypeError(
                f"expected a JudgeRequest, got '{kind}'; JudgeRequest.model_validate(row) makes one"
            )
        yield request


def field_names(model: type[BaseModel]) -> set[str]:
    """Return the names that users may give to the fields of a record."""
    names = set(model.model_fields)
    return names | RESPONSE_NAMES if issubclass(model, JudgeRequest) else names


def _half_pair(data: Collection[str], names: Collection[str]) -> str:
    """Say what is wrong with a pair that lacks one response, and the field meant for it."""
    missing = PAIR_NAMES - set(data)
    message = "a pair needs both 'response_a' and 'response_b'"
    for name in data:
        is_known = name in names or name in RESPONSE_NAMES
        if not is_known and (nearest := nearest_name(name, missing)):
            return f"unknown field '{name}'{nearest}; {message}"
    return message


class LabelledExample(JudgeRequest):
    """A request with the label that people gave it."""

    label: str
    """Full label string, as the task spells it (``Correct``, ``Wrong; Reasoning Error``, ...)."""
    second_label: str | None = None
    """Label that a second person gave, to compare the judge with."""
    error_type: str | None = None
    """Type of the error; ``label`` holds it too."""
    critique: str | None = None
    """Critique that leads to the label, to train on."""
    confidence: float | None = Field(default=None, ge=0, le=1)
    """How clear the decision was to people, to train on."""
    score: float | None = None
    """Grade that people gave as a number."""
    tags: tuple[str, ...] = ()
    """Short words for the faults that were named."""
    annotators: tuple[str, ...] = ()
    """Names of the people who gave the label."""
    annotator_labels: dict[str, str] = Field(default_factory=dict, exclude_if=lambda each: not each)
    """Label that each single person gave, by name: ``{"anna": "Correct", "ben": "Wrong"}``. Any
    number of people, not the same ones in every row."""
    weight: float = Field(default=1.0, ge=0)
    """How much the row counts in training."""
    sampling_probability: float | None = Field(
        default=None, gt=0, le=1, exclude_if=lambda chance: chance is None
    )
    """Probability with which the row was drawn for people, where some were likelier than others."""
    split: Split | None = None
    """Split that the row belongs to, if its source has splits."""
    group: str = ""
    """Examples that share a group (question, image) never fall into two splits and are resampled
    together in confidence intervals. Empty: the question is the group."""
    source: str = ""
    """Data set that the row comes from."""

    def request(self) -> JudgeRequest:
        """Return the request alone, which is all that a judge may see."""
        return JudgeRequest.model_construct(
            **{name: getattr(self, name) for name in JudgeRequest.model_fields}
        )


def score_of(label: str) -> str:
    """Return a full label without its error type: ``Wrong`` of ``Wrong; Reasoning Error``."""
    return label.partition(";")[0].strip()


def type_of(label: str) -> str:
    """Return the error type within a full label; empty if it has none."""
    return label.partition(";")[2].strip()


def label_of(score: str, error_type: str | None) -> str:
    """Return the full label of a score and, if there is one, an error type."""
    return f"{score}; {error_type}" if error_type else score


class Pass(_Record):
    """One run of the judge over a request: an order of a pair, or a sample."""

    order: Literal["given", "swapped"] = "given"
    """``swapped``: the two responses of a pair were shown in the other order."""
    posterior: dict[str, float] = Field(default_factory=dict)
    """Probability of every label before calibration, as this order was shown."""
    critique: str | None = None
    """The critique before the label, if there was one: written by the judge, or the given one."""
    finish_reason: Literal["tree", "stop", "length"] = "tree"
    """``tree``: no text was generated; ``length``: the critique hit its budget and was closed."""
    stated_confidence: float | None = None
    """Confidence that the judge wrote after its critique."""


class Signature(TypedDict, total=False):
    """The origin of a verdict: fields of :class:`Verdict`, as far as they are known."""

    judge_name: str
    rubric: str
    judge: str


class Verdict(_Record):
    """A judge's answer. ``label`` is ``None`` whenever nothing was decided; there is no default."""

    id: str = ""
    """``id`` of the request."""
    row: int | None = Field(default=None, exclude_if=lambda row: row is None)
    """Number of the row in the file that ``custos grade`` read; the service leaves it out."""
    status: Status
    """How the judging ended. With ``scored`` and ``truncated`` there is a label."""
    label: str | None = None
    """The verdict; for labels with an error type the score alone."""
    error_type: str | None = None
    """Type of the error, for tasks that name one."""
    score: float | None = None
    """Grade as a number, for tasks that have one."""
    score_range: tuple[float, float] | None = None
    """Smallest and largest possible ``score``."""
    probabilities: dict[str, float] = Field(default_factory=dict)
    """Posterior over the declared labels, keyed by full label string; sums to one."""
    marginals: dict[str, dict[str, float]] = Field(default_factory=dict)
    """Named marginals of ``probabilities`` (``score``, ``error_type``)."""
    confidence: float | None = None
    """Calibrated probability of ``label`` with its ``error_type``; uncalibrated when the judge has
    no calibration."""
    stated_confidence: float | None = None
    """Confidence that the judge wrote after its critique; the mean over ``passes``."""
    critique: str | None = None
    """The critique of the pass that decided, if critiques were written. The responses of a pair are
    named as the request gives them, even if that pass was shown them in the other order."""
    label_mass: float | None = None
    """Probability that the backbone gives the declared labels, before renormalisation. If it is
    low, the backbone would have answered something else."""
    posterior: Literal["exact", "approximate"] | None = None
    """``None`` when a rule decided before any model ran (an empty response)."""
    passes: tuple[Pass, ...] = ()
    """Passes that the verdict is merged from."""
    needs_review: bool = False
    """A person should decide: the two orders of a pair led to different labels, or the confidence
    does not suffice for the ``risk`` of the request."""
    truncated_input: bool = False
    """Text was cut from the middle of a response to fit the budget."""
    message: str | None = None
    """Why there is no label, or what to know about the label: the two orders of a pair disagree,
    the judge was not trained for the mode."""
    judge_name: str = ""
    """Name of the judge."""
    rubric: str = ""
    """Task and rubric that the request was judged under, such as ``hieval-qs/plain/any``."""
    judge: str = ""
    """Fingerprint: a hash of everything but the request that could change this verdict."""
    _field_error: tuple[str, str] | None = None

    @classmethod
    def from_error(
        cls, error: CustosError, request: JudgeRequest, **signature: Unpack[Signature]
    ) -> Verdict:
        """Make the verdict of a request that could not be graded: no label, but a message.

        What ``signature`` does not give stays out of files.
        """
        status: Status = "judge_error"
        if isinstance(error, Unparsed):
            status = "unparsed"
        elif isinstance(error, FieldError | InvalidRequest):
            status = "invalid"
        verdict = cls(id=request.id, status=status, message=shortened(str(error)), **signature)
        if isinstance(error, FieldError):
            verdict._field_error = (error.field, error.message)
        return verdict

    @property
    def field_error(self) -> FieldError | None:
        """Return the mistake in the request that the verdict reports; files do not keep it."""
        return FieldError(*self._field_error) if self._field_error else None


class AnyJudge(Protocol):
    """Source of verdicts: a judge in this process, or a client of a service."""

    def grade(self, requests: Iterable[JudgeRequest], /) -> Iterator[Verdict]:
        """Yield one verdict per request, in order."""
        ...


def shortened(text: str, max_chars: int = MAX_ERROR_CHARS) -> str:
    """Leave out the middle of a text, such as the message on a bad row, that is very long."""
    half = max_chars // 2
    return text if len(text) <= max_chars else f"{text[:half]} [...] {text[-half:]}"


def parse_record(
    model: type[R], data: Any, location: str, context: Mapping[str, Any] | None = None
) -> R:
    """Validate one outside row against ``model``, located as in ``"answers.jsonl row 17"``.

    ``context`` is for the model's validators. The ``FieldError`` names the row, the first offending
    field and what is wrong with it.
    """
    try:
        return model.model_validate(data, context=context)
    except ValidationError as error:
        raise FieldError.from_validation(error, location, field_names(model)) from None
    except UnicodeEncodeError:  # the name of a field
        raise FieldError("", "a name holds half a character (a lone surrogate)", location) from None


START_TOKEN, END_TOKEN = "<|im_start|>", "<|im_end|>"
"""Control tokens around every turn of a prompt."""


class Message(BaseModel):
    """One turn of a conversation; its pictures come before its text."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    role: Literal["system", "user", "assistant"]
    text: str
    images: tuple[str, ...] = ()
    """File paths, data URLs or web addresses."""


def conversation(
    instruction: str, texts: Sequence[str], images: tuple[str, ...] = ()
) -> tuple[Message, ...]:
    """Return the instruction and a user's turn for every text; the first one has the pictures."""
    first, *others = (Message(role="user", text=text) for text in texts)
    first = first.model_copy(update={"images": images})
    return (Message(role="system", text=instruction), first, *others)
