"""Many chat requests as one job that can be stopped at any moment and continued later."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from clients.chat import Prices, Reply, Usage, ask_all
from clients.connection import ModelServer
from clients.messages import ChatItem, Decoding, item_key
from judging.errors import CustosError
from judging.files.kept_work import KeptFile, KeptLine, Origin, append_lines, locked

REQUEST_FAILED = "request failed"


class KeptAnswer(KeptLine):
    """A line of the answers file: an answer, and the item that it is an answer to."""

    id: str
    reply: Reply

    @property
    def origin(self) -> Origin:
        """Return the item's id and its key."""
        return self.id, self.key


class Reject(BaseModel):
    """A line of the rejects file: an item without a usable answer, and the reason."""

    id: str
    reason: str
    """One of a few reasons, so that rejects can be counted by it."""
    detail: str


@dataclass
class JobResult:
    """The answers of a job, those of earlier runs included."""

    replies: dict[str, Reply] = field(default_factory=dict)
    """Item id to answer."""
    rejects: list[Reject] = field(default_factory=list)
    """Items without an answer."""
    num_reused: int = 0
    """Answers that an earlier run received."""

    @property
    def usage(self) -> Usage:
        """Return the tokens of all answers that the server counted."""
        return sum((reply.usage for reply in self.replies.values() if reply.usage), Usage())

    @property
    def num_uncounted(self) -> int:
        """Return the number of answers whose tokens the server did not count."""
        return sum(reply.usage is None for reply in self.replies.values())

    def account(self, prices: Prices | None) -> dict[str, Any]:
        """Return tokens and cost for a manifest: ``reused, usage, uncounted, cost``."""
        return {
            "reused": self.num_reused,
            "usage": self.usage.model_dump(),
            "uncounted": self.num_uncounted,
            "cost": prices.cost(self.usage) if prices else None,
        }


@dataclass(frozen=True)
class JobProgress:
    """Counts of a job's items and tokens while it runs."""

    num_items: int
    num_done: int
    """Items with an answer, and items that failed."""
    num_failed: int
    usage: Usage
    """Tokens of all answers so far."""


OnProgress = Callable[[JobProgress], None]


class ChatJob:
    """Items to ask a model, and the file that keeps its answers; :func:`open_job` makes one."""

    def __init__(
        self,
        items: Sequence[ChatItem],
        model: str,
        decoding: Decoding,
        answers: Path,
        on_progress: OnProgress | None,
    ) -> None:
        self._keys: dict[str, str] = {}
        for item in items:
            if item.id in self._keys:
                raise CustosError(f"id '{item.id}' is given to more than one item")
            self._keys[item.id] = item_key(item, model, decoding)
        self._file = KeptFile(answers, KeptAnswer)
        self._on_progress = on_progress
        kept = self._file.matching(self._keys.items())
        self.result = JobResult({line.id: line.reply for line in kept})
        self.result.num_reused = len(self.result.replies)
        self.remaining = [item for item in items if item.id not in self.result.replies]
        """Items that have no answer yet."""
        self._usage = self.result.usage
        self._show()

    def save(self, replies: Mapping[str, Reply]) -> None:
        """Write answers, by item id, to the file, and count them."""
        self._file.append(
            KeptAnswer(id=name, key=self._keys[name], reply=reply)
            for name, reply in replies.items()
        )
        self.result.replies.update(replies)
        self._usage += sum((reply.usage for reply in replies.values() if reply.usage), Usage())
        self._show()

    def reject(self, reject: Reject) -> None:
        """Count an item that failed in this run."""
        self.result.rejects.append(reject)
        self._show()

    def _show(self) -> None:
        if self._on_progress is not None:
            num_failed = len(self.result.rejects)
            num_done = len(self.result.replies) + num_failed
            self._on_progress(JobProgress(len(self._keys), num_done, num_failed, self._usage))


@contextmanager
def open_job(
    items: Sequence[ChatItem],
    model: str,
    decoding: Decoding,
    answers: Path,
    on_progress: OnProgress | None = None,
) -> Iterator[ChatJob]:
    """Open a :class:`ChatJob`, and keep other processes from its answers until it is closed.

    ``answers`` is a JSONL file of ``KeptAnswer``, in order of completion, that grows line by line;
    ``on_progress`` is called at the start and whenever an item is done.

    Raises:
        CustosError: If another process is writing the answers, or two items have the same id.
    """
    with locked(answers):
        yield ChatJob(items, model, decoding, answers, on_progress)


def run_job(
    items: Sequence[ChatItem],
    server: ModelServer,
    decoding: Decoding,
    *,
    answers: Path,
    rejects: Path,
    on_progress: OnProgress | None = None,
) -> JobResult:
    """Ask a server for every item that has no answer yet, as a job of :func:`open_job`.

    If the job is stopped by Ctrl-C, a kill or a refusal, every answer that arrived is kept. The
    next call asks only for the others, and again for items that failed: ``rejects`` lists those of
    this run. An item whose messages, pictures, model or decoding changed is asked again.

    Raises:
        ServerRefusal: If the server refuses all items alike.
        CustosError: If two items have the same id, or another process runs this job.
    """
    rejects.parent.mkdir(parents=True, exist_ok=True)
    with open_job(items, server.model, decoding, answers, on_progress) as job:
        rejects.unlink(missing_ok=True)

        def done(item: ChatItem, outcome: Reply | CustosError) -> None:
            if isinstance(outcome, Reply):
                job.save({item.id: outcome})
                return
            reject = Reject(id=item.id, reason=REQUEST_FAILED, detail=str(outcome))
            append_lines(rejects, [reject])
            job.reject(reject)

        ask_all(server, decoding, job.remaining, done)
    return job.result
