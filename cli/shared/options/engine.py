"""Options of the verbs that grade with one judge: where its model runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import typer

from cli.shared.judges import (
    connect_service,
    default_judges,
    is_address,
    load_default_judges,
    load_judge,
    load_named_judges,
    name_gpu,
)
from cli.shared.options.server import (
    BaseUrl,
    Concurrency,
    Deadline,
    Engine,
    KeyEnv,
    TokenBudget,
    api_key,
)
from judging import CustosError
from judging.verdicts.build import RULES, RuleGrader

if TYPE_CHECKING:
    from clients.judge_client import JudgeClient
    from clients.kept_verdicts import Grader
    from judging.judge import Judge


@dataclass(frozen=True)
class EngineOptions:
    """Engine and server that a judge's model runs on, and limits of the requests to the server."""

    engine: Engine = "tree"
    token_budget: TokenBudget = None
    base_url: BaseUrl = None
    key_env: KeyEnv = None
    concurrency: Concurrency = 64
    deadline: Deadline = 300

    def load_judge(self, source: str) -> Judge:
        """Load a judge.

        Raises:
            CustosError: As :func:`cli.shared.judges.load_judge`.
        """
        key = api_key(self.key_env)
        return load_judge(
            self.engine,
            source,
            self.base_url,
            key,
            self.concurrency,
            self.deadline,
            token_budget=self.token_budget,
        )

    def load_judge_or_service(self, source: str) -> Judge | JudgeClient:
        """Load a judge, or connect to a service if the source is an address.

        Raises:
            CustosError: As :meth:`load_judge`, if the service does not answer, or if a server is
                named for its model too.
        """
        if not is_address(source):
            return self.load_judge(source)
        self._check_no_server(source)
        return connect_service(source, self.key_env, self.concurrency, self.deadline)

    def load_grader(self, sources: Sequence[str]) -> Grader:
        """Load a judge, connect to services, or load all shipped judges if nothing is named.

        Raises:
            CustosError: As :meth:`load_judge_or_service`, or if no service answers.
        """
        if len(sources) > 1:
            return self._connect_pool(sources)
        if list(sources) == [RULES]:
            return RuleGrader()
        grader = self._load(sources)
        if self.engine == "tree" and not any(map(is_address, sources)):
            name_gpu(lambda line: typer.echo(line, err=True))
        return grader

    def _load(self, sources: Sequence[str]) -> Grader:
        if not sources:
            from judging.judge.best_judge import BestJudge

            names = {name: name for name in default_judges()}
            if self.engine == "openai":
                return BestJudge(load_named_judges(names, {}, self.load_judge))
            return BestJudge(load_default_judges(names, {}, self.load_judge))
        return self.load_judge_or_service(sources[0])

    def _check_no_server(self, service: str) -> None:
        """Raise ``CustosError`` if an option is for a model that is not a service's."""
        if self.engine == "openai" or self.base_url or self.token_budget:
            raise CustosError(
                f"{service}: a service runs its own model; leave out --engine, --base-url and "
                "--token-budget"
            )

    def _connect_pool(self, sources: Sequence[str]) -> Grader:
        """Return several services as one judge.

        Raises:
            CustosError: If a source is no address, no service answers, or a server is named for
                the model of the services.
        """
        from clients.pool import JudgePool

        if folders := [source for source in sources if not is_address(source)]:
            raise CustosError(
                f"--judge {folders[0]}: several judges share the rows of a file only as services; "
                "give their URLs, or one judge"
            )
        self._check_no_server(sources[0])
        key = api_key(self.key_env) if self.key_env else None
        return JudgePool.connect(
            sources, api_key=key, concurrency=self.concurrency, deadline=self.deadline
        )
