"""Options of the verbs that talk to a server: where it is, its key, patience and prices."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from judging.errors import CustosError

if TYPE_CHECKING:
    from clients.chat import Prices
    from clients.chat_judge import ChatJudge
    from clients.connection import ModelServer

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
    float | None,
    typer.Option(min=0, help="Sampling temperature. Default: the server's own."),
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
PromptPrice = Annotated[float, typer.Option(min=0, help="Price of a million prompt tokens.")]
CompletionPrice = Annotated[
    float, typer.Option(min=0, help="Price of a million completion tokens.")
]
RivalModels = Annotated[
    list[str] | None,
    typer.Option(
        help="Measure this chat model beside the judge; it is asked at --chat-url. May be "
        "repeated. Default: none."
    ),
]
RivalUrl = Annotated[
    str | None,
    typer.Option(
        help="Address of the OpenAI-compatible server of --chat-model. Include the version: "
        "https://api.openai.com/v1. Default: none."
    ),
]
RivalKeyEnv = Annotated[
    str | None,
    typer.Option(
        help="Send the key that this environment variable holds to --chat-url. Default: no key."
    ),
]
ChatModel = Annotated[
    str | None,
    typer.Option(
        help="Ask this model, if the address is that of an OpenAI-compatible server. Default: none."
    ),
]


def api_key(variable: str | None, option: str = "--key-env") -> str:
    """Read a key from an environment variable; return an empty text without a variable.

    Args:
        variable: Name of the variable.
        option: Option that named it, for the error.

    Raises:
        CustosError: If the variable is not set.
    """
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
        """Return a model on a server.

        Raises:
            CustosError: If the variable of the key is not set.
        """
        from clients.connection import ModelServer

        key = api_key(self.key_env)
        return ModelServer(
            base_url, model, key, concurrency=self.concurrency, deadline=self.deadline
        )


@dataclass(frozen=True)
class RivalOptions:
    """Chat models that are measured beside a judge, and their server."""

    chat_model: RivalModels = None
    chat_url: RivalUrl = None
    chat_key_env: RivalKeyEnv = None

    def read(self, temperature: float = 0.0) -> list[ChatJudge]:
        """Return the chat models as judges.

        Args:
            temperature: Temperature that they are asked at.

        Raises:
            CustosError: If models are named without a server, or the other way round, if one is
                named twice, or the variable of the key is not set.
        """
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
    """Prices of a million tokens."""

    prompt_price: PromptPrice = 0
    completion_price: CompletionPrice = 0

    def read(self) -> Prices | None:
        """Return the prices; ``None`` if neither is known."""
        from clients.chat import Prices

        prices = (self.prompt_price, self.completion_price)
        return Prices(*prices) if any(prices) else None
