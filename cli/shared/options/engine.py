"""Options of the verbs that grade with one judge: where its model runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cli.shared.judges import load_grader, load_judge
from cli.shared.options.server import BaseUrl, Concurrency, Deadline, Engine, KeyEnv, api_key

if TYPE_CHECKING:
    from clients.kept_verdicts import Grader
    from judging import Judge


@dataclass(frozen=True)
class EngineOptions:
    """Engine and server that a judge's model runs on, and limits of the requests to the server."""

    engine: Engine = "tree"
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
        return load_judge(self.engine, source, self.base_url, key, self.concurrency, self.deadline)

    def load_grader(self, sources: Sequence[str]) -> Grader:
        """Load a judge, connect to services, or load all shipped judges if nothing is named.

        Raises:
            CustosError: As :func:`cli.shared.judges.load_grader`.
        """
        return load_grader(
            sources, self.engine, self.base_url, self.key_env, self.concurrency, self.deadline
        )
