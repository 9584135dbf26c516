"""The base classes of tasks, their registry, and tasks with a user's own instructions."""

import re
import unicodedata
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any, ClassVar, get_args

import yaml

from judging.errors import CustosError, FieldError
from judging.files.opening import load_yaml
from judging.fingerprint import digest
from judging.labels import worth_by_place
from judging.registry import Registry
from judging.types import JudgeRequest, LabelledExample, ReferenceMode, Status, score_of

_WIDTH = ord("Ａ") - ord("A")
_FULL_WIDTH = {code + _WIDTH: code for code in range(ord("0"), ord("z") + 1) if chr(code).isalnum()}
_FULL_WIDTH_MARK = re.compile(
    r"[＋－＄](?=[.．]?[0-9])|．(?=[0-9])|(?<=[0-9])(?:％|／(?=[0-9])|，(?=[0-9]{3}(?![0-9])))"
    r"|(?<=[0-9A-Za-z])　(?=[0-9A-Za-z])"
)
"""Signs, points and so on of a number, and the space between words, once letters are plain."""


@dataclass(frozen=True)
class Field:
    """A heading and a text in the message to the judge; the text comes from users, untrusted."""

    heading: str
    text: str
    is_response: bool = False
    """Only responses may be shortened to fit the token budget."""

    @property
    def shown(self) -> str:
        """Return the text as judges see it: full-width letters, digits and numbers in ASCII.

        Models know １０００ and Ｃａｎｂｅｒｒａ badly. What else full-width text has stays: 10² is
        not 102, and Chinese punctuation is no mistake.
        """
        text = self.text.strip().translate(_FULL_WIDTH)
        space = "\N{IDEOGRAPHIC SPACE}"
        return _FULL_WIDTH_MARK.sub(
            lambda mark: " " if mark[0] == space else chr(ord(mark[0]) - _WIDTH), text
        )


@dataclass(frozen=True)
class Ruling:
    """A verdict reached by rule, before any model runs."""

    status: Status
    label: str | None
    message: str
    score: float | None = None


@dataclass(frozen=True)
class CritiqueFormat:
    """The tags of an answer in which a critique comes before the label."""

    opening: str = "<critique>"
    closing: str = "</critique>"
    label_opening: str = "<label>"
    label_closing: str = "</label>"
    states_confidence: bool = True
    """A confidence is asked for after the label."""
    confidence_opening: str = "<confidence>"
    confidence_closing: str = "</confidence>"


