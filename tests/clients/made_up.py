"""Settings and requests for the tests of this folder."""

import json
from collections.abc import Callable
from typing import Any

from clients.chat import Reply, ask_all
from clients.connection import ModelServer
from clients.messages import ChatItem, Decoding
from judging import CustosError, JudgeRequest
from judging.scoring.engine import Sampling
from judging.types import Message
from tests.clients.fake_server import RESET, FakeServer, Say, Seen

SHORT = Sampling(max_new_tokens=6, temperature=0)
KEY = "sk-do-not-show-me-0123456789"


def server(fake: FakeServer, **options: Any) -> ModelServer:
    given: dict[str, Any] = {"model": "m", "first_wait": 0.01, "tries": 2, "deadline": 120.0}
    return ModelServer(fake.url, **(given | options))


def keyed(fake: FakeServer, **options: Any) -> ModelServer:
    return server(fake, **({"api_key": KEY, "tries": 3, "deadline": 20.0} | options))


def pair(**fields: Any) -> JudgeRequest:
    given = {
        "task": "truthful-pair",
        "question": "Is the lighthouse green?",
        "response_a": "Yes, it is green.",
        "response_b": "No; it is brown.",
    }
    return JudgeRequest.model_validate(given | fields)


def item(id: str = "q1", text: str = "Hello?", images: tuple[str, ...] = ()) -> ChatItem:
    return ChatItem(id=id, messages=(Message(role="user", text=text, images=images),))


def ask(to: ModelServer, what: ChatItem | None = None, **decoding: Any) -> Reply:
    outcomes: list[Reply | CustosError] = []
    ask_all(to, Decoding(**decoding), [what or item()], lambda _, said: outcomes.append(said))
    [outcome] = outcomes
    if isinstance(outcome, CustosError):
        raise outcome
    return outcome


def verdicts_on(seen: Seen, delay: float = 0.0, **fields: Any) -> Say:
    """Answer as a service does, with one label for all."""
    given = {"status": "scored", "label": "x", **fields}
    verdicts = [{"id": row["id"], **given} for row in seen.body["requests"]]
    return Say(body=json.dumps({"verdicts": verdicts}), delay=delay)


def unless(server: FakeServer, fault: Callable[[Seen, int], Say | str | None]) -> None:
    """Have a server fail some of its calls for work, which the fault is given with their number."""
    answer = server.answer

    def answer_or_fail(seen: Seen) -> Say | str:
        number = sum(each.path != "/judges" for each in server.seen)
        return (seen.path != "/judges" and fault(seen, number)) or answer(seen)

    server.answer = answer_or_fail


def kill_after(server: FakeServer, calls: int) -> None:
    def die(_: Seen, number: int) -> str | None:
        if number > calls:
            server.kill()
        return RESET if number > calls else None

    unless(server, die)
