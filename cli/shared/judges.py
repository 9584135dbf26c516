"""Judges by what the user calls them, and the options that say where their model runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import typer

from cli.shared.options import (
    BaseUrl,
    ChatModel,
    Concurrency,
    Deadline,
    Engine,
    KeyEnv,
    RequestOptions,
    TokenBudget,
    api_key,
)
from judging.errors import CustosError
from judging.judge import Judge
from judging.judge.card import shipped_judges_on_embedded
from judging.models.backbones import load_backbone
from judging.models.devices import has_gpu
from judging.models.fetched import EMBEDDED
from judging.verdicts.by_rule import RULES_JUDGE, RuleGrader

if TYPE_CHECKING:
    from clients.judge_client import JudgeClient
    from clients.kept_verdicts import Grader
    from judging.scoring import engine as engines

UNTRAINED = "embedded"
"""What users call the untrained model that comes with custos."""


def name_gpu(show: Callable[[str], None]) -> None:
    """Show on which GPU models that have been loaded run; on a CPU, show nothing."""
    from judging.models.devices import device_name, use_device

    device = use_device()
    if device.type == "cuda":
        show(f"device: {device_name(device)}")


def is_address(source: str) -> bool:
    """Tell whether a judge is named by the address of a server."""
    return source.startswith(("http://", "https://"))


def load_named_judges(sources: Mapping[str, str], load: Callable[[str], Judge]) -> dict[str, Judge]:
    """Load judges by their names; weights that several share are kept in memory once."""
    judges: dict[str, Judge] = {}
    for name, source in sources.items():
        judges[name] = load(source)
        share_weights(judges.values())
    return judges


def load_default_judges(
    sources: Mapping[str, str], load: Callable[[str], Judge]
) -> dict[str, Judge]:
    """Load the judges, and the untrained model for tasks that none of them takes."""
    judges = load_named_judges(sources, load)
    untrained = untrained_judge(lambda judge: share_weights([*judges.values(), judge]))
    return {**judges, UNTRAINED: untrained}


class EngineOnUse:
    """Engine of the untrained embedded backbone, which is loaded when it is first used."""

    posterior: Literal["exact"] = "exact"

    def __init__(self, on_load: Callable[[Judge], None]) -> None:
        self._on_load = on_load
        self._between_layers: Callable[[], None] = lambda: None

    @cached_property
    def _engine(self) -> engines.Engine:
        judge = Judge.load(EMBEDDED)
        self._on_load(judge)
        judge.call_between_layers(lambda: self._between_layers())
        return judge.engine

    def call_between_layers(self, call: Callable[[], None]) -> None:
        """Have a function called between the layers of the loaded engine, as that says."""
        self._between_layers = call

    @property
    def numerics(self) -> dict[str, str]:
        """Say what the loaded engine will say."""
        return {"dtype": "bfloat16", "engine": "tree", "positions": "float32"}

    @property
    def location(self) -> dict[str, str]:
        """Say what the loaded engine will say: how this CPU computes."""
        import torch

        from judging.models.devices import computes_bfloat16

        return {} if computes_bfloat16(torch.device("cpu")) else {"arithmetic": "float32"}

    def score(self, *prompts: Any, **options: Any) -> Any:
        """Score labels, as the loaded engine does."""
        return self._engine.score(*prompts, **options)

    def generate(self, *prompts: Any, **options: Any) -> Iterator[engines.TextBatch]:
        """Generate texts, as the loaded engine does."""
        return self._engine.generate(*prompts, **options)


def untrained_judge(on_load: Callable[[Judge], None]) -> Judge:
    """Load the untrained judge of the embedded backbone; ``on_load`` gets it with its weights.

    On a CPU they are loaded when it first grades, so that it costs next to nothing before.
    """
    if has_gpu():
        judge = Judge.load(EMBEDDED)
        on_load(judge)
        return judge
    backbone = load_backbone(EMBEDDED, weights=False).with_pixels()
    return Judge(EMBEDDED, backbone, EngineOnUse(on_load))


def default_judges() -> list[str]:
    """Name the judges that are loaded where none is named: the shipped ones on ``embedded``."""
    names = shipped_judges_on_embedded()
    if not names:
        raise CustosError(
            "no judge came with this installation: name one with --judge NAME=RUN, where RUN is a "
            "run folder, or serve the untrained backbone with --judge embedded"
        )
    return names


def named_sources(texts: Iterable[str], engine: str = "tree") -> dict[str, str]:
    """Read ``NAME=RUN`` and ``RUN`` options; a bare run is named after the last part of its path.

    With the engine ``openai`` the name is the model's on the server, and the option stays whole.
    """
    from clients.remote_judge import remote_source

    sources: dict[str, str] = {}
    for text in texts:
        name, separator, source = text.partition("=")
        if not separator:
            name, source = Path(text).name, text
        if engine == "openai":
            (name, _), source = remote_source(text), text
        if not name or not source:
            raise CustosError(f"--judge '{text}': expected NAME=RUN")
        if name in sources:
            raise CustosError(f"--judge '{text}': there is already a judge '{name}'")
        sources[name] = source
    return sources


def share_weights(judges: Iterable[Judge]) -> None:
    """Let judges use one tensor where their weights are equal: no adapter was merged into these."""
    import torch

    first_parameters: dict[tuple[str, str, str], torch.nn.Parameter] = {}
    for judge in judges:
        model = getattr(judge.engine, "model", None)
        if not isinstance(model, torch.nn.Module):  # the model runs on a server
            continue
        for name, parameter in model.named_parameters():
            key = (judge.backbone.name, judge.backbone.version, name)
            first = first_parameters.setdefault(key, parameter)
            is_shared = first.data_ptr() == parameter.data_ptr()
            is_alike = first.dtype == parameter.dtype and first.device == parameter.device
            if not is_shared and is_alike and torch.equal(first, parameter):
                parameter.data = first.data


@dataclass(frozen=True)
class EngineOptions:
    """Engine and server that a judge's model runs on, and limits of the requests to the server."""

    engine: Engine = "tree"
    token_budget: TokenBudget = None
    base_url: BaseUrl = None
    key_env: KeyEnv = None
    concurrency: Concurrency = 64
    deadline: Deadline = 300

    def load_judge(self, source: str, **patience: Any) -> Judge:
        """Load a judge whose model runs here, or on a server with the tries of ``patience``.

        ``source`` is a run folder, shipped judge or backbone; on a server, ``MODEL=RUN``.
        """
        urls = self.base_url or []
        if (self.engine == "openai") != bool(urls):
            raise CustosError(
                "--engine openai and --base-url URL go together; give both or neither"
            )
        if not urls:
            budget: dict[str, Any] = {"token_budget": self.token_budget}
            return Judge.load(source, **(budget if self.token_budget else {}))
        if self.token_budget:
            raise CustosError("--token-budget: a server chooses its own batches; leave it out")
        if repeated := [url for url in urls if urls.count(url) > 1]:
            raise CustosError(f"--base-url {repeated[0]}: given twice")
        from clients.connection import ModelServer
        from clients.remote_judge import remote_judge, remote_source

        model, run = remote_source(source)
        limits = {"concurrency": self.concurrency, "deadline": self.deadline, **patience}
        server = ModelServer(urls[0], model, api_key(self.key_env), **limits)
        judge = remote_judge(server, run, urls[1:])
        typer.echo(f"{model} at {' '.join(urls)}: {judge.engine.posterior} posterior", err=True)
        return judge

    def load_judge_or_service(self, source: str) -> Judge | JudgeClient:
        """Load a judge, or connect to a service that answers if the source is an address."""
        if not is_address(source):
            return self.load_judge(source)
        from clients.judge_client import JudgeClient

        return JudgeClient.connect(source, **self._service_options(source))

    def load_grader(self, sources: Sequence[str]) -> Grader:
        """Load a judge, connect to services, or load the default judges if nothing is named."""
        if list(sources) == [RULES_JUDGE]:
            return RuleGrader()
        if len(sources) > 1:
            from clients.pool import JudgePool

            if folders := [source for source in sources if not is_address(source)]:
                raise CustosError(
                    f"--judge {folders[0]}: several judges share the rows of a file only as "
                    "services; give their URLs, or one judge"
                )
            return JudgePool.connect(sources, **self._service_options(sources[0]))
        if sources:
            grader: Grader = self.load_judge_or_service(sources[0])
        else:
            from judging.judge.best_judge import BestJudge

            names = {name: name for name in default_judges()}
            load = load_named_judges if self.engine == "openai" else load_default_judges
            grader = BestJudge(load(names, self.load_judge))
        if self.engine == "tree" and not any(map(is_address, sources)):
            name_gpu(lambda line: typer.echo(line, err=True))
        return grader

    def _service_options(self, service: str) -> dict[str, Any]:
        """Collect the limits of requests to services; refuse options that choose a model."""
        if self.engine == "openai" or self.base_url or self.token_budget:
            raise CustosError(
                f"{service}: a service runs its own model; leave out --engine, --base-url and "
                "--token-budget"
            )
        key = api_key(self.key_env) if self.key_env else None
        return {"api_key": key, "concurrency": self.concurrency, "deadline": self.deadline}


@dataclass(frozen=True)
class BenchmarkJudgeOptions(EngineOptions):
    """Where a benchmark's judge runs, which may also be a chat model on a server."""

    concurrency: Concurrency = 8
    model: ChatModel = None

    def load(self, source: str) -> Grader:
        """Load a judge as :meth:`load_grader`, or take a chat model on a server as the judge."""
        is_service = self.model is None and not source.rstrip("/").endswith("/v1")
        if not is_address(source) or is_service:
            return self.load_grader([source])
        if self.model is None:
            raise CustosError("--model: name the model to ask on the server")
        from clients.chat_judge import ChatJudge

        options = RequestOptions(self.key_env, self.concurrency, self.deadline)
        return ChatJudge(options.server(source, self.model))
