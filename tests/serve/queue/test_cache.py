"""Verdicts that are kept."""

import asyncio
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from judging import CustosError, JudgeRequest, Verdict
from serve.calls.errors import ApiError
from serve.queue.cache import CACHE_ERRORS, FILE, VerdictCache, cache_key
from serve.queue.service import Service
from tests.serve.made_up import FakeJudge, graded, picture, row


def request(response: str = "Paris", **fields: object) -> JudgeRequest:
    return JudgeRequest.model_validate(row(response, **fields))


def test_what_a_verdict_depends_on_is_in_the_key() -> None:
    judge = FakeJudge()
    same = [
        request(),
        request(id="7"),
        request(metadata={"answerer": "x"}),
        request(task="hieval-qs", variant="plain"),
    ]
    assert len({cache_key(judge, each) for each in same}) == 1
    different = [
        request(),
        request(question="What is the capital of Italy?"),
        request(references=["Rome"]),
        request(reference_mode="any"),
        request(response="Rome"),
        request(choices=["Paris"]),
        request(criteria=["short"]),
        request(variant="tolerance"),
        request(seed=1),
        request(images=[picture(color="red")]),
        request(images=[picture(color="blue")]),
    ]
    keys = {cache_key(judge, each) for each in different}
    keys.add(cache_key(FakeJudge("other"), request()))
    assert len(keys) == len(different) + 1


def test_critiques_without_a_seed_are_not_kept() -> None:
    judge = FakeJudge(tasks=("truthful-pair",))
    pair = {"task": "truthful-pair", "question": "q", "responses": ["a", "b"]}
    critique = {**pair, "mode": "critique"}
    assert cache_key(judge, JudgeRequest.model_validate(pair)) is not None
    assert cache_key(judge, JudgeRequest.model_validate(critique)) is None
    with_seed = cache_key(judge, JudgeRequest.model_validate({**critique, "seed": 0}))
    assert with_seed is not None
    assert with_seed != cache_key(judge, JudgeRequest.model_validate({**pair, "seed": 0}))
    longer = {**critique, "seed": 0, "critique_tokens": 700}
    assert with_seed != cache_key(judge, JudgeRequest.model_validate(longer))


def test_the_same_question_is_graded_once_also_after_a_restart(tmp_path: Path) -> None:
    judge = FakeJudge()

    async def ask() -> tuple[list[Verdict], int]:
        service = Service({"a": judge}, cache=VerdictCache(tmp_path, 1_000_000))
        first = await graded(service, [request(id="1"), request("Rome", id="2")])
        again = await graded(service, [request("Rome", id="3")])
        service.close()
        return [*first, *again], service.queue().counters["cached"]

    verdicts, num_cached = asyncio.run(ask())
    assert [(v.id, v.label) for v in verdicts] == [("1", "Correct"), ("2", "Wrong"), ("3", "Wrong")]
    assert verdicts[2] == verdicts[1].model_copy(update={"id": "3"})
    assert (num_cached, judge.batches) == (1, [["1", "2"]])
    verdicts, num_cached = asyncio.run(ask())
    assert [v.label for v in verdicts] == ["Correct", "Wrong", "Wrong"]
    assert (num_cached, judge.batches) == (3, [["1", "2"]])


def test_a_kept_verdict_names_the_judge_as_it_is_called_now(tmp_path: Path) -> None:
    async def ask(name: str) -> Verdict:
        service = Service({name: FakeJudge()}, cache=VerdictCache(tmp_path, 1_000_000))
        (verdict,) = await graded(service, [request()], name)
        service.close()
        return verdict

    assert [asyncio.run(ask(name)).judge_name for name in ("strict", "new")] == ["strict", "new"]


def test_faults_are_not_kept(tmp_path: Path) -> None:
    judge = FakeJudge()

    async def ask() -> None:
        service = Service({"a": judge}, cache=VerdictCache(tmp_path, 1_000_000))
        for _ in range(2):
            (verdict,) = await graded(service, [request("break")])
            assert verdict.status == "judge_error"
        service.close()

    asyncio.run(ask())
    assert len(judge.batches) == 2


def test_what_was_graded_beside_a_server_that_is_down_is_kept(tmp_path: Path) -> None:
    class Unreachable(FakeJudge):
        def grade(self, *given: Any, **options: Any) -> Iterator[Verdict]:
            raise CustosError("the server answered 503")

    judge = FakeJudge()

    async def ask() -> int:
        judges = {"a": judge, "b": Unreachable("b")}
        service = Service(judges, cache=VerdictCache(tmp_path, 1_000_000))
        with pytest.raises(ApiError, match="the model's server fails"):
            await graded(service, [request(), request()], ["a", "b"])
        service.close()  # writes what waits
        service = Service(judges, cache=VerdictCache(tmp_path, 1_000_000))
        await graded(service, [request()])
        service.close()
        return service.queue().counters["cached"]

    assert asyncio.run(ask()) == 1
    assert len(judge.batches) == 1


