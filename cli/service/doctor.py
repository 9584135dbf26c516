"""``custos doctor``: whether a service answers what benchmark scripts will ask."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, Literal

import httpx
import typer
from rich.table import Table

from cli.shared.options import with_groups
from cli.shared.screen import wide_console
from clients.connection import ModelServer, http_client
from clients.judge_client import KEY_HELP, KEY_VARIABLE, no_answer
from judging import CustosError

if TYPE_CHECKING:
    from serve.chat.contract import Contract

PREFIX = "custos/"
DEADLINE_S = 120.0
REPLY_CHARS = 40
"""Characters of a reply that are printed."""

Outcome = Literal["ok", "erred", "wrong", "refused", "not served"]
EXPLANATIONS: dict[Outcome, str] = {
    "erred": "the script can read the verdict, but it is not the right one. A judge may err on one "
    "prompt: 'custos eval' measures how often.",
    "wrong": "the reply has no verdict that the script can read, or not one of a custos judge.",
    "refused": "the service answered with the error that is shown.",
    "not served": "no judge there takes the task. 'custos tasks' says which judges do.",
}
"""Meaning of every outcome but ``ok``, for the user."""


@dataclass(frozen=True)
class Check:
    """Outcome of a model's reply to one payload or, in the summary, to all."""

    outcome: Outcome
    text: str = ""
    """Text of the reply, or of the error."""
    answered_by: str = ""
    """Name of the model that answered."""
    model: str = ""
    harness: str = ""
    milliseconds: float | None = None
    """Mean of the calls."""


