"""Options that several verbs share: groups of them, servers, what is printed."""

from __future__ import annotations

import copy
import functools
import inspect
import os
import re
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from inspect import Parameter, Signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args, get_origin, get_type_hints

import typer

from cli.shared.outputs import output_file
from judging.errors import CustosError

if TYPE_CHECKING:
    from clients.chat import Prices
    from clients.chat_judge import ChatJudge
    from clients.connection import ModelServer


def with_groups(verb: Callable[..., None]) -> Callable[..., None]:
    """Turn a verb into what typer takes: groups as single options, help texts in annotations.

    A group is a dataclass of options. The help of an option stands in a section ``Options:`` at the
    end of the docstring of its verb or group.
    """
    hints = get_type_hints(verb, include_extras=True)
    groups: dict[str, Any] = {name: hint for name, hint in hints.items() if is_dataclass(hint)}
    text, helps = _without_options(verb)

    def parameters() -> Iterator[Parameter]:
        for name, parameter in inspect.signature(verb).parameters.items():
            if name not in groups:
                yield _parameter(name, parameter.default, hints[name], helps)
                continue
            of_group = get_type_hints(groups[name], include_extras=True)
            described: dict[str, str] = {}
            for base in groups[name].__mro__:
                described |= _without_options(base)[1]
            for field in fields(groups[name]):
                default = Parameter.empty if field.default is MISSING else field.default
                yield _parameter(field.name, default, of_group[field.name], described)

    @functools.wraps(verb)
    def run(**options: Any) -> None:
        values = {
            name: group(**{field.name: options.pop(field.name) for field in fields(group)})
            for name, group in groups.items()
        }
        verb(**options, **values)

    run.__doc__ = text
    run.__signature__ = Signature(list(parameters()))  # type: ignore[attr-defined]  # typer reads it
    return run


def _without_options(described: Any) -> tuple[str, dict[str, str]]:
    """Split a docstring at its section of options, and read the help of each of these."""
    text, _, section = (inspect.getdoc(described) or "").partition("\n\nOptions:\n")
    _, *parts = re.split(r"^ {4}(\w+): ", section, flags=re.MULTILINE)
    named = zip(parts[::2], parts[1::2], strict=True)
    return text, {name: re.sub(r"\n *", " ", text.strip()) for name, text in named}


def _parameter(name: str, default: Any, hint: Any, helps: Mapping[str, str]) -> Parameter:
    """Make an option with its help, or an argument where there is neither option nor default."""
    if name in helps:
        kind, *info = get_args(hint) if get_origin(hint) is Annotated else (hint,)
        plain = typer.Argument() if default is Parameter.empty else typer.Option()
        described = copy.copy(info[0] if info else plain)
        described.help = helps[name]
        hint = Annotated[kind, described]
    return Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=hint)


def command_line() -> str:
    """Repeat the command as it was typed, for manifests and reports."""
    return shlex.join(["custos", *sys.argv[1:]])


def read_assignments(
    texts: Iterable[str] | None,
    option: str,
    expected: str = "NAME=VALUE",
    *,
    once: bool = False,
    may_be_empty: bool = False,
) -> dict[str, str]:
    """Read options of the shape ``NAME=VALUE``; errors name ``option`` and what was ``expected``.

    ``once`` refuses a name that is given twice; otherwise the last value counts.
    """
    values: dict[str, str] = {}
    for text in texts or ():
        name, equals, value = text.partition("=")
        is_missing = not equals if may_be_empty else not value
        if not name or is_missing or (once and name in values):
            raise CustosError(f"{option} '{text}': expected {expected}")
        values[name] = value
    return values


AllowFailed = Annotated[
    bool, typer.Option("--allow-failed", help="Exit with status 0 even if rows failed.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
Risk = Annotated[
    float | None,
    typer.Option(
        "--risk",
        min=0.001,
        max=0.5,
        help="Share of wrong verdicts that you can live with, such as .05. Verdicts whose "
        "confidence does not suffice for it get needs_review. Default: none.",
    ),
]


Keys = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="KEY=VALUE",
        help="Set keys of the recipe, such as optim.lr=1e-4. Default: as in the recipe.",
    ),
]


