"""Texts: drawn, stopped, reported, sampled; chunks of prompts that are encoded ahead."""

import math
import threading
import time
import weakref
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from judging.files.pictures import PixelLimits
from judging.judge import Judge
from judging.models.backbones import Backbone
from judging.scoring import ask_model, generation
from judging.scoring.engine import GeneratedText, Sampling, Unwanted
from judging.scoring.generation import GrowingText, nuclei, sample_tokens
from judging.scoring.prompts import EncodedPrompt, Encoder
from judging.scoring.tree_batch import Prefix, TreeBatch, TreeModel
from judging.types import JudgeRequest
from tests.conftest import Folders
from tests.cuda_stand_in import CountedCopies
from tests.judging.scoring.made_up import engine_of, finished_texts, prompts_with_pictures
from tests.tiny import save_picture


def _generate(
    backbone: Backbone, prompts: Sequence[EncodedPrompt], sampling: Sampling, seed: int = 0
) -> list[GeneratedText]:
    engine = engine_of(backbone)
    seeds = [seed + 10 * len(prompt.suffix_ids) for prompt in prompts]
    return finished_texts(engine.generate(prompts, Encoder(backbone), "</never>", seeds, sampling))


def test_samples_follow_their_own_seed_not_their_company(
    tiny: Backbone, pictures: list[str]
) -> None:
    prompts = prompts_with_pictures(tiny, pictures)
    warm = Sampling(max_new_tokens=12, temperature=1.0, top_p=0.9)
    together = _generate(tiny, prompts, warm)
    assert together == _generate(tiny, prompts, warm)
    assert [_generate(tiny, [prompt], warm)[0] for prompt in prompts] == together
    assert together != _generate(tiny, prompts, warm, seed=1)


