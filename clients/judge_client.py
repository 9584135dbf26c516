"""Clients of ``custos serve``: requests go in batches, and again when the service asks for it.

client = JudgeClient("http://127.0.0.1:8000")
for verdict in client.grade(requests):
    print(verdict.label)
"""

from __future__ import annotations

import asyncio
import json
import os
from collections import deque
from collections.abc import AsyncGenerator, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cached_property
from typing import Any, Self

import httpx

from clients.connection import (
    SHOWN_CHARS,
    ModelServer,
    ReplyBody,
    RequestRefused,
    ServerConnection,
    ServerRefusal,
    TooMuch,
    run_coroutine,
)
from clients.messages import picture_url
from judging.errors import CustosError, FieldError
from judging.fingerprint import digest
from judging.judge.card import RequestT, in_known_mode
from judging.log_lines import one_line
from judging.progress import in_batches
from judging.tasks import get_task
from judging.types import JudgeRequest, Verdict, each_request

CALLS = 4
"""Most calls at the same time: while one is graded, the others are sent and answered."""
MAX_BATCH = 256
"""Most requests that the service takes in one call."""
CHUNK = 1024
"""Requests that the synchronous client sends before it waits for all their verdicts."""
SENT = JudgeRequest.model_fields.keys() - {"metadata"}
"""Fields that a service gets: without what no judge sees, such as the label of an example."""
KEY_VARIABLE = "CUSTOS_KEY"
"""Environment variable with the access key that clients send."""
KEY_HELP = f"set {KEY_VARIABLE} to one of the keys that the service accepts"


class _Verdicts(ReplyBody):
    called = "list of verdicts"
    verdicts: tuple[Verdict, ...]


