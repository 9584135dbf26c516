"""The model names that chat clients may ask for, and which judge answers under each."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches

from judging import CustosError
from judging.errors import LONGEST_NAME
from judging.judge import Judge
from judging.judge.best_judge import Familiarity, familiarity
from serve.calls.errors import ApiError
from serve.chat.contract import CHAT_CONTRACTS, Contract, contracts_of
from serve.chat.messages import ChatRequest
from serve.queue.service import Service

PREFIX = "custos/"
PLAIN = "qa"
"""The contract with a plain form for anybody."""


@dataclass(frozen=True)
class ChatModel:
    """A judge that answers chat clients, and the form in which it does."""

    name: str
    """Full name, as in every reply: ``custos/qa@embedded-qs``, or the backbone's own."""
    judge: str
    """Name of the judge in the service."""
    contract: Contract | None
    """``None``: the backbone writes freely."""


class ModelNames:
    """The model names of a service; aliases stand for names that clients cannot change."""

    def __init__(self, service: Service, aliases: Mapping[str, str]) -> None:
        self._service = service
        self._aliases = aliases

    def get(self, name: str, chat: ChatRequest | None = None) -> ChatModel:
        """Look up the model of a name or an alias; raise ``ApiError`` 404 if there is none.

        The error names the model that reads the prompt of ``chat``.
        """
        model = _find(self._service.judges, self._aliases.get(name, name))
        if model is None:
            hint = self._hint(name, chat)
            message = f"no model '{name[:LONGEST_NAME]}' here{hint}; see GET /v1/models"
            raise ApiError(404, message, "model")
        return model

    def items(self) -> Iterator[tuple[str, ChatModel]]:
        """Yield every name that a client may give, with its model."""
        yield from _all_models(self._service.judges)
        yield from ((alias, self.get(alias)) for alias in self._aliases)

    def _hint(self, name: str, chat: ChatRequest | None) -> str:
        """Say which model a client may have meant, or why the one that it named is not here."""
        judge = name.removeprefix(PREFIX)
        if judge in self._service.judges:
            model = self._model_of(judge, chat)
            return f"; '{judge}' is a judge, and the model {model} asks it" if model else ""
        if name.startswith(PREFIX) and (short := judge.partition("@")[0]) in CHAT_CONTRACTS:
            contract = CHAT_CONTRACTS.get(short)
            if not _able_judges(contract, self._service.judges):
                return f": no judge here takes its task '{contract.task}'"
        if near := nearest_model(name, [each for each, _ in self.items()]):
            return f"; did you mean '{near}'"
        reading = [PREFIX + each for each in _reading(chat) if PREFIX + each in dict(self.items())]
        return f"; {reading[0]} reads its prompt" if reading else ""

    def _model_of(self, judge: str, chat: ChatRequest | None) -> str | None:
        """Choose the model that asks a judge: one that reads the prompt, or of its best task."""
        grader, reading = self._service.judges[judge], _reading(chat)
        fits: list[tuple[tuple[bool, float, bool], str]] = []
        for contract in CHAT_CONTRACTS:
            levels = [familiarity(grader, contract.task, rubric) for rubric in contract.rubrics]
            if max(levels) >= Familiarity.ZERO_SHOT:
                rank = (contract.name in reading, max(levels), contract.name == PLAIN)
                fits.append((rank, f"{PREFIX}{contract.name}@{judge}"))
        return max(fits, key=lambda fit: fit[0])[1] if fits else None


def _reading(chat: ChatRequest | None) -> list[str]:
    """List the contracts that read the prompt of a chat."""
    try:
        return contracts_of(*chat.prompt) if chat else []
    except ApiError:
        return []


def nearest_model(name: str, known: Collection[str]) -> str | None:
    """Find the known model that a name most likely stands for, if there is one like it."""
    if PREFIX + name in known:
        return PREFIX + name
    return next(iter(get_close_matches(name[:LONGEST_NAME], known, n=1)), None)


def check_alias_names(judges: Iterable[str], aliases: Mapping[str, str]) -> None:
    """Raise ``CustosError`` for an alias of what no model is called, before any judge is loaded."""
    names = [PREFIX + name for name in CHAT_CONTRACTS.names()]
    judges = list(judges)
    known = [*judges, *names, *(f"{name}@{judge}" for name in names for judge in judges)]
    for alias, name in aliases.items():
        if name not in known:
            raise _no_model(alias, name, (each for each in known if ("@" in each) == ("@" in name)))


def check_aliases(judges: Mapping[str, Judge], aliases: Mapping[str, str]) -> None:
    """Raise ``CustosError`` unless every alias stands for a model and hides none."""
    for alias, name in aliases.items():
        if _find(judges, alias):
            raise CustosError(f"--alias '{alias}={name}': there is a model '{alias}' already")
        if not _find(judges, name):
            raise _no_model(alias, name, [known for known, _ in _all_models(judges)])


def _no_model(alias: str, name: str, known: Iterable[str]) -> CustosError:
    there = ", ".join(known)
    return CustosError(f"--alias '{alias}={name}': no such model here; there are: {there}")


def _all_models(judges: Mapping[str, Judge]) -> Iterator[tuple[str, ChatModel]]:
    for contract in CHAT_CONTRACTS:
        models = _able_judges(contract, judges)
        if models:
            yield PREFIX + contract.name, models[0]
        if len(models) > 1:
            yield from ((model.name, model) for model in models)
    yield from ((name, ChatModel(name, name, None)) for name in judges if _can_write(judges[name]))


def _find(judges: Mapping[str, Judge], name: str) -> ChatModel | None:
    if name in judges and _can_write(judges[name]):
        return ChatModel(name, name, None)
    contract_name, _, judge = name.removeprefix(PREFIX).partition("@")
    if not name.startswith(PREFIX) or contract_name not in CHAT_CONTRACTS:
        return None
    models = _able_judges(CHAT_CONTRACTS.get(contract_name), judges)
    return next((model for model in models if judge in ("", model.judge)), None)


def _can_write(judge: Judge) -> bool:
    """Tell whether a judge gives free text: an untrained backbone whose tokens are known."""
    return judge.card is None and judge.engine.posterior == "exact"


def _able_judges(contract: Contract, judges: Mapping[str, Judge]) -> list[ChatModel]:
    """List the judges that know a rubric of the contract; first the one that knows most."""
    known = {
        name: [familiarity(judge, contract.task, rubric) for rubric in contract.rubrics]
        for name, judge in judges.items()
    }
    able = [name for name in known if max(known[name]) >= Familiarity.ZERO_SHOT]
    able.sort(key=lambda name: -sum(known[name]))
    return [ChatModel(f"{PREFIX}{contract.name}@{name}", name, contract) for name in able]