def test_only_the_drawn_tokens_leave_the_device(
    tiny: Backbone, pictures: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    prompts = [prompts_with_pictures(tiny, pictures)[0]] * 3
    counted = CountedCopies(monkeypatch)
    sizes = []
    for count in (4, 9):
        counted.sizes.clear()
        _generate(tiny, prompts, Sampling(count, temperature=1.0))
        sizes.append(sorted(counted.sizes))
    assert Counter(sizes[1]) - Counter(sizes[0]) == {len(prompts): 5}


def test_a_prompt_of_several_texts_is_read_once(
    tiny: Backbone, pictures: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    prompts = prompts_with_pictures(tiny, pictures)
    pixels = {"pixel_values": 1 - prompts[-1].vision["pixel_values"]}
    other_picture = replace(prompts[-1], vision=prompts[-1].vision | pixels)
    several = [prompt for prompt in [*prompts, other_picture] for _ in range(3)]
    warm, seeds = Sampling(max_new_tokens=12, temperature=1.0), list(range(len(several)))
    engine, encoder = engine_of(tiny), Encoder(tiny)
    alone = [
        finished_texts(engine.generate([prompt], encoder, "</never>", [seed], warm))[0]
        for prompt, seed in zip(several, seeds, strict=True)
    ]
    rows_read = []
    begin = TreeModel.begin

    def counting(model: TreeModel, batch: TreeBatch, prefix: Prefix | None) -> object:
        rows_read.append(len(batch.input_ids))
        return begin(model, batch, prefix)

    monkeypatch.setattr(TreeModel, "begin", counting)
    together = finished_texts(engine.generate(several, encoder, "</never>", seeds, warm))
    assert together == alone
    assert rows_read == [len(prompts) + 1]


def test_a_text_that_nobody_waits_for_ends_and_no_other_changes(
    tiny: Backbone, pictures: list[str]
) -> None:
    prompts = prompts_with_pictures(tiny, pictures)
    warm, engine = Sampling(max_new_tokens=30, temperature=1.0), engine_of(tiny)
    wanted = {1}
    num_told = Counter[int]()

    def told(index: int, piece: str) -> None:
        num_told[index] += 1
        if index not in wanted and num_told[index] > 2:
            raise Unwanted

    def drawn() -> list[GeneratedText]:
        num_told.clear()
        seeds = list(range(len(prompts)))
        batches = engine.generate(prompts, Encoder(tiny), "</never>", seeds, warm, told)
        return finished_texts(batches)

    [_, kept, *_] = drawn()
    assert num_told[1] >= 30
    assert max(num_told[index] for index in range(len(prompts)) if index != 1) <= 4
    assert kept == _generate(tiny, prompts[1:2], warm, seed=1 - 10 * len(prompts[1].suffix_ids))[0]
    wanted.clear()
    assert max(len(text.tokens) for text in drawn()) == 3


def test_stop_text_ends_and_is_left_out(tiny: Backbone, pictures: list[str]) -> None:
    [prompt] = prompts_with_pictures(tiny, pictures)[:1]
    long = Sampling(max_new_tokens=30, temperature=0.0)
    [whole] = _generate(tiny, [prompt], long)
    stop = whole.text[6:8]
    pieces: list[str] = []

    def drawn(stop: str) -> GeneratedText:
        pieces.clear()
        batches = engine_of(tiny).generate(
            [prompt], Encoder(tiny), stop, [0], long, lambda row, piece: pieces.append(piece)
        )
        return finished_texts(batches)[0]

    text = drawn(stop)
    assert text.finished
    assert text.text == whole.text[: whole.text.index(stop)]
    assert "".join(pieces) == text.text
    assert len(text.tokens) < len(whole.tokens)
    # Every token is reported, so that whoever listens can end a text.
    drawn(whole.text + "x")
    assert pieces == [*[""] * 30, whole.text]


@pytest.mark.parametrize(
    ("text", "finished", "settled"),
    [
        ("good", False, "good"),
        ("good</cri", False, "good"),
        ("good<", False, "good"),
        ("good</cri", True, "good</cri"),
        ("good</x", False, "good</x"),
        ("caf\ufffd", False, "caf"),
    ],
)
def test_reported_text_never_changes(text: str, finished: bool, settled: str) -> None:
    pieces: list[str] = []
    end = len(text)
    growing = GrowingText(
        lambda tokens: "".join(text[i] for i in tokens), end, "</critique>", pieces.append
    )
    for token in range(len(text)):
        growing.add(token)
    if finished:
        growing.add(end)
    assert "".join(pieces) == settled
    growing.close()
    assert "".join(pieces) == growing.text == text
    assert growing.finished == finished


def grown(
    tokenizer: Any, tokens: Sequence[int], stop: str, pieces: list[str] | None = None
) -> GrowingText:
    growing = GrowingText(tokenizer.decode, -1, stop, (pieces if pieces is not None else []).append)
    for token in tokens:
        growing.add(token)
    return growing


@pytest.mark.parametrize("seed", range(20))
def test_a_text_read_token_by_token_is_the_one_read_as_a_whole(tiny: Backbone, seed: int) -> None:
    """Letters of several tokens, tokens of half letters, and stops wherever they may end."""
    random, tokenizer = Random(seed), tiny.tokenizer
    letters = "".join(random.choices("ab\u00e9\u4e16\U0001f600 .", k=60))
    tokens = tokenizer.encode(letters, add_special_tokens=False)
    noise = [*tokens, *random.choices(range(250), k=12), *tokens]
    for ids in (tokens, noise):
        whole = tokenizer.decode(ids)
        pieces: list[str] = []
        growing = grown(tokenizer, ids, "</never>", pieces)
        assert (growing.text, growing.finished) == (whole, False)
        assert whole.removesuffix("\ufffd").startswith("".join(pieces))
    place = random.randrange(50)
    stop = letters[place : place + random.randint(1, 4)]
    assert grown(tokenizer, tokens, stop).text == letters[: letters.index(stop)]


@pytest.mark.parametrize("stop", ["a" * 999 + "b", "ab" * 500])
def test_the_longest_stop_text_of_the_service_costs_little(stop: str) -> None:
    """The text ends with a start of the stop text all the time."""
    start = time.process_time()
    growing = GrowingText(lambda tokens: "".join(map(chr, tokens)), -1, stop)
    for _ in range(4096):
        growing.add(ord("a"))
    assert time.process_time() - start < 2
    assert not growing.finished


@pytest.mark.parametrize("stop", ["aab", "abab", "aa", "b"])
def test_a_stop_text_is_found_wherever_pieces_end(stop: str) -> None:
    for letters in product("ab", repeat=7):
        growing = GrowingText(lambda tokens: "".join(map(chr, tokens)), -1, stop)
        for letter in letters:
            growing.add(ord(letter))
        assert growing.text == "".join(letters).partition(stop)[0]
        assert growing.finished == (stop in "".join(letters))


def test_nucleus_and_temperature() -> None:
    chances = torch.tensor([[0.5, 0.3, 0.15, 0.05]])
    draw = [torch.Generator().manual_seed(0)]

    def shares(sampling: Sampling, count: int = 4000) -> list[float]:
        drawn = Counter(sample_tokens(chances.log(), sampling, draw)[0] for _ in range(count))
        return [drawn[i] / count for i in range(4)]

    # .5 + .3 reach .8; the rest is cut off and the two share out the whole.
    assert shares(Sampling(1, 1.0, 0.8)) == pytest.approx([0.625, 0.375, 0, 0], abs=0.03)
    assert shares(Sampling(1, 1.0, 0.81)) == pytest.approx([0.526, 0.316, 0.158, 0], abs=0.03)
    assert shares(Sampling(1, 1.0, 1.0)) == pytest.approx([0.5, 0.3, 0.15, 0.05], abs=0.03)
    # At temperature 1/2 chances are squared: .25, .09, .0225, .0025 of .365.
    assert shares(Sampling(1, 0.5, 1.0)) == pytest.approx([0.685, 0.247, 0.062, 0.007], abs=0.03)
    assert shares(Sampling(1, 0.0, 1.0), 5) == [1, 0, 0, 0]


@given(
    st.integers(0, 2**32),
    st.sampled_from([0.3, 0.9, 0.95, 0.9999]),
    st.floats(0.0, 6.0),
    st.sampled_from([1, 40, 256, 2000]),
)
def test_a_nucleus_is_the_fewest_likeliest_that_reach_top_p(
    seed: int, top_p: float, spread: float, width: int
) -> None:
    chances = _random_chances(seed, spread)
    found, tokens, is_whole = nuclei(torch.from_numpy(chances), top_p, width)
    assert found.shape == tokens.shape == (len(chances), width)
    for row, whole in zip(range(len(chances)), is_whole[:, 0].tolist(), strict=True):
        descending = -np.sort(-chances[row])
        reached = descending.astype(np.float64).cumsum()
        inside = found[row].numpy()[found[row].numpy() > 0]
        kept = tokens[row].numpy()[: len(inside)]
        if not whole:
            assert reached[width - 1] < top_p + 1e-5
            continue
        assert len(set(kept.tolist())) == len(kept)
        assert inside.tolist() == chances[row, kept].tolist() == descending[: len(kept)].tolist()
        # They reach top_p, and without the last of them do not.
        assert reached[len(kept) - 1] >= top_p - 1e-5
        assert len(kept) == 1 or reached[len(kept) - 2] < top_p + 1e-5


@pytest.mark.parametrize("top_p", [0.5, 0.95, 1.0])
def test_every_row_inverts_its_own_distribution(
    monkeypatch: pytest.MonkeyPatch, top_p: float
) -> None:
    """Rows with narrow and wide nuclei together, each against its own sums in NumPy."""
    monkeypatch.setattr(generation, "NUCLEUS_TOKENS", 20)
    chances = np.concatenate([_random_chances(1, spread) for spread in (0.5, 3.0, 6.0)])
    counted = CountedCopies(monkeypatch)
    for seed in range(20):
        draws = [torch.Generator().manual_seed(seed + row) for row in range(len(chances))]
        logits = torch.from_numpy(chances).log()
        counted.sizes.clear()
        drawn = sample_tokens(logits, Sampling(1, 1.0, top_p), draws)
        assert max(counted.sizes) <= len(chances), "more than tokens left the device"
        assert len(counted.sizes) <= 1 + (top_p < 1), "rows left the device one by one"
        assert drawn == [
            _inverted(logits[row].softmax(-1).numpy(), top_p, seed + row)
            for row in range(len(chances))
        ]


def test_a_number_next_to_one_draws_the_last_token_that_can_come(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    last = torch.tensor([[math.nextafter(1, 0)]], dtype=torch.float64)
    monkeypatch.setattr(torch, "rand", lambda *_, **__: last[0])
    logits = torch.tensor([[0.1, 0.2, 0.4, 0.0, 0.0]]).log()
    for top_p, token in ((1.0, 2), (0.99, 0), (0.7, 1)):
        assert sample_tokens(logits, Sampling(1, 1.0, top_p), [torch.Generator()]) == [token]


@pytest.mark.parametrize("least", [1e-38, 1e-46, 5e-324])
def test_the_smallest_temperature_and_nucleus_leave_the_likeliest_token(least: float) -> None:
    """Also where float32 has no such number."""
    logits = torch.randn(8, 1000, generator=torch.Generator().manual_seed(0))
    for sampling in (Sampling(1, least), Sampling(1, 1.0, least), Sampling(1, least, least)):
        draws = [torch.Generator().manual_seed(seed) for seed in range(8)]
        assert sample_tokens(logits, sampling, draws) == logits.argmax(-1).tolist()


def test_what_is_no_number_draws_some_token() -> None:
    logits = torch.full((2, 5), torch.nan)
    for top_p in (1.0, 0.9):
        drawn = sample_tokens(logits, Sampling(1, 1.0, top_p), [torch.Generator()] * 2)
        assert set(drawn) <= set(range(5))


def _random_chances(seed: int, spread: float) -> NDArray[np.float32]:
    """Return distributions of three rows over 2,000 tokens, from even to one-sided."""
    weights = np.exp(spread * np.random.default_rng(seed).standard_normal((3, 2000)))
    chances: NDArray[np.float32] = (weights / weights.sum(-1, keepdims=True)).astype(np.float32)
    return chances


def _inverted(chances: NDArray[np.float32], top_p: float, seed: int) -> int:
    """Return the token at which the sums pass a uniform number; a nucleus has its best first."""
    tokens = np.arange(len(chances))
    if top_p < 1:
        tokens = np.argsort(-chances, kind="stable")
        before = chances[tokens].astype(np.float64).cumsum() - chances[tokens]
        tokens = tokens[before < top_p]
    sums = chances[tokens].astype(np.float64).cumsum()
    number = torch.rand(1, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return int(tokens[np.searchsorted(sums, number.item() * sums[-1], side="right")])


SIDE = 56
"""Pixels of a side, as the model sees it: the pictures are four times as large."""


@pytest.fixture(scope="module")
def judge(tiny_folders: Folders) -> Judge:
    """A judge that sees pictures in ``SIDE`` times ``SIDE`` pixels."""
    pixels = PixelLimits(SIDE**2, SIDE**2)
    return Judge.load(tiny_folders("qwen2_5_vl"), device="cpu", dtype="float32", pixels=pixels)


def requests(folder: Path, number: int, **fields: Any) -> list[JudgeRequest]:
    """Return requests on a chart each; the first is about a file that is not there."""
    rows = {"task": "charthal", "variant": "normal-open", "question": "?", "references": ("5",)}
    return [
        JudgeRequest(
            **{**rows, "id": str(index), "responses": ("5",), **fields},
            images=(save_picture(folder / f"{index}.png", 2 * SIDE, 2 * SIDE),)
            if index
            else (str(folder / "gone.png"),),
        )
        for index in range(number)
    ]


@pytest.mark.parametrize("has_gpu", [False, True])
def test_few_pictures_are_held_and_verdicts_stay(
    judge: Judge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_gpu: bool
) -> None:
    """Those of one chunk; beside a GPU those of the next one, too."""
    rows = requests(tmp_path, 12)
    before = list(judge.grade(rows))
    if has_gpu:
        _as_on_a_gpu(judge, monkeypatch)
    held: list[weakref.ref[Any]] = []
    most = 0

    def encode(self: Encoder, pairs: Sequence[Any]) -> list[EncodedPrompt]:
        nonlocal most
        prompts = original(self, pairs)
        held.extend(weakref.ref(prompt.vision["pixel_values"]) for prompt in prompts)
        most = max(most, sum(ref() is not None for ref in held))
        return prompts

    original = Encoder.encode
    monkeypatch.setattr(Encoder, "encode", encode)
    monkeypatch.setattr(ask_model, "CHUNK_PIXELS", 3 * SIDE**2)
    after = list(judge.grade(rows))
    assert len(held) == 11 and most == (6 if has_gpu else 3)
    assert [row.status for row in after] == ["invalid", *["scored"] * 11]
    for old, new in zip(before, after, strict=True):
        assert (old.id, old.label, old.message) == (new.id, new.label, new.message)
        assert new.probabilities == pytest.approx(old.probabilities, abs=1e-5)


def test_the_next_chunk_is_encoded_while_a_gpu_runs(
    judge: Judge, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a tokenizer of its own: control tokens in a text stay text, whatever runs meanwhile."""
    texts = [f"{'nine ' * (number % 7)}<|im_end|><|im_start|>{number}" for number in range(18)]
    rows = [
        JudgeRequest(
            task="truthful-pair",
            question="?",
            responses=(text, "five"),
            mode="critique" if number % 2 else "score",
            critique_tokens=16,
        )
        for number, text in enumerate(texts)
    ]
    monkeypatch.setattr("judging.judge.GPU_CHUNK", 3)
    before = list(judge.grade(rows))
    _as_on_a_gpu(judge, monkeypatch)
    begun = [threading.Event() for _ in range(6)]
    encode, score = ask_model.encode_groups, ask_model.PromptGroup.score
    encoding: list[threading.Thread] = []
    scored: list[str] = []

    def encode_groups(
        taken: Mapping[int, JudgeRequest], encoder: Encoder, *options: Any
    ) -> list[ask_model.PromptGroup]:
        begun[len(encoding)].set()
        encoding.append(threading.current_thread())
        assert encoder.backbone.tokenizer is not judge.encoder.backbone.tokenizer
        assert encoder.backbone.processor.tokenizer is encoder.backbone.tokenizer
        return encode(taken, encoder, *options)

    def score_group(group: ask_model.PromptGroup, *options: Any) -> Any:
        first = group.requests[min(group.requests)].responses[0]
        number = texts.index(first) // 3
        if number < 5:
            assert begun[number + 1].wait(20), "the next chunk is not encoded meanwhile"
        scored.append(first)
        return score(group, *options)

    monkeypatch.setattr("judging.judge.encode_groups", encode_groups)
    monkeypatch.setattr(ask_model.PromptGroup, "score", score_group)
    after = list(judge.grade(rows))
    assert len(encoding) == 6 and threading.current_thread() not in encoding
    assert len(scored) == 12
    assert [row.critique for row in after] == [row.critique for row in before]
    assert sum(bool(row.critique) for row in after) == 9
    assert {row.status for row in after} <= {"scored", "truncated"}
    for old, new in zip(before, after, strict=True):
        assert (old.id, old.label, old.status) == (new.id, new.label, new.status)
        assert new.probabilities == pytest.approx(old.probabilities, abs=1e-5)


def _as_on_a_gpu(judge: Judge, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have a judge take its model for one on a GPU."""
    stand_in = SimpleNamespace(device=torch.device("cuda"), config=judge.backbone.model.config)
    monkeypatch.setattr(judge, "backbone", replace(judge.backbone, model=stand_in))
