"""A chat model as a judge: it gets the tasks' instructions, and its words are read as a label."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from clients.chat import Reply, Usage, ask_all
from clients.connection import ModelServer
from clients.messages import ChatItem, Decoding, one_user_turn
from judging.errors import CustosError, FieldError
from judging.fingerprint import digest, package_versions
from judging.judge.notes import left_out_note
from judging.log_lines import one_line
from judging.reasoning import without_thoughts
from judging.tasks import JudgeTask, get_task
from judging.types import JudgeRequest, Message, Signature, Verdict, conversation, score_of, type_of
from judging.verdicts.build import disagreement, ruled_verdict, thoughts_note

GREEDY = Decoding(temperature=0.0)
"""ChartHal grades at temperature 0. SimpleVQA states no temperature of its grader, and TruthfulVQA
asks judges behind an API at .05."""


class ChatJudge:
    """Grades by asking any OpenAI-compatible server.

    It has no posterior, so its verdicts have no confidence but the one that it states after a
    critique. A pair is asked in both orders (unless its ``order`` says otherwise); if the two
    disagree, the verdict abstains. ``usage`` counts the tokens of all answers so far.
    """

    def __init__(self, server: ModelServer, decoding: Decoding = GREEDY) -> None:
        self.server = server
        self.decoding = decoding
        self.name = server.model
        self.usage = Usage()

    def fingerprint(self, request: JudgeRequest) -> str:
        """Compute a digest of everything on this side that could change a request's verdict."""
        task = get_task(request.task)
        rubric = task.rubric(request)
        return digest(
            {
                "server": self.server.base_url,
                "model": self.server.model,
                "decoding": self.decoding.model_dump(),
                "task": task.name,
                "variant": request.variant,
                "instruction": task.untrained_instruction(rubric),
                "layout": "quoted",
                "labels": task.labels(rubric),
                # Another version may word, lay out or read the same task differently.
                "version": package_versions()["custos"],
            }
        )

    def _signature(self, request: JudgeRequest) -> Signature:
        """Return what the verdict on a request says of this judge."""
        return Signature(
            judge_name=self.name,
            rubric=get_task(request.task).full_rubric(request),
            judge=self.fingerprint(request),
        )

    def grade(self, requests: Iterable[JudgeRequest]) -> Iterator[Verdict]:
        """Grade requests, in order, many at once.

        A verdict has status ``judge_error`` if the server does not answer, and ``unparsed`` if its
        answer contains no label. Raises ``ServerRefusal`` if the server refuses the key, or has no
        such model or address.
        """
        given = list(requests)
        verdicts: dict[int, Verdict] = {}
        orders_by_index: dict[int, tuple[JudgeRequest, ...]] = {}
        for index, request in enumerate(given):
            try:
                task = get_task(request.task)
                task.check(request)
                if request.given_critique is not None:
                    raise FieldError("given_critique", "a chat model as a judge takes none")
            except CustosError as error:
                verdicts[index] = Verdict.from_error(error, request, judge_name=self.name)
                continue
            if ruling := task.rule(request):
                verdicts[index] = ruled_verdict(request, ruling, **self._signature(request))
            elif task.num_responses == 2 and request.order == "both":
                orders_by_index[index] = (request, task.swap(request))
            else:
                orders_by_index[index] = (request,)
        items = [
            ChatItem(id=f"{index}.{order}", messages=judge_messages(ordered))
            for index, orders in orders_by_index.items()
            for order, ordered in enumerate(orders)
        ]
        outcomes: dict[str, Reply | CustosError] = {}
        ask_all(self.server, self.decoding, items, lambda item, to: outcomes.update({item.id: to}))
        for index, orders in orders_by_index.items():
            replies = [outcomes[f"{index}.{order}"] for order in range(len(orders))]
            verdicts[index] = self._verdict(given[index], replies)
        yield from (verdicts[index] for index in range(len(given)))

    def _verdict(self, request: JudgeRequest, replies: list[Reply | CustosError]) -> Verdict:
        task = get_task(request.task)
        for reply in replies:
            if isinstance(reply, Reply):
                self.usage += reply.usage or Usage()
        labels, stated, critiques = [], [], []
        for order, reply in enumerate(replies):
            if isinstance(reply, CustosError):
                return Verdict.from_error(reply, request, **self._signature(request))
            text = without_thoughts(reply.text)
            label = task.parse(text, task.rubric(request))
            if label is None:
                cut = ", which was cut at its limit" if reply.finish_reason == "length" else ""
                answer = one_line(" ".join(reply.text.split())[:200])
                return Verdict(
                    id=request.id,
                    status="unparsed",
                    message=f"no label in the answer{cut}: {answer}",
                    **self._signature(request),
                )
            labels.append(task.unswap(label) if order else label)
            stated.append(task.confidence_of(text))
            critiques.append(task.critique_of(text))
        confidences = [confidence for confidence in stated if confidence is not None]
        agreed = len(set(labels)) == 1
        notes = [
            None if agreed else disagreement(labels),
            left_out_note(request, task.pictures(request)),
            thoughts_note(request),
        ]
        return Verdict(
            id=request.id,
            status="scored" if agreed else "abstain",
            label=score_of(labels[0]) if agreed else None,
            error_type=(type_of(labels[0]) or None) if agreed else None,
            stated_confidence=sum(confidences) / len(confidences) if confidences else None,
            critique=critiques[0] if agreed else None,
            message="; ".join(filter(None, notes)) or None,
            needs_review=not agreed,
            **self._signature(request),
        )


def judge_messages(request: JudgeRequest) -> tuple[Message, ...]:
    """Compose what a chat model is told and shown to judge a request."""
    task: JudgeTask = get_task(request.task)
    if (whole := task.whole_prompt(request)) is not None:
        return (Message(role="user", text=whole, images=task.pictures(request)),)
    instruction = task.untrained_instruction(task.rubric(request))
    texts = [f"{field.heading}: {field.shown}" for field in task.item(request)]
    return one_user_turn(conversation(instruction, texts, task.pictures(request)))
