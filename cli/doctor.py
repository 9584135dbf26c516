"""``custos doctor``: does a service answer what benchmark scripts will ask?"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

import httpx
import typer
from rich.console import Console
from rich.table import Table

from judging import CustosError

if TYPE_CHECKING:
    from serve.chat.contract import Contract
    from serve.chat.layout import PromptLayout

PREFIX = "custos/"
DEADLINE_S = 120.0
SHOWN_CHARS = 70
WIDTH_IN_FILES = 160

Outcome = Literal["ok", "wrong", "refused", "not served"]


@dataclass(frozen=True)
class Finding:
    """What came of one model name."""

    model: str
    harness: str
    outcome: Outcome
    milliseconds: float | None = None
    """Mean of its calls."""
    answered_by: str = ""
    reply: str = ""


def doctor(
    url: Annotated[str, typer.Option(help="Address of the service, with or without /v1.")],
    key: Annotated[
        str, typer.Option(envvar="CUSTOS_KEY", help="Access key; better given as CUSTOS_KEY.")
    ] = "",
    model: Annotated[
        list[str] | None, typer.Option(help="Only these model names; may be repeated.")
    ] = None,
) -> None:
    """Send every benchmark script's payload shape to a service and print what came back.

    Each form is sent twice about a question of our own, with a right and with a wrong response.
    'ok': both verdicts were right and in a form that the script can read. 'wrong': one was not.
    'refused': an error came back. 'not served': no judge there takes the task.

    Exit status: 0 if all that is served is ok, 1 if not, or if nothing is served.

    Example: custos doctor --url http://127.0.0.1:8000
    """
    base_url = url.rstrip("/").removesuffix("/v1")
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    with httpx.Client(base_url=base_url, headers=headers, timeout=DEADLINE_S) as http:
        served = served_models(http)
        wanted = model or sorted(served.keys() | own_models())
        findings = [examined(http, name, served) for name in wanted]
    table = Table("model", "harness", "outcome", "ms", "answered by", "reply")
    for found in findings:
        shown = "-" if found.milliseconds is None else f"{found.milliseconds:.0f}"
        table.add_row(
            found.model, found.harness, found.outcome, shown, found.answered_by, found.reply
        )
    console = Console(highlight=False, markup=False)
    if not console.is_terminal:
        console.width = WIDTH_IN_FILES
    console.print(table)
    outcomes = {found.outcome for found in findings}
    unserved = {"not served"} if model is None else set()
    if outcomes - {"ok"} - unserved or "ok" not in outcomes:
        raise typer.Exit(1)


def served_models(http: httpx.Client) -> dict[str, str]:
    """Every model name of a service, to the name it truly has.

    Raises:
        CustosError: If there is no such service, or it refuses the key.
    """
    try:
        answer = http.get("/v1/models")
        listed = answer.raise_for_status().json()["data"]
        return {one["id"]: one.get("root") or one["id"] for one in listed}
    except httpx.HTTPStatusError as error:
        raise CustosError(
            f"--url '{http.base_url}': GET /v1/models answered {error.response.status_code}"
        ) from None
    except (httpx.HTTPError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise CustosError(f"--url '{http.base_url}': no list of models ({error})") from None


def own_models() -> set[str]:
    """Names under which harnesses may ask."""
    from serve.chat.contract import CHAT_CONTRACTS

    return {PREFIX + contract.name for contract in CHAT_CONTRACTS}


def examined(http: httpx.Client, name: str, served: Mapping[str, str]) -> Finding:
    """Send all payloads that fit a model name; the first that fails tells what came back."""
    from serve.chat.contract import CHAT_CONTRACTS

    short = served.get(name, name).removeprefix(PREFIX).partition("@")[0]
    contract = CHAT_CONTRACTS.get(short) if short in CHAT_CONTRACTS else None
    if name not in served:
        return Finding(name, contract.harness if contract else "", "not served")
    start, num_calls, reply = time.perf_counter(), 0, {"content": "", "model": ""}
    outcome: Outcome = "ok"
    if contract is None:
        outcome, reply = _send(http, name, {"max_tokens": 16}, "Say hello.")
        num_calls = 1
    else:
        for layout, right in (
            (each, right) for each in contract.layouts for right in (True, False)
        ):
            outcome, reply = _judged(http, name, contract, layout, right)
            num_calls += 1
            if outcome != "ok":
                break
    milliseconds = 1000 * (time.perf_counter() - start) / num_calls
    shown = " ".join(reply["content"].split())[:SHOWN_CHARS]
    harness = contract.harness if contract else "free text"
    return Finding(name, harness, outcome, milliseconds, reply["model"], shown)


def _judged(
    http: httpx.Client, name: str, contract: Contract, layout: PromptLayout, right: bool
) -> tuple[Outcome, dict[str, str]]:
    outcome, reply = _send(http, name, contract.body, layout.payload(right=right))
    if outcome != "ok":
        return outcome, reply
    word = contract.parse(layout, reply["content"])
    best = next(iter((layout.words or contract.words).values()))
    return "ok" if word is not None and (word == best) is right else "wrong", reply


def _send(
    http: httpx.Client, name: str, body: Mapping[str, Any], prompt: str
) -> tuple[Outcome, dict[str, str]]:
    """One call: whether there was a reply, and what it or the error said."""
    asked = {"model": name, "messages": [{"role": "user", "content": prompt}], **body}
    try:
        answer = http.post("/v1/chat/completions", json=asked)
        said = answer.json()
        if answer.status_code != 200:
            message = f"{answer.status_code} {said['error']['message']}"
            return "refused", {"content": message, "model": ""}
        content = said["choices"][0]["message"]["content"]
        return "ok", {"content": str(content), "model": str(said.get("model", ""))}
    except httpx.HTTPError as error:
        return "refused", {"content": f"{type(error).__name__} {error}", "model": ""}
    except (ValueError, KeyError, IndexError, TypeError):
        return "wrong", {"content": f"{answer.status_code} {answer.text}", "model": ""}