class JudgeTask(ABC):
    """A task of a judge: instruction, layout of the item, labels, and how an answer is read.

    A subclass tells at least its instruction, its item and its labels. Instruction and labels may
    depend only on ``rubric(request)``, so that requests with the same rubric share one prefilled
    instruction and one label tree.
    """

    name: ClassVar[str]
    variants: ClassVar[tuple[str, ...]]
    required: ClassVar[tuple[str, ...]]
    """Request fields that must not be empty or blank."""
    example: ClassVar[Mapping[str, Any]]
    """A request that this task takes, without the field ``task``. The documentation, ``custos
    tasks``, the pages of the service and ``custos doctor`` use it."""
    label_set: ClassVar[tuple[str, ...]] = ()
    """The labels, best first. Tasks whose labels depend on the rubric override :meth:`labels`."""
    empty_label: ClassVar[str | None] = None
    """Label of an empty response; ``None`` if it cannot be judged."""
    score_range: ClassVar[tuple[float, float] | None] = None
    """Smallest and largest possible :meth:`score`; ``None`` if it has no limits, or there is none.
    """
    num_responses: ClassVar[int] = 1
    reads_pictures: ClassVar[bool] = True
    """False if judges read the text alone: they see no picture of a request."""
    has_rules: ClassVar[bool] = False
    """True if rules label more than empty responses."""
    asks_leave: ClassVar[bool] = False
    """True if judges that were not trained for the task may answer it in a service only where its
    operator allows it: it is so open that figures measured on other tasks say nothing about it."""
    critique: ClassVar[CritiqueFormat | None] = None
    """Tags of a critique and its label; ``None`` for tasks without critiques."""

    def check(self, request: JudgeRequest) -> None:
        """Raise ``FieldError`` if this task cannot judge the request."""
        if request.variant not in self.variants:
            raise FieldError(
                "variant", f"'{request.variant}' is not one of {', '.join(self.variants)}"
            )
        if len(request.responses) != self.num_responses:
            raise FieldError(
                "responses",
                f"task '{self.name}' needs {self.num_responses}, got {len(request.responses)}"
                + _default_task_hint(request),
            )
        for field in self.required:
            if is_blank(getattr(request, field)):
                raise FieldError(field, f"task '{self.name}' needs it")
        if request.mode == "critique" and self.critique is None:
            raise FieldError("mode", f"task '{self.name}' writes no critiques")
        if request.given_critique is not None:
            self._check_given_critique(request, request.given_critique)

    def _check_given_critique(self, request: JudgeRequest, text: str) -> None:
        """Raise ``FieldError`` if a judge of this task cannot have written a given critique."""
        if self.critique is None:
            raise FieldError("given_critique", f"task '{self.name}' takes no critiques")
        if request.mode == "score":
            raise FieldError(
                "given_critique", "mode 'score' reads no critique; leave one of them out"
            )
        if request.risk is not None:
            raise FieldError("risk", "confidences after a given critique are not calibrated")
        if self.critique.closing in text:
            raise FieldError(
                "given_critique", f"'{self.critique.closing}' would end it; cut it there"
            )

    def rubric(self, request: JudgeRequest) -> str:
        """Name the instruction and label set that a request is judged under: by its variant."""
        return request.variant

    def full_rubric(self, request: JudgeRequest) -> str:
        """Return the task's name and the rubric of a request: ``hieval-qs/plain/any``."""
        return f"{self.name}/{self.rubric(request)}"

    @abstractmethod
    def instruction(self, rubric: str) -> str:
        """Return the system message: every criterion, in our own words."""

    def untrained_instruction(self, rubric: str) -> str:
        """Return the instruction for a model that has seen no critique of this task in training.

        A judge's own cannot change after its training; this one can.
        """
        return self.instruction(rubric)

    def labels(self, rubric: str) -> tuple[str, ...]:
        """Return the label strings with their error type (``Wrong; Other``), best first."""
        return self.label_set

    def worth(self, rubric: str) -> dict[str, float]:
        """Return what an answer with each label is worth, by its place: 1 the best, 0 the worst.

        It is empty where the labels are in no order, as in a choice between two responses. Tasks of
        which two labels are equally good override it.
        """
        return {} if self.num_responses > 1 else worth_by_place(self.labels(rubric))

    def worth_by_score(self) -> dict[str, float]:
        """Return :meth:`worth` under all rubrics, of labels without error types, best first."""
        labels = [each for rubric in self.rows_by_rubric() for each in self.worth(rubric).items()]
        best_first = sorted(labels, key=lambda item: -item[1])
        return {score_of(label): worth for label, worth in best_first}

    @abstractmethod
    def item(self, request: JudgeRequest) -> tuple[Field, ...]:
        """Return the user message, field by field."""

    def whole_prompt(self, request: JudgeRequest) -> str | None:
        """Return the one message of a published grader, with a request filled in.

        It replaces the instruction and the item, for chat models alone. ``None``: there is none.
        """
        return None

    def pictures(self, request: JudgeRequest) -> tuple[str, ...]:
        """Return the pictures of a request that a judge sees: all, or none."""
        return request.images if self.reads_pictures else ()

    def rule(self, request: JudgeRequest) -> Ruling | None:
        """Decide a request before any model if it is certain; return ``None`` otherwise."""
        return self.rule_if_empty(request) or self.rule_if_certain(request)

    def rule_if_empty(self, request: JudgeRequest) -> Ruling | None:
        """Decide a request with an empty response; return ``None`` for others.

        Judges learn nothing from such requests. They do learn from those that only
        :meth:`rule_if_certain` decides: a judge should know plain answers too.
        """
        if all(map(_is_seen, request.answers)):
            return None
        if self.empty_label is None:
            return Ruling("not_judgeable", None, "a response is empty")
        return Ruling("scored", self.empty_label, "the response is empty")

    def rule_if_certain(self, request: JudgeRequest) -> Ruling | None:
        """Decide a request whose response can be read by rule; return ``None`` where in doubt."""
        return None

    def label_by_rule(self, request: JudgeRequest) -> str | None:
        """Return the label that rules alone give, also where they may err; ``None`` for none."""
        ruling = self.rule(request)
        return ruling.label if ruling else None

    def parse(self, text: str, rubric: str) -> str | None:
        """Read the label that a generated text consists of; return ``None`` if it is none.

        Case, Markdown and the punctuation around it do not matter.
        """
        words = " ".join(text.replace(";", "; ").split()).strip(" .!*\"'`").casefold()
        return next((label for label in self.labels(rubric) if label.casefold() == words), None)

    def critique_of(self, text: str) -> str | None:
        """Return the critique of an answer; ``None`` if the task asks for none or it has none."""
        tags = self.critique
        return (last_between(text, tags.opening, tags.closing) or None) if tags else None

    def confidence_of(self, text: str) -> float | None:
        """Return the confidence that an answer states; ``None`` as for :meth:`critique_of`."""
        tags = self.critique
        if tags is None or not tags.states_confidence:
            return None
        stated = last_between(text, tags.confidence_opening, tags.confidence_closing)
        return None if stated is None else confidence_in(stated)

    def parse_official(self, text: str, rubric: str) -> str | None:
        """Read the label from a reply to :meth:`whole_prompt`, as the official grader does."""
        return self.parse(text, rubric)

    def swap(self, request: JudgeRequest) -> JudgeRequest:
        """Return the request of a pair with its responses exchanged, and so named in a critique."""
        changed: dict[str, object] = {"responses": request.responses[::-1]}
        if request.given_critique is not None:
            changed["given_critique"] = self.unswap_text(request.given_critique)
        return request.model_copy(update=changed)

    def unswap(self, label: str) -> str:
        """Turn a label of the swapped pair into the label for the pair as given."""
        return label

    @property
    def response_fields(self) -> tuple[str, ...]:
        """Return the fields that hold the responses of a row, one each."""
        return ("response",) if self.num_responses == 1 else ("response_a", "response_b")

    @property
    def has_reference_modes(self) -> bool:
        """Tell whether rubrics depend on ``reference_mode``."""
        rows = [{**self.example_row(), "reference_mode": mode} for mode in get_args(ReferenceMode)]
        return len({self.rubric(JudgeRequest.model_validate(row)) for row in rows}) > 1

    def example_row(self) -> dict[str, Any]:
        """Return :attr:`example` as a row of a file or the body of a call."""
        return {"task": self.name, **self.example}

    def rows_by_rubric(self) -> dict[str, dict[str, Any]]:
        """Make a row for every rubric, the example's first, with no more changed than it needs."""
        variants = [{}, *({"variant": variant} for variant in self.variants)]
        modes = [{}, *({"reference_mode": mode} for mode in get_args(ReferenceMode))]
        rows: dict[str, dict[str, Any]] = {}
        for variant, mode, left_out in product(variants, modes, ("", "references")):
            row = {**self.example_row(), **variant, **mode}
            row.pop(left_out, None)
            request = JudgeRequest.model_validate(row)
            try:
                self.check(request)
            except FieldError:
                continue
            rows.setdefault(self.rubric(request), row)
        return rows

    def unswap_text(self, text: str) -> str:
        """Turn a critique of the swapped pair into one of the pair as given."""
        return text

    def score(self, probabilities: Mapping[str, float]) -> float | None:
        """Return the grade as a number, from the probabilities; ``None`` if the task has none."""
        return None

    def target(self, example: LabelledExample) -> str:
        """Return the label that an example trains towards; ``FieldError`` if it is none here."""
        labels = self.labels(self.rubric(example))
        if example.label not in labels:
            raise FieldError("label", f"'{example.label}' is not one of {', '.join(labels)}")
        return example.label