class AsyncJudgeClient:
    """Client of a service; an asynchronous context manager.

    Args:
        url: Address of the service, as ``custos serve`` prints it.
        judge: Name of the judge that grades. Default: for every request the judge that knows its
            rubric best.
        api_key: Access key. Default: the environment variable ``CUSTOS_KEY``; without it, none.
        concurrency: Most requests that one :meth:`grade` has under way, in ``CALLS`` calls. Several
            of them side by side have no more calls than this under way together.
        deadline: Seconds that one try of a call may take.
        tries: Most tries of one call. Between two tries the client waits as long as the service
            asks.
        busy_tries: Most tries while the service says that it is busy (429). Default: ``tries``.

    Raises:
        CustosError: If the text is no address, or the key has characters that cannot be sent.
    """

    def __init__(
        self,
        url: str,
        *,
        judge: str | None = None,
        api_key: str | None = None,
        concurrency: int = 64,
        deadline: float = 300.0,
        tries: int = 8,
        busy_tries: int | None = None,
    ) -> None:
        self.judge = judge
        self.batch = max(1, min(concurrency // CALLS, MAX_BATCH))
        self.server = ModelServer(
            url,
            judge or "",
            os.environ.get(KEY_VARIABLE, "") if api_key is None else api_key,
            key_help=KEY_HELP,
            concurrency=max(1, concurrency),
            deadline=deadline,
            tries=tries,
            busy_tries=busy_tries,
        )
        self._connection = ServerConnection(self.server)

    async def __aenter__(self) -> Self:
        await self._connection.__aenter__()
        return self

    async def __aexit__(self, *error: Any) -> None:
        await self._connection.__aexit__(*error)

    async def judges(self) -> list[dict[str, Any]]:
        """Read the cards of the service's judges; raise ``ServerRefusal`` if there is no list."""
        url = self.server.base_url
        try:
            async with ServerConnection(self.server) as connection:
                answer = await connection.get("judges", seconds=60)
            if answer.status_code == httpx.codes.UNAUTHORIZED:
                raise self.server.key_refusal()
            if not answer.is_success:
                status = answer.status_code
                advice = "; give the address that 'custos serve' prints" if status == 404 else ""
                if answer.has_redirect_location:
                    address = one_line(answer.headers["location"][:SHOWN_CHARS])
                    advice = f"; it redirects to '{address}'; give the address of that server"
                message = answer.reason_phrase
                with suppress(ValueError, KeyError, TypeError):
                    message = str(answer.json()["error"]["message"])[:SHOWN_CHARS]
                raise ServerRefusal(f"{url}: no list of judges ({status} {message}){advice}")
            cards: list[dict[str, Any]] = answer.json()["judges"]
        except httpx.TransportError as error:
            raise ServerRefusal(f"{url}: {no_answer(error)}") from None
        except (httpx.HTTPError, ValueError, KeyError, TypeError) as error:
            raise ServerRefusal(f"{url}: no list of judges ({error})") from None
        # Tasks are names, or each name leads to a list of rubrics.
        are_cards = isinstance(cards, list) and all(
            isinstance(card, dict)
            and isinstance(card.get("name"), str)
            and isinstance(tasks := card.get("tasks"), list | dict)
            and all(isinstance(rubrics, list) for rubrics in getattr(tasks, "values", list)())
            for card in cards
        )
        if not are_cards:
            raise ServerRefusal(f"{url}: no list of judges (it holds no names and tasks)")
        return cards

    async def grade(self, requests: Iterable[JudgeRequest]) -> AsyncGenerator[Verdict]:
        """Grade requests in order; up to ``CALLS`` calls are sent before a verdict is taken.

        Pictures may be files; they are sent as data URLs.

        Yields:
            One verdict per request. Its status is ``invalid`` if the service refuses the
            request.

        Raises:
            ServerRefusal: If the service refuses the key, or has no such judge.
            CustosError: If the last try of a call failed.
        """
        calls: deque[asyncio.Task[list[Verdict]]] = deque()
        try:
            for batch in in_batches(each_request(requests), self.batch):
                calls.append(asyncio.create_task(self._grade(batch)))
                if len(calls) == CALLS:
                    for verdict in await calls.popleft():
                        yield verdict
            while calls:
                for verdict in await calls.popleft():
                    yield verdict
        finally:
            for call in calls:
                call.cancel()
            await asyncio.gather(*calls, return_exceptions=True)

    async def _grade(self, batch: Sequence[JudgeRequest]) -> list[Verdict]:
        verdicts: dict[int, Verdict | CustosError] = {}
        rows: dict[int, dict[str, Any]] = {}
        for index, request in enumerate(batch):
            try:
                get_task(request.task).check(request)
                rows[index] = {
                    # Without fields that are not set, which older services do not know.
                    **request.model_dump(mode="json", include=SENT, exclude_none=True),
                    "images": [picture_url(source) for source in request.images],
                }
            except CustosError as error:
                verdicts[index] = error
        verdicts |= zip(rows, await self._post(list(rows.values())), strict=True)
        signature = {} if self.judge is None else {"judge_name": self.judge}
        found = [verdicts[index] for index in range(len(batch))]
        return [
            each if isinstance(each, Verdict) else Verdict.from_error(each, request, **signature)
            for request, each in zip(batch, found, strict=True)
        ]

    async def _post(self, rows: list[dict[str, Any]]) -> list[Verdict | RequestRefused]:
        """Return a verdict or a refusal for every row; a refused call is sent again in halves.

        If a call was too much for the service, later ones have no more rows than its halves.
        """

        async def in_halves() -> list[Verdict | RequestRefused]:
            half = len(rows) // 2
            return [*await self._post(rows[:half]), *await self._post(rows[half:])]

        if not rows:
            return []
        if len(rows) > self.batch:
            return await in_halves()
        body: dict[str, Any] = {"requests": rows}
        if self.judge is not None:
            body["judge"] = self.judge
        try:
            async with self._connection.gate:
                answer = await self._connection.post(
                    "judge",
                    json.dumps(body).encode(),
                    _Verdicts,
                    self.server.base_url,
                    has_parts=len(rows) > 1,
                )
        except RequestRefused as error:
            if len(rows) == 1:
                return [error]
            if isinstance(error, TooMuch):
                self.batch = min(self.batch, len(rows) // 2)
            return await in_halves()
        if len(answer.verdicts) != len(rows):
            raise CustosError(
                f"{self.server.base_url}: {len(answer.verdicts)} verdicts on {len(rows)} requests"
            )
        return list(answer.verdicts)


class JudgeClient:
    """Client of a service without ``async``, for scripts and ``custos grade``.

    Args:
        url: Address of the service.
        judge: Name of the judge that grades.
        options: Further options of :class:`AsyncJudgeClient`, such as ``api_key``.
    """

    def __init__(self, url: str, *, judge: str | None = None, **options: Any) -> None:
        self.name = url
        self._judge = judge
        self._options = {"judge": judge, **options}
        self._batch = AsyncJudgeClient(url, **self._options).batch
        """Most requests that the service was found to take in one call."""

    @classmethod
    def connect(cls, url: str, **options: Any) -> JudgeClient:
        """Make a client of a service that answers now; raise ``ServerRefusal`` if it does not."""
        client = cls(url, **options)
        _ = client.judges
        return client

    def grade(self, requests: Iterable[JudgeRequest], /) -> Iterator[Verdict]:
        """Grade requests in order; yields and raises as :meth:`AsyncJudgeClient.grade`."""
        for chunk in in_batches(each_request(requests), CHUNK):
            yield from run_coroutine(self._grade_chunk(chunk))

    async def _grade_chunk(self, chunk: Sequence[JudgeRequest]) -> list[Verdict]:
        async with AsyncJudgeClient(self.name, **self._options) as client:
            client.batch = min(client.batch, self._batch)
            try:
                return [verdict async for verdict in client.grade(chunk)]
            finally:
                self._batch = client.batch

    @cached_property
    def judges(self) -> list[dict[str, Any]]:
        """Read the cards once, as :meth:`AsyncJudgeClient.judges`."""
        return run_coroutine(AsyncJudgeClient(self.name, **self._options).judges())

    def resolve(self, request: RequestT) -> RequestT:
        """Return a request with the reference mode that the service's judges take it in.

        It is unchanged if they know its rubric, and if by their cards they know it in neither mode.
        Raises ``FieldError`` if there is no such task or variant.
        """
        task = get_task(request.task)
        rubrics = [
            rubric
            for card in self._may_grade
            if isinstance(card["tasks"], dict)
            for rubric in card["tasks"].get(task.name, ())
        ]
        return in_known_mode(request, task, rubrics) or request

    def fingerprint(self, request: JudgeRequest) -> str:
        """Compute a digest of the cards of the judges that may grade a request.

        What was measured of a judge is left out: it does not change a verdict. Raises
        ``FieldError`` if no judge there takes the task.
        """
        taking = [card for card in self._may_grade if request.task in card["tasks"]]
        if not taking:
            raise FieldError("task", f"no judge at {self.name} takes '{request.task}'")
        judges = [{key: card[key] for key in card if key != "measured"} for card in taking]
        return digest({"judges": judges})

    @property
    def _may_grade(self) -> list[dict[str, Any]]:
        return [card for card in self.judges if self._judge in (None, card["name"])]


def no_answer(error: httpx.TransportError) -> str:
    """Say the reason why no service answers at an address, and what to do about it."""
    advice = "is 'custos serve' running there?"
    if "CERTIFICATE_VERIFY_FAILED" in str(error):
        advice = "set SSL_CERT_FILE to the certificate of the authority that you trust"
    return f"no answer ({error or type(error).__name__}); {advice}"