Engine = Annotated[
    Literal["tree", "openai"],
    typer.Option(
        help="Where the model runs: on this machine (tree), or on an OpenAI-compatible server "
        "(openai). With openai, MODEL=RUN for a judge says which model on the server it is."
    ),
]
TokenBudget = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="Give a model on this machine at most this many tokens in one forward pass. A GPU "
        "whose memory is too small for them gets fewer by itself. Default: 16384 on a GPU, 512 on "
        "a CPU.",
    ),
]
BaseUrl = Annotated[
    list[str] | None,
    typer.Option(
        help="With --engine openai: address of the server, as in http://127.0.0.1:8001/v1. Give it "
        "several times for servers of the same models, which then share the work. Default: none."
    ),
]
ServerUrl = Annotated[
    str,
    typer.Option(
        help="Ask the OpenAI-compatible server at this address. Include the version: "
        "http://host:8000/v1"
    ),
]
Writer = Annotated[str, typer.Option(help="Have this model on the server write.")]
Temperature = Annotated[
    float | None, typer.Option(min=0, help="Sampling temperature. Default: the server's own.")
]
MaxTokens = Annotated[int, typer.Option(min=1, help="Stop a reply after this many tokens.")]
KeyEnv = Annotated[
    str | None,
    typer.Option(
        help="Send the key that this environment variable holds. "
        "Default: CUSTOS_KEY to a custos serve, no key to another server."
    ),
]
Concurrency = Annotated[
    int, typer.Option(min=1, help="Send at most this many requests at the same time.")
]
Deadline = Annotated[float, typer.Option(min=1, help="Give up a try after this many seconds.")]


ChatModel = Annotated[
    str | None,
    typer.Option(
        help="Ask this model, if the address is that of an OpenAI-compatible server. Default: none."
    ),
]


def api_key(variable: str | None, option: str = "--key-env") -> str:
    """Read a key from the environment variable that an option names; an empty text without one."""
    if variable is None:
        return ""
    key = os.environ.get(variable, "")
    if not key:
        raise CustosError(f"{option} '{variable}': no such environment variable, or it is empty")
    return key


@dataclass(frozen=True)
class RequestOptions:
    """Settings of requests to a model server: key, concurrency and deadline."""

    key_env: KeyEnv = None
    concurrency: Concurrency = 8
    deadline: Deadline = 300

    def server(self, base_url: str, model: str) -> ModelServer:
        """Describe a model on a server."""
        from clients.connection import ModelServer

        key, limit, deadline = api_key(self.key_env), self.concurrency, self.deadline
        return ModelServer(base_url, model, key, concurrency=limit, deadline=deadline)


@dataclass(frozen=True)
class RivalOptions:
    """Chat models that are measured beside a judge, and their server.

    Options:
        chat_model: Measure this chat model beside the judge; it is asked at --chat-url. May be
            repeated. Default: none.
        chat_url: Address of the OpenAI-compatible server of --chat-model. Include the version:
            https://api.openai.com/v1. Default: none.
        chat_key_env: Send the key that this environment variable holds to --chat-url. Default: no
            key.
    """

    chat_model: list[str] | None = None
    chat_url: str | None = None
    chat_key_env: str | None = None

    def read(self, temperature: float = 0.0) -> list[ChatJudge]:
        """Make judges of the chat models, asked at a temperature."""
        from clients.chat_judge import ChatJudge
        from clients.connection import ModelServer
        from clients.messages import Decoding

        models = self.chat_model or []
        if bool(models) != bool(self.chat_url):
            raise CustosError("--chat-model NAME and --chat-url URL go together; give both")
        if repeated := [model for model in models if models.count(model) > 1]:
            raise CustosError(f"--chat-model {repeated[0]}: given twice")
        if not self.chat_url:
            return []
        key = api_key(self.chat_key_env, "--chat-key-env")
        decoding = Decoding(temperature=temperature)
        return [ChatJudge(ModelServer(self.chat_url, model, key), decoding) for model in models]


@dataclass(frozen=True)
class PriceOptions:
    """Prices of a million tokens.

    Options:
        prompt_price: Price of a million prompt tokens.
        completion_price: Price of a million completion tokens.
    """

    prompt_price: Annotated[float, typer.Option(min=0)] = 0
    completion_price: Annotated[float, typer.Option(min=0)] = 0

    def read(self) -> Prices | None:
        """Read the prices; ``None`` if neither is known."""
        from clients.chat import Prices

        prices = Prices(self.prompt_price, self.completion_price)
        return prices if self.prompt_price or self.completion_price else None


Name = Annotated[str, typer.Argument(help="Name of the benchmark; see custos bench list.")]
JsonOut = Annotated[
    Path | None,
    typer.Option("--json", callback=output_file, help="Write the figures to this file too."),
]
Items = Annotated[
    str, typer.Option(help="Read the official items from this file, folder or hub data set.")
]
