"""Many chat requests as one job that can be stopped at any moment and taken up again."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from pydantic import BaseModel, ValidationError
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from clients.chat import ChatClient, ModelServer, Prices, Reply, Usage
from clients.messages import ChatItem, Decoding, item_key
from judging.errors import CustosError

REQUEST_FAILED = "request failed"


class Answer(BaseModel):
    """A line of the answers file: an answer, and what it is an answer to."""

    id: str
    key: str
    reply: Reply


class Reject(BaseModel):
    """A line of the rejects file: an item that came to nothing, and why."""

    id: str
    reason: str
    """One of a few, to be counted by."""
    detail: str


@dataclass
class JobResult:
    """What a job came to, earlier runs of it included."""

    replies: dict[str, Reply] = field(default_factory=dict)
    """Item id to answer."""
    rejects: list[Reject] = field(default_factory=list)
    """Items without an answer."""
    num_reused: int = 0
    """Answers that an earlier run had paid for."""

    @property
    def usage(self) -> Usage:
        """Tokens of all answers that the server counted."""
        counted = (reply.usage for reply in self.replies.values() if reply.usage)
        return sum(counted, Usage())

    @property
    def num_uncounted(self) -> int:
        """Answers whose tokens the server did not count."""
        return sum(reply.usage is None for reply in self.replies.values())

    def account(self, prices: Prices | None) -> dict[str, Any]:
        """What it took, for a manifest: ``reused, usage, uncounted, cost``."""
        return {
            "reused": self.num_reused,
            "usage": self.usage.model_dump(),
            "uncounted": self.num_uncounted,
            "cost": prices.cost(self.usage) if prices else None,
        }


def run_job(
    items: Sequence[ChatItem],
    server: ModelServer,
    decoding: Decoding,
    *,
    answers: Path,
    rejects: Path,
    prices: Prices | None = None,
) -> JobResult:
    """Ask for every item that has no answer yet, behind a progress bar on standard error.

    Stopped by Ctrl-C, a kill or a refusal, it keeps every answer that arrived; called again, it
    asks for the rest, and again for items that failed. An item whose messages, pictures, model or
    decoding changed is asked anew.

    Args:
        items: What to ask, under different ids.
        server: Whom to ask.
        decoding: How answers are drawn.
        answers: JSONL file of ``Answer``, in order of completion; grows line by line.
        rejects: JSONL file of ``Reject`` for items that failed in this run; absent if none did.
        prices: For the cost beside the bar.

    Raises:
        ServerRefusal: If the server refuses all items alike.
        CustosError: If two items have the same id.
    """
    keys = _keys(items, server.model, decoding)
    for path in (answers, rejects):
        path.parent.mkdir(parents=True, exist_ok=True)
    rejects.unlink(missing_ok=True)
    result = JobResult(replies=read_answers(answers, keys))
    result.num_reused = len(result.replies)
    left = [item for item in items if item.id not in result.replies]
    with answers.open("ab") as file, _progress() as progress:
        bar = progress.add_task("asking", total=len(items), spent="", failed="")
        usage = result.usage

        def show() -> None:
            progress.update(
                bar,
                completed=len(result.replies) + len(result.rejects),
                spent=spent(usage, prices),
                failed=f"{len(result.rejects)} failed" if result.rejects else "",
            )

        def done(item: ChatItem, outcome: Reply | CustosError) -> None:
            nonlocal usage
            if isinstance(outcome, Reply):
                _append(file, Answer(id=item.id, key=keys[item.id], reply=outcome))
                result.replies[item.id] = outcome
                usage += outcome.usage or Usage()
            else:
                reject = Reject(id=item.id, reason=REQUEST_FAILED, detail=str(outcome))
                with rejects.open("ab") as rejects_file:
                    _append(rejects_file, reject)
                result.rejects.append(reject)
            show()

        show()
        asyncio.run(_ask(left, server, decoding, done))
    return result


def read_answers(path: Path, keys: Mapping[str, str]) -> dict[str, Reply]:
    """Answers in a file that still hold; a last line that was cut off is cut away for good.

    Args:
        path: Answers file; need not exist.
        keys: Item id to the key an answer must have.
    """
    if not path.exists():
        return {}
    replies = {}
    with path.open("rb+") as file:
        content = file.read()
        end = content.rfind(b"\n") + 1
        file.truncate(end)
    for line in content[:end].splitlines():
        try:
            answer = Answer.model_validate_json(line)
        except ValidationError:
            continue
        if keys.get(answer.id) == answer.key:
            replies[answer.id] = answer.reply
    return replies


def spent(usage: Usage, prices: Prices | None) -> str:
    """Tokens and, with prices, their cost, in words."""
    tokens = f"{usage.prompt_tokens + usage.completion_tokens:,} tokens"
    return tokens if prices is None else f"{tokens}, cost {prices.cost(usage):.4f}"


def _keys(items: Iterable[ChatItem], model: str, decoding: Decoding) -> dict[str, str]:
    keys: dict[str, str] = {}
    for item in items:
        if item.id in keys:
            raise CustosError(f"id '{item.id}' is given to more than one item")
        keys[item.id] = item_key(item, model, decoding)
    return keys


async def _ask(
    items: Sequence[ChatItem],
    server: ModelServer,
    decoding: Decoding,
    done: Callable[[ChatItem, Reply | CustosError], None],
) -> None:
    async with ChatClient(server, decoding) as client:
        await client.complete_all(items, done)


def _append(file: IO[bytes], record: BaseModel) -> None:
    file.write(record.model_dump_json().encode() + b"\n")
    file.flush()
    os.fsync(file.fileno())


def _progress() -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[spent]}"),
        TextColumn("{task.fields[failed]}"),
        TimeRemainingColumn(),
        console=Console(stderr=True),
    )
