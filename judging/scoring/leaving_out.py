"""An engine for prompts that may fail one by one: each is put once, whatever befalls the others."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from judging.errors import CustosError, RowsFailed

if TYPE_CHECKING:
    from torch import Tensor

    from judging.scoring.engine import Engine, OnTexts
    from judging.scoring.generation import Generated, Sampling
    from judging.scoring.label_tree import LabelTree
    from judging.scoring.prompts import EncodedPrompt, Encoder


class LeavingOut:
    """Goes on where some prompts fail, and asks nothing more for the requests that they are of.

    In their place stand zeros and empty texts, for the caller to drop.

    Args:
        engine: What runs the model.
        requests: Which request each prompt is of.

    Attributes:
        errors: Why a request was left out, by its number.
    """

    def __init__(self, engine: Engine, requests: Sequence[int]) -> None:
        self.engine = engine
        self.posterior = engine.posterior
        self.numerics = engine.numerics
        self.location = engine.location
        self.errors: dict[int, CustosError] = {}
        self._requests = requests

    def score(self, prompts: Sequence[EncodedPrompt], tree: LabelTree) -> Tensor:
        """Log-probability of every label, ``[prompts, labels]`` float32; zeros where left out.

        Within ``on_texts`` the prompts are those that continue its texts.

        Raises:
            CustosError: If the engine fails altogether.
        """
        import torch

        scores = torch.zeros(len(prompts), len(tree.labels))
        rows = self._kept_rows()
        try:
            scores[rows] = self.engine.score([prompts[row] for row in rows], tree)
        except RowsFailed as failed:
            self._leave_out({rows[place]: error for place, error in failed.errors.items()})
            for place, answer in failed.answers.items():
                scores[rows[place]] = torch.tensor(answer)
        return scores

    def generate(
        self,
        prompts: Sequence[EncodedPrompt],
        encoder: Encoder,
        stop: str,
        seeds: Sequence[int],
        sampling: Sampling,
        on_text: Callable[[int, str], None] | None = None,
        on_texts: OnTexts | None = None,
    ) -> list[Generated]:
        """Draw a text after every prompt, up to ``stop``; an empty one where left out.

        Raises:
            CustosError: If the engine fails altogether.
        """
        from judging.scoring.generation import Generated

        requests, rows = self._requests, self._kept_rows()
        none = Generated((), "", finished=False)
        texts = [none] * len(prompts)

        def tell(place: int, piece: str) -> None:
            if on_text:
                on_text(rows[place], piece)

        def hand_on(places: Sequence[int], drawn: Sequence[Generated]) -> None:
            if on_texts:
                self._requests = [requests[rows[place]] for place in places]
                on_texts([rows[place] for place in places], drawn)
                self._requests = requests

        try:
            drawn = self.engine.generate(
                [prompts[row] for row in rows],
                encoder,
                stop,
                [seeds[row] for row in rows],
                sampling,
                tell if on_text else None,
                hand_on,
            )
        except RowsFailed as failed:
            self._leave_out({rows[place]: error for place, error in failed.errors.items()})
            for place, text in sorted(failed.answers.items()):
                tell(place, text.text)
            drawn = [failed.answers.get(place, none) for place in range(len(rows))]
            hand_on(range(len(rows)), drawn)
        for row, text in zip(rows, drawn, strict=True):
            texts[row] = text
        return texts

    def _kept_rows(self) -> list[int]:
        return [row for row, request in enumerate(self._requests) if request not in self.errors]

    def _leave_out(self, errors: Mapping[int, CustosError]) -> None:
        for row, error in errors.items():
            self.errors.setdefault(self._requests[row], error)
