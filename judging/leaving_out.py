"""An engine for prompts that may fail one by one: each is put once, whatever befalls the others."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from judging.errors import CustosError, RowsFailed

if TYPE_CHECKING:
    from torch import Tensor

    from judging.encoder import EncodedPrompt, Encoder
    from judging.engine import Engine, OnTexts
    from judging.generation import Generated, Sampling
    from judging.tree import LabelTree


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
        self.reading = engine.reading
        self.place = engine.place
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
        rows = [row for row, request in enumerate(self._requests) if request not in self.errors]
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
        from judging.generation import Generated

        requests = self._requests

        def hand_on(rows: Sequence[int], texts: Sequence[Generated]) -> None:
            self._requests = [requests[row] for row in rows]
            if on_texts:
                on_texts(rows, texts)

        try:
            return self.engine.generate(prompts, encoder, stop, seeds, sampling, on_text, hand_on)
        except RowsFailed as failed:
            self._leave_out(failed.errors)
            if on_text:
                for row, drawn in sorted(failed.answers.items()):
                    on_text(row, drawn.text)
            none = Generated((), "", finished=False)
            texts = [failed.answers.get(row, none) for row in range(len(prompts))]
            hand_on(range(len(prompts)), texts)
            return texts

    def _leave_out(self, errors: Mapping[int, CustosError]) -> None:
        for row, error in errors.items():
            self.errors.setdefault(self._requests[row], error)
