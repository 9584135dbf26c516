"""The contract of an engine, which runs a model: it scores labels and generates texts.

:class:`judging.scoring.tree_engine.TreeEngine` runs the model in this process; another engine may
ask a server. A prompt that fails gets an error in place of its result, and the others go on.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

from judging.errors import CustosError

if TYPE_CHECKING:
    from judging.scoring.label_tree import LabelTree
    from judging.scoring.prompts import EncodedPrompt, Encoder

LabelLogprobs = list[float]
"""Log-probability of every label of a tree, in the order of ``tree.labels``."""


UNWANTED = CustosError("nobody waits for it any more")
"""Takes the place of the result of a prompt that nobody waits for."""


class Unwanted(Exception):
    """Signal, raised by ``on_text``, that nobody waits for its text any more."""


@dataclass(frozen=True)
class Sampling:
    """Settings for drawing tokens; temperature 0 takes the likeliest one.

    The defaults of temperature and top_p are TruthfulJudge's. The paper allows 2,048 new tokens;
    judges that custos trains on critiques need far fewer.
    """

    max_new_tokens: int
    temperature: float = 0.1
    top_p: float = 1.0


@dataclass(frozen=True)
class GeneratedText:
    """Text generated after one prompt, without what ended it."""

    tokens: tuple[int, ...]
    text: str
    finished: bool
    """False when the token budget ended it."""


@dataclass
class TextBatch:
    """Texts that an engine has generated together."""

    engine: Engine
    indices: Sequence[int]
    """For each text, the index of its prompt in the list given to :meth:`Engine.generate`."""
    texts: Sequence[GeneratedText | CustosError]
    """One text per index, or why there is none."""

    def score(
        self, prompts: Sequence[EncodedPrompt], tree: LabelTree
    ) -> Sequence[LabelLogprobs | CustosError]:
        """Score prompts that continue the texts of this batch, as :meth:`Engine.score` does.

        An engine that still remembers the texts may read only what follows them.
        """
        return self.engine.score(prompts, tree)


class Engine(Protocol):
    """The part of a judge that runs the model."""

    @property
    def posterior(self) -> Literal["exact", "approximate"]:
        """Return ``exact`` if :meth:`score` gives the model's own probability of every label.

        ``approximate`` means that the label is read from words that a server wrote.
        """
        ...

    @property
    def numerics(self) -> Mapping[str, str]:
        """Return what a calibration depends on: ``dtype``, ``engine`` and the like."""
        ...

    @property
    def location(self) -> Mapping[str, str]:
        """Return what else could change a verdict: which server, which model there."""
        ...

    def score(
        self,
        prompts: Sequence[EncodedPrompt],
        tree: LabelTree,
        is_wanted: Callable[[int], bool] | None = None,
    ) -> Sequence[LabelLogprobs | CustosError]:
        """Score every label after every prompt of one rubric.

        ``is_wanted`` is asked with a prompt's index, before the model runs on it, whether anybody
        still waits for it; if not, its result is :data:`UNWANTED`. Returns for each prompt the
        log-probabilities of the labels, or why there are none. Raises ``CustosError`` if the engine
        fails as a whole.
        """
        ...

    def generate(
        self,
        prompts: Sequence[EncodedPrompt],
        encoder: Encoder,
        stop: str,
        seeds: Sequence[int],
        sampling: Sampling,
        on_text: Callable[[int, str], None] | None = None,
    ) -> Iterator[TextBatch]:
        """Generate a text after every prompt of one rubric, up to ``stop``, in finished batches.

        Score prompts that continue a batch before you ask for the next batch: until then the engine
        may still remember its texts. Each prompt has a seed. ``on_text`` is called with a prompt's
        index and each new piece of its text, which may be empty. If it raises :class:`Unwanted`,
        this text ends; anything else that it raises ends all texts. Raises ``CustosError`` if the
        engine fails as a whole.
        """
        ...


def check_scores(engine: Engine, encoder: Encoder) -> None:
    """Raise ``CustosError`` if a model's scores after one short prompt are not numbers.

    This shows damaged weights without reading all of them: nearly every weight of the text tower
    takes part in every score.
    """
    prompt, tree = encoder.encode_question("1 + 1?"), encoder.tree(("2", "3"))
    [scores] = engine.score([prompt], tree)
    if isinstance(scores, CustosError):
        raise scores
    if any(map(math.isnan, scores)):
        raise CustosError(
            f"backbone '{encoder.backbone.name}': its scores are not numbers, as some of its "
            "weights are NaN or infinite; get the checkpoint again"
        )


def texts_in_order(batches: Iterable[TextBatch]) -> list[GeneratedText | CustosError]:
    """List all texts of :meth:`Engine.generate`, in the order of the prompts."""
    texts: dict[int, GeneratedText | CustosError] = {}
    for batch in batches:
        texts.update(zip(batch.indices, batch.texts, strict=True))
    return [texts[index] for index in range(len(texts))]
