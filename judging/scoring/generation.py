"""Text generation after many prompts at once, over their shared instruction.

Only critiques and free texts are generated. Labels never are; they are read from a label tree that
follows the text.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import takewhile

import torch
from torch import Tensor
from transformers import DynamicCache

from judging.models.devices import to_device
from judging.scoring.engine import GeneratedText, Sampling, Unwanted
from judging.scoring.label_tree import LabelTree
from judging.scoring.packing import lay_out, make_tree_batch, same_pictures
from judging.scoring.prompts import EncodedPrompt
from judging.scoring.tree_batch import Prefix, TreeModel

NUCLEUS_TOKENS = 256
"""Tokens among which a nucleus is sought before the whole vocabulary is sorted."""
LEAST = 1e-30
"""Temperature and top_p below which the likeliest token is all that is left; float32 would take
numbers that are much smaller for 0."""


def sample_tokens(
    logits: Tensor, sampling: Sampling, generators: Sequence[torch.Generator]
) -> list[int]:
    """Draw one token per row of ``logits``, ``[rows, vocabulary]`` float32, on their device.

    ``generators`` are one per row, on the CPU: every device draws by the same numbers. They are
    unused at temperature 0.
    """
    if sampling.temperature == 0:
        return logits.argmax(-1).tolist()
    numbers = [torch.rand(1, generator=each, dtype=torch.float64) for each in generators]
    uniform = to_device(torch.stack(numbers), logits.device)
    temperature, top_p = max(sampling.temperature, LEAST), max(sampling.top_p, LEAST)
    probabilities = (logits / temperature).softmax(-1)
    if top_p >= 1:
        # On a CPU the sums of one row stay in its cache.
        at_once = 1 if logits.device.type == "cpu" else len(logits)
        parts = zip(probabilities.split(at_once), uniform.split(at_once), strict=True)
        return torch.cat([_draw(*part) for part in parts])[:, 0].tolist()
    tokens = _draw_from_nucleus(probabilities, uniform, top_p, NUCLEUS_TOKENS)
    if wide := [row for row, token in enumerate(tokens) if token < 0]:
        rows = to_device(torch.tensor(wide), logits.device)
        drawn = _draw_from_nucleus(probabilities[rows], uniform[rows], top_p, logits.shape[1])
        for row, token in zip(wide, drawn, strict=True):
            tokens[row] = token
    return tokens


def _draw(probabilities: Tensor, uniform: Tensor) -> Tensor:
    """Find where a uniform number meets each row's cumulative distribution, ``[rows, 1]`` int64.

    ``probabilities`` ``[rows, tokens]`` have any total, ``uniform`` ``[rows, 1]`` is below 1.
    """
    cumulative = probabilities.double().cumsum_(-1)
    # In float64 the product of a total and a number below 1 is below the total: no token of
    # probability 0 after the others is drawn.
    places = torch.searchsorted(cumulative, uniform * cumulative[:, -1:], right=True)
    return places.clamp(max=probabilities.shape[1] - 1)  # NaN would fall there, too


def _draw_from_nucleus(
    probabilities: Tensor, uniform: Tensor, top_p: float, width: int
) -> list[int]:
    """Draw one token per row from its nucleus; -1 where that is wider than ``width``."""
    inside, tokens, is_whole = nuclei(probabilities, top_p, width)
    drawn = tokens.gather(1, _draw(inside, uniform))
    found: list[int] = torch.where(is_whole, drawn, -1)[:, 0].tolist()
    return found


def nuclei(probabilities: Tensor, top_p: float, width: int) -> tuple[Tensor, Tensor, Tensor]:
    """Find each row's likeliest tokens, best first, up to the one that reaches a total probability.

    Returns probabilities, 0 outside the nucleus, and ids of the likeliest tokens, ``[rows, width]``
    both; and whether no further token belongs to the nucleus, ``[rows, 1]``.
    """
    vocabulary = probabilities.shape[1]
    ordered, tokens = probabilities.topk(min(width, vocabulary))
    cumulative = ordered.cumsum(-1)
    is_whole = cumulative[:, -1:] >= top_p
    if width >= vocabulary:
        is_whole = torch.ones_like(is_whole)  # though rounding may keep the total below 1
    return ordered.where(cumulative - ordered < top_p, 0), tokens, is_whole


NO_LABELS = LabelTree((), (), (), ())


MOST_HALF_TOKENS = 32
"""Tokens that may come after the last whole letter. A letter has at most four; more are no text."""


class GrowingText:
    """A text to which tokens are added until its end token or its stop text comes.

    A token costs the same however long the text is.

    Args:
        decode: Turns token ids into text.
        end_id: Token that ends the text.
        stop: Text that ends the text.
        report: Called after each token with the new piece of text that no later token can change,
            which may be empty. If it raises ``Unwanted``, the text is finished.
    """

    def __init__(
        self,
        decode: Callable[[Sequence[int]], str],
        end_id: int,
        stop: str,
        report: Callable[[str], None] | None = None,
    ) -> None:
        self.tokens: list[int] = []
        self.finished = False
        self._decode = decode
        self._end_id = end_id
        self._stop = stop
        self._report = report
        self._num_reported = 0
        self._whole = ""
        self._half = ""
        """The end, whose last letter may lack tokens."""
        self._before, self._unread = 0, 0
        """Where the tokens begin after which the unread ones are decoded, and where these begin."""
        self._num_read = 0
        """Letters of the unread tokens that are whole."""

    @property
    def text(self) -> str:
        """Return the text without what ended it."""
        return self._whole + self._half

    def add(self, token: int) -> None:
        """Add one token, unless the text is finished, and report the text that is settled."""
        if self.finished:
            return
        self.finished = token == self._end_id
        if not self.finished:
            self.tokens.append(token)
            self._read()
        self._report_to(len(self.text) if self.finished else len(self._whole) - self._num_held())

    def _num_held(self) -> int:
        """Count the letters at the end that the stop text may begin with."""
        counts = range(min(len(self._stop), len(self._whole)), 0, -1)
        return next((count for count in counts if self._whole.endswith(self._stop[:count])), 0)

    def close(self) -> None:
        """Report what is left, as no token comes any more."""
        self._report_to(len(self.text))

    def _report_to(self, end: int) -> None:
        try:
            if self._report:
                self._report(self.text[self._num_reported : end])
        except Unwanted:
            self.finished = True
        self._num_reported = max(self._num_reported, end)

    def _read(self) -> None:
        # Some tokenizers decode the first token of a text in another way, so others stand before.
        known = len(self._decode(self.tokens[self._before : self._unread]))
        text = self._decode(self.tokens[self._before :])[known:]
        is_half = len(self.tokens) - self._unread <= MOST_HALF_TOKENS
        whole = text.rstrip("\ufffd") if is_half else text
        self._half = text[len(whole) :]
        new, self._num_read = whole[self._num_read :], len(whole)
        if not self._half:
            self._before, self._unread, self._num_read = self._unread, len(self.tokens), 0
        start = max(0, len(self._whole) + 1 - len(self._stop))
        self._whole += new
        if (found := self._whole.find(self._stop, start)) >= 0:
            self._whole, self._half, self.finished = self._whole[:found], "", True


@dataclass(frozen=True)
class TextMemory:
    """Keys and values of generated texts: ``[prefix | items, padded | tokens fed]`` per row."""

    cache: DynamicCache
    prompts: tuple[EncodedPrompt, ...]
    item_columns: int
    fed: tuple[tuple[int, ...], ...]
    """Tokens fed after each prompt; those after a text has ended are arbitrary."""

    def is_continued_by(self, prompts: Sequence[EncodedPrompt]) -> bool:
        """Tell whether the prompts are these rows, each with something after it."""
        return len(prompts) == len(self.prompts) and all(
            prompt.prefix_ids == start.prefix_ids
            and len(prompt.suffix_ids) > len(start.suffix_ids)
            and prompt.suffix_ids[: len(start.suffix_ids)] == start.suffix_ids
            and prompt.vision is start.vision  # other pictures have the same tokens
            for prompt, start in zip(prompts, self.prompts, strict=True)
        )

    @torch.inference_mode()
    def score(
        self, model: TreeModel, prompts: Sequence[EncodedPrompt], tree: LabelTree, pad_id: int
    ) -> Tensor:
        """Compute the logits at every slot of a tree after prompts that continue these rows.

        The model reads only tokens that it has not read. The memory is then as it was before.
        Returns ``[N, K, vocabulary]`` as :meth:`TreeModel.forward`.
        """
        past = len(prompts[0].prefix_ids)
        start = past + self.item_columns
        seen = torch.zeros(len(prompts), start + len(self.fed[0]), dtype=torch.bool)
        seen[:, :past] = True
        unread = []
        for row, prompt in enumerate(prompts):
            item = len(self.prompts[row].suffix_ids)
            # The text is tokenized again on its own, and a stop may end within a token; the last
            # token is always fed, as its logits are needed.
            pairs = zip(prompt.suffix_ids[item:-1], self.fed[row], strict=False)
            known = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
            seen[row, past : past + item] = True
            seen[row, start : start + known] = True
            unread.append(replace(prompt, suffix_ids=prompt.suffix_ids[item + known :], vision={}))
        batch = make_tree_batch(unread, [tree] * len(unread), pad_id)
        return model.resume(batch.to(model.device), self.cache, seen.to(model.device))


@torch.inference_mode()
def generate_texts(
    model: TreeModel,
    prompts: Sequence[EncodedPrompt],
    prefix: Prefix | None,
    decode: Callable[[Sequence[int]], str],
    *,
    pad_id: int,
    end_id: int,
    stop: str,
    seeds: Sequence[int],
    sampling: Sampling,
    on_text: Callable[[int, str], None] | None = None,
) -> tuple[list[GeneratedText], TextMemory]:
    """Generate a text after each prompt, until ``stop`` or the token ``end_id``.

    Every row draws from a generator of its own seed, so its text depends on the other rows only
    through rounding. A prompt that several texts follow is read once. If the model is recurrent
    there is a single prompt, because padding would enter its state. ``on_text`` is called with a
    row's index and each new piece of its text. Returns the texts, and what the model remembers of
    them.
    """
    reports = [partial(on_text, row) if on_text else None for row in range(len(prompts))]
    texts = [GrowingText(decode, end_id, stop, report) for report in reports]
    generators = [torch.Generator().manual_seed(seed) for seed in seeds]
    device, rows = model.device, len(prompts)
    distinct, index_by_row = _distinct_prompts(prompts)
    batch = lay_out(model, distinct, [NO_LABELS] * len(distinct), pad_id).to(device)
    logits, cache = model.begin(batch, prefix)
    if len(distinct) < rows:
        indices = torch.tensor(index_by_row, device=device)
        logits = logits[indices]
        cache.batch_select_indices(indices)
    past, width = len(batch.prefix_ids), batch.input_ids.shape[1]
    lengths = torch.tensor([p.positions.shape[1] - past for p in prompts], device=device)
    columns = torch.arange(past + width, device=device)
    seen = (columns < past) | (columns - past < lengths[:, None])
    position = torch.tensor([int(p.positions.max()) + 1 for p in prompts], device=device)
    fed: list[list[int]] = []
    for _ in range(sampling.max_new_tokens):
        tokens = sample_tokens(logits[:, 0].float(), sampling, generators)
        for text, token in zip(texts, tokens, strict=True):
            text.add(token)
        if all(text.finished for text in texts):
            break
        fed.append(tokens)
        seen = torch.cat([seen, torch.ones(rows, 1, dtype=torch.bool, device=device)], dim=1)
        logits = model.extend(
            to_device(torch.tensor(tokens), device)[:, None],
            position.expand(3, rows)[..., None],
            seen[:, None],
            cache,
        )
        position = position + 1
    for text in texts:
        text.close()
    fed_by_row = tuple(zip(*fed, strict=True)) if fed else ((),) * rows
    memory = TextMemory(cache, tuple(prompts), width, fed_by_row)
    return [GeneratedText(tuple(t.tokens), t.text, t.finished) for t in texts], memory


def _distinct_prompts(prompts: Sequence[EncodedPrompt]) -> tuple[list[EncodedPrompt], list[int]]:
    """Return the distinct prompts, and for every prompt the index of its equal among them."""
    distinct: list[EncodedPrompt] = []
    indices = []
    for prompt in prompts:
        equals = (
            index
            for index, other in enumerate(distinct)
            if other.suffix_ids == prompt.suffix_ids and same_pictures(other, prompt)
        )
        index = next(equals, len(distinct))
        if index == len(distinct):
            distinct.append(prompt)
        indices.append(index)
    return distinct, indices