def key(number: int) -> bytes:
    return number.to_bytes(32, "big")


def test_the_file_stays_within_its_bound_and_keeps_what_is_used(tmp_path: Path) -> None:
    bound = 200_000
    cache = VerdictCache(tmp_path, bound)
    cache.put({key(0): long_verdict(0)})
    for start in range(1, 2001, 50):
        cache.put({key(i): long_verdict(i) for i in range(start, start + 50)}, used=[key(0)])
        assert cache.get([key(0)]) == {key(0): long_verdict(0)}
        assert cache.num_bytes <= bound
    assert cache.get([key(2000)])
    assert not cache.get([key(1)])
    cache.close()
    assert (tmp_path / FILE).stat().st_size <= 1.5 * bound


def test_a_damaged_file_is_one_clear_error(tmp_path: Path) -> None:
    (tmp_path / FILE).write_bytes(b"not a database" * 100)
    with pytest.raises(CustosError, match="cannot be opened"):
        VerdictCache(tmp_path, 1_000_000)


@pytest.mark.parametrize("place", ["a file", "a folder below a file", "a folder named as the file"])
def test_a_folder_that_cannot_be_used_is_named_without_the_number_of_an_error(
    tmp_path: Path, place: str
) -> None:
    folder = tmp_path / "here"
    if place == "a folder named as the file":
        (folder / FILE).mkdir(parents=True)
    else:
        folder.touch()
    if place == "a folder below a file":
        folder /= "below"
    with pytest.raises(CustosError) as raised:
        VerdictCache(folder, 1_000_000)
    assert str(raised.value).startswith(f"--cache '{folder}': ")
    assert "Errno" not in str(raised.value)


FAULTS = ("database or disk is full", "disk I/O error", "database is locked")


class Failing(sqlite3.Connection):
    """A connection of which one statement fails, counted over all connections."""

    left: int | None = None
    """Statements until then; ``None``: none fails."""
    num_statements = 0
    fault = FAULTS[0]

    def execute(self, *arguments: Any) -> sqlite3.Cursor:
        Failing.num_statements += 1
        if Failing.left is not None:
            Failing.left -= 1
            if Failing.left < 0:
                Failing.left = None
                raise sqlite3.OperationalError(Failing.fault)
        return super().execute(*arguments)


@pytest.fixture(autouse=True)
def _failing(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    connect = sqlite3.connect
    monkeypatch.setattr(
        sqlite3, "connect", lambda *args, **options: connect(*args, factory=Failing, **options)
    )
    Failing.left = None
    yield
    Failing.left = None


def long_verdict(number: int) -> Verdict:
    return verdict("x" * 500 + str(number))


def verdict(text: str) -> Verdict:
    return Verdict(status="scored", label="Correct", message=text)


def pair(number: int) -> dict[bytes, Verdict]:
    """Two verdicts that are written together."""
    return {f"{number}{side}".encode(): verdict(f"{number}{side}") for side in "ab"}


def statements_of_a_put(folder: Path) -> int:
    cache = VerdictCache(folder, 1_000_000)
    before = Failing.num_statements
    cache.put(pair(0), pair(0))
    cache.close()
    return Failing.num_statements - before


@pytest.mark.parametrize("fault", FAULTS)
def test_a_write_that_fails_anywhere_leaves_all_or_nothing(tmp_path: Path, fault: str) -> None:
    num_statements = statements_of_a_put(tmp_path / "clean")
    assert num_statements >= 6
    Failing.fault = fault
    for failing in range(num_statements):
        cache = VerdictCache(tmp_path / str(failing), 1_000_000)
        cache.put(pair(1))
        Failing.left = failing
        with pytest.raises(CACHE_ERRORS):
            cache.put(pair(2), pair(1))
        assert cache.get([*pair(1), *pair(2), b"3a"]) == pair(1)
        cache.put(pair(3))  # it goes on
        cache.close()
        again = VerdictCache(tmp_path / str(failing), 1_000_000)
        assert again.get([*pair(1), *pair(2), *pair(3)]) == pair(1) | pair(3)
        again.close()


def test_a_service_answers_whichever_call_of_its_cache_fails(tmp_path: Path) -> None:
    """Each of the first 25 statements in turn; every answer is that of the judge."""
    requests = [JudgeRequest.model_validate(row(text)) for text in ("Paris", "Rome", "Paris")]

    async def labels(cache: VerdictCache) -> list[str | None]:
        service = Service({"a": FakeJudge()}, cache=cache)
        try:
            verdicts = [(await graded(service, [request]))[0] for request in requests]
        finally:
            await asyncio.to_thread(service.close)
        return [verdict.label for verdict in verdicts]

    for failing in range(25):
        cache = VerdictCache(tmp_path / str(failing), 1_000_000)
        Failing.left = failing
        assert asyncio.run(labels(cache)) == ["Correct", "Wrong", "Correct"]
        Failing.left = None