def labels_of(request: JudgeRequest) -> tuple[str, ...]:
    """List the labels of a request's rubric, best first."""
    task = get_task(request.task)
    return task.labels(task.rubric(request))


def is_blank(value: str | Sequence[str]) -> bool:
    """Tell whether a field of a request, or each of its texts, holds nothing but white space."""
    texts = (value,) if isinstance(value, str) else value
    return not any(text.strip() for text in texts)


def _is_seen(text: str) -> bool:
    """Tell whether a text has more than white space and marks such as the zero-width space."""
    return any(not mark.isspace() and unicodedata.category(mark) != "Cf" for mark in text)


def _default_task_hint(request: JudgeRequest) -> str:
    """Say why a request has the default task, and what to name instead; else an empty text."""
    if "task" in request.model_fields_set:
        return ""
    fitting = [task.name for task in TASKS if task.num_responses == len(request.responses)]
    return (
        f"; '{request.task}' is the task because the request names none, and tasks with "
        f"{len(request.responses)} responses are {', '.join(fitting)}"
    )


TASKS = Registry[JudgeTask]("task", "judging.tasks")
judge_task = TASKS.declare


def get_task(name: str) -> JudgeTask:
    """Return the task of a name; if there is none, raise ``FieldError`` with the known ones."""
    try:
        return TASKS.get(name)
    except CustosError:
        known = ", ".join(TASKS.names())
        raise FieldError("task", f"'{name}' is not one of {known}") from None