@with_groups
def doctor(
    address: Annotated[str | None, typer.Argument(metavar="URL")] = None,
    url: str = "http://127.0.0.1:8000",
    key: Annotated[str, typer.Option(envvar=KEY_VARIABLE)] = "",
    model: list[str] | None = None,
) -> None:
    """Check that a service answers benchmark scripts, each under its own model name.

    For every script a prompt in its form is sent twice, with a right and with a wrong response. The
    outcome is 'ok' if both verdicts were right and in a form that the script can read, 'erred' if
    the judge mistook one, 'wrong' if one was no verdict of ours, 'refused' if an error came back,
    and 'not served' if no judge there takes the task.

    The exit status is 0 if everything that is served is ok or erred. It is 1 if something is not,
    or if nothing is ok.

    Example: custos doctor http://127.0.0.1:8000

    Options:
        address: Address of the service, with or without /v1. Default: that of --url.
        url: The same, as an option.
        key: Access key. Give it in the environment variable, where other users of this machine
            cannot read it. Default: no key.
        model: Check only this model, such as custos/qa or custos/qa@embedded-qs. May be repeated.
            Default: all models of the service, and all that scripts may ask for.
    """
    from serve.chat.models import nearest_model

    # It checks the address and the key, so that no error of httpx can show the key.
    root = (address or url).rstrip("/").removesuffix("/v1")
    server = ModelServer(root, "", key, key_help=KEY_HELP)
    place = f"--url '{server.base_url}'"
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    options = {"headers": headers, "timeout": DEADLINE_S}
    with http_client(httpx.Client, server.base_url, **options) as http:
        try:
            answer = http.get("/v1/models")
            if answer.status_code == httpx.codes.UNAUTHORIZED:
                raise CustosError(server.key_refusal())
            models = answer.raise_for_status().json()["data"]
            # Aliases map to the model that answers for them.
            served = {each["id"]: each.get("root") or each["id"] for each in models}
        except httpx.HTTPStatusError as error:
            status = error.response.status_code
            raise CustosError(f"{place}: GET /v1/models answered {status}") from None
        except httpx.TransportError as error:
            raise CustosError(f"{place}: {no_answer(error)}") from None
        except (httpx.HTTPError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise CustosError(f"{place}: no list of models ({error})") from None
        names = model or model_names(served)
        known = served.keys() | contract_models()
        for name in names:
            if name not in known:
                near = nearest_model(name, known)
                hint = f"did you mean {near}" if near else f"there are {', '.join(sorted(known))}"
                raise CustosError(f"--model '{name}': no such model; {hint}")
        checks = [check_model(http, name, served) for name in names]
    table = Table()
    for heading in ("model", "harness", "outcome", "ms", "answered by", "reply"):
        # Names are whole, for people to copy.
        table.add_column(heading, no_wrap=heading in ("model", "answered by"))
    for check in checks:
        ms = "-" if check.milliseconds is None else f"{check.milliseconds:.0f}"
        text = " ".join(check.text.split())[:REPLY_CHARS]
        table.add_row(check.model, check.harness, check.outcome, ms, check.answered_by, text)
    wide_console().print(table)
    outcomes = {check.outcome for check in checks}
    for outcome, explanation in EXPLANATIONS.items():
        if outcome in outcomes:
            typer.echo(f"{outcome}: {explanation}")
    allowed = {"ok", "erred", "not served"} if model is None else {"ok", "erred"}
    if not outcomes <= allowed or "ok" not in outcomes:
        raise typer.Exit(1)


def model_names(served: Mapping[str, str]) -> list[str]:
    """Name what to check: aliases and names of scripts, and judges that need their name.

    ``custos/qa@qs`` is left out if ``custos/qa`` asks the same judge.
    """
    by_shorter_names = {root for name, root in served.items() if name != root}
    names = {name for name in served if name not in by_shorter_names}
    return sorted(names | contract_models())


def contract_models() -> set[str]:
    """Name the models that benchmark scripts may ask for."""
    from serve.chat.contract import CHAT_CONTRACTS

    return {PREFIX + contract.name for contract in CHAT_CONTRACTS}


def check_model(http: httpx.Client, name: str, served: Mapping[str, str]) -> Check:
    """Send all payloads that fit a model; stop at the first that the script could not use."""
    from serve.chat.contract import CHAT_CONTRACTS

    short = served.get(name, name).removeprefix(PREFIX).partition("@")[0]
    contract = CHAT_CONTRACTS.get(short) if short in CHAT_CONTRACTS else None
    if name not in served:
        return Check("not served", model=name, harness=contract.harness if contract else "")
    start, num_calls, check = time.perf_counter(), 0, Check("ok")
    for latest in _checks(http, name, contract):
        num_calls += 1
        if check.outcome == "ok" or latest.outcome != "ok":
            check = latest
        if check.outcome not in ("ok", "erred"):
            break
    milliseconds = 1000 * (time.perf_counter() - start) / num_calls
    harness = contract.harness if contract else "free text"
    return replace(check, model=name, harness=harness, milliseconds=milliseconds)


def _checks(http: httpx.Client, name: str, contract: Contract | None) -> Iterator[Check]:
    """Ask for free text, or for a right and a wrong verdict in each form of a script's prompt."""
    from serve.chat.layout import decoded

    if contract is None:
        greeting = [{"role": "user", "content": "Say hello."}]
        yield _ask(http, name, {"max_tokens": 16}, greeting)
        return
    if contract.steps:
        check = _ask(http, name, contract.body, contract.steps.messages(right=True))
        steps = (decoded(check.text) or {}).get("steps")
        yield check if steps or check.outcome != "ok" else replace(check, outcome="wrong")
    for layout in contract.layouts:
        best_word = next(iter(layout.words.values()))
        for right in (True, False):
            check = _ask(http, name, contract.body, layout.messages(right=right))
            if check.outcome == "ok":
                word = contract.parse(layout, check.text)
                if word is None:
                    check = replace(check, outcome="wrong")
                elif (word == best_word) is not right:
                    is_ours = check.answered_by.startswith(f"{PREFIX}{contract.name}@")
                    check = replace(check, outcome="erred" if is_ours else "wrong")
            yield check


def _ask(
    http: httpx.Client, name: str, body: Mapping[str, Any], messages: Sequence[Mapping[str, str]]
) -> Check:
    """Send one prompt; return the reply, or what is wrong with it."""
    payload = {"model": name, "messages": messages, **body}
    try:
        response = http.post("/v1/chat/completions", json=payload)
    except httpx.HTTPError as error:
        return Check("refused", f"{type(error).__name__} {error}")
    try:
        content = response.json()
        if response.status_code != 200:
            return Check("refused", f"{response.status_code} {content['error']['message']}")
        text = str(content["choices"][0]["message"]["content"])
        return Check("ok", text, str(content.get("model", "")))
    except (ValueError, KeyError, IndexError, TypeError):
        return Check("wrong", f"{response.status_code} {response.text}")
