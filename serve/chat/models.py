"""From the model name a client gives to who answers, and how."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from judging import CustosError, Judge
from judging.judge import Familiarity
from serve.chat.contract import Contract
from serve.chat.contracts import CONTRACTS
from serve.errors import ApiError
from serve.queue.service import Service

PREFIX = "custos/"


@dataclass(frozen=True)
class Model:
    """Who answers."""

    name: str
    """True name, as it stands in every reply: ``custos/qa@embedded-qs``, or a backbone's own."""
    judge: str
    contract: Contract | None
    """``None``: the backbone writes freely."""


class Models:
    """The model names of a service.

    Args:
        service: Holds the judges.
        aliases: A name that clients cannot change, to the model that answers under it.
    """

    def __init__(self, service: Service, aliases: Mapping[str, str]) -> None:
        self._service = service
        self._aliases = aliases

    def get(self, name: str) -> Model:
        """Look up a model or an alias.

        Raises:
            ApiError: 404.
        """
        found = _find(self._service.judges, self._aliases.get(name, name))
        if found is None:
            raise ApiError(404, f"no model '{name[:200]}' here; see GET /v1/models", "model")
        return found

    def listed(self) -> Iterator[tuple[str, Model]]:
        """Every name a client may give, and its model."""
        yield from _named(self._service.judges)
        for alias in self._aliases:
            yield alias, self.get(alias)


def check_aliases(judges: Mapping[str, Judge], aliases: Mapping[str, str]) -> None:
    """Check that every alias stands for a model and hides none.

    Raises:
        CustosError: If one does not.
    """
    for alias, name in aliases.items():
        if _find(judges, alias):
            raise CustosError(f"--alias '{alias}={name}': there is a model '{alias}' already")
        if not _find(judges, name):
            known = ", ".join(shown for shown, _ in _named(judges))
            raise CustosError(f"--alias '{alias}={name}': no such model here; there are: {known}")


def _named(judges: Mapping[str, Judge]) -> Iterator[tuple[str, Model]]:
    for contract in CONTRACTS.values():
        own = [_model(contract, name) for name in _judges_of(contract, judges)]
        if own:
            yield PREFIX + contract.name, own[0]
        if len(own) > 1:
            yield from ((model.name, model) for model in own)
    for name, judge in judges.items():
        if _writes(judge):
            yield name, Model(name, name, None)


def _find(judges: Mapping[str, Judge], name: str) -> Model | None:
    if name in judges and _writes(judges[name]):
        return Model(name, name, None)
    wanted, _, chosen = name.removeprefix(PREFIX).partition("@")
    if not name.startswith(PREFIX) or wanted not in CONTRACTS:
        return None
    own = _judges_of(CONTRACTS[wanted], judges)
    judge = chosen or next(iter(own), "")
    return _model(CONTRACTS[wanted], judge) if judge in own else None


def _writes(judge: Judge) -> bool:
    """Whether free text can be had: from a backbone whose tokens are known here."""
    return judge.card is None and judge.engine.posterior == "exact"


def _judges_of(contract: Contract, judges: Mapping[str, Judge]) -> list[str]:
    """Names of the judges that can read some of the harness's rubrics, those of most first."""
    familiarities = {
        name: [judge.familiarity(contract.task, rubric) for rubric in contract.rubrics]
        for name, judge in judges.items()
    }
    able = [name for name, own in familiarities.items() if max(own) >= Familiarity.ZERO_SHOT]
    return sorted(able, key=lambda name: -sum(familiarities[name]))


def _model(contract: Contract, judge: str) -> Model:
    return Model(f"{PREFIX}{contract.name}@{judge}", judge, contract)