def worth_under(full_rubric: str) -> dict[str, float]:
    """Look up what labels are worth (:meth:`JudgeTask.worth`) under such as ``criterion/plain``.

    It is empty for a task that is not known here, as that of a service may be.
    """
    name, _, rubric = full_rubric.partition("/")
    return get_task(name).worth(rubric) if name in TASKS else {}


def task_names() -> tuple[str, ...]:
    """List the names of all tasks, in alphabetical order."""
    return TASKS.names()


def last_between(text: str, opening: str, closing: str) -> str | None:
    """Return what stands between the last closing tag and the opening one before it, stripped."""
    end = text.rfind(closing)
    start = text.rfind(opening, 0, max(end, 0))
    return None if start < 0 else text[start + len(opening) : end].strip()


def confidence_in(text: str) -> float | None:
    """Find the first number of a text if it is a confidence: ``.9``, ``0,9``, ``90%``, ``9/10``."""
    number = re.search(r"(?<![-\d.])(\d*[.,]\d+|\d+)\s*(?:(%)|/\s*([1-9]\d*))?", text)
    if number is None:
        return None
    value = float(number[1].replace(",", ".")) / float(100 if number[2] else number[3] or 1)
    return value if value <= 1 else None


MARKS = ("<|QUESTION|>", "<|REF_ANS|>", "<|RESPONSE|>")
"""Marks of ChartHal's official prompts, for question, reference and response."""
_MARK = re.compile("|".join(map(re.escape, MARKS)))


def register_rubrics(task: str, path: Path) -> str:
    """Declare a task with a user's own instructions in place of another task's.

    ``path`` is a YAML file that maps each of its rubrics to an instruction. One with a mark of
    :data:`MARKS` is the whole message, as official graders send it: chat models get nothing else.
    The new task's name holds a hash of the instructions; judges trained on ``task`` refuse it.
    Rubrics that are missing or unknown raise ``CustosError``; those of mode ``any-partial`` may be
    missing, and then have the instruction of ``task``.
    """
    published = get_task(task)
    instructions = _read_rubrics(path, tuple(published.rows_by_rubric()))
    task_name = f"{task}:{digest(instructions)[:8]}"
    if task_name not in task_names():

        @judge_task
        class Reworded(type(published)):  # type: ignore[misc]  # its class is known at run time alone
            """Task with the same rubrics and labels, and the user's instructions."""

            name = task_name

            def instruction(self, rubric: str) -> str:
                """Return the instruction of the file."""
                return instructions.get(rubric) or super().instruction(rubric)

            def whole_prompt(self, request: JudgeRequest) -> str | None:
                """Return the instruction with its marks replaced; ``None`` if it has none."""
                text = self.instruction(self.rubric(request))
                return _filled(text, request) if _MARK.search(text) else None

            def parse(self, text: str, rubric: str) -> str | None:
                """Return the label, read as the official grader does where it was asked so."""
                is_whole = _MARK.search(self.instruction(rubric)) is not None
                parse = published.parse_official if is_whole else published.parse
                return parse(text, rubric)

    return task_name


def _filled(text: str, request: JudgeRequest) -> str:
    """Return a message with its marks replaced, none of them within what replaces another."""
    values = (request.question, "; ".join(request.references), request.response)
    fields = dict(zip(MARKS, values, strict=True))
    return _MARK.sub(lambda mark: fields[mark[0]], text)


def _read_rubrics(path: Path, names: tuple[str, ...]) -> dict[str, str]:
    try:
        rubrics = load_yaml(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise CustosError(f"{path}: cannot be read: {error}") from None
    if not isinstance(rubrics, dict):
        raise CustosError(f"{path}: expected every rubric's name and its text")
    if unknown := [name for name in rubrics if name not in names]:
        raise CustosError(f"{path}: rubric '{unknown[0]}' is not one of {', '.join(names)}")
    given = [name for name in names if name in rubrics or not name.endswith("/any-partial")]
    for name in given:
        if not isinstance(rubrics.get(name), str) or not rubrics[name].strip():
            raise CustosError(f"{path}: rubric '{name}' has no text")
    return {name: rubrics[name].strip() for name in given}
