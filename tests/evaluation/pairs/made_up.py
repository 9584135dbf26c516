"""Made-up pairs, their human labels, and judges of both orders."""

from typing import Any

from judging.types import LabelledExample, Pass, Verdict

OTHER = {"A": "B", "B": "A", "None": "None"}


def pair(label: str, id: str = "1", a: str = "red", b: str = "blue", **fields: Any) -> (
    LabelledExample
):  # fmt: skip
    return LabelledExample(id=id, question=f"Which {id}?", responses=(a, b), label=label, **fields)


def judged(label: str | None, id: str = "1", **fields: Any) -> Verdict:
    if label is None:
        return Verdict(id=id, status="unparsed", message="no label")
    return Verdict(id=id, status="scored", label=label, **fields)


def sure(label: str, probability: float = 0.8) -> dict[str, float]:
    return {name: probability if name == label else (1 - probability) / 2 for name in OTHER}


def in_both_orders(
    given: str, swapped: str, label: str | None, id: str = "1", surer: float = 0.8
) -> Verdict:
    """A verdict from what the pair's own letters are in either order.

    ``label`` is the verdict's, which calibration may have moved; ``surer`` is the probability of
    ``swapped``, beside .8 of ``given``.
    """
    passes = (
        Pass(order="given", posterior=sure(given)),
        Pass(order="swapped", posterior=sure(OTHER[swapped], surer)),
    )
    return judged(label, id).model_copy(update={"passes": passes})
