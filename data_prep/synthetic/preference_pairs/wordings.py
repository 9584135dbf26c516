"""Wordings of what pairs say beyond the responses of the chart rows."""

from __future__ import annotations

from dataclasses import dataclass

from data_prep.synthetic.wording import Wording


@dataclass(frozen=True)
class PairWording(Wording):
    """One wording; its slots are those of chart questions (``noun``, ``measures``) and ``answer``.

    The id reads family, name.
    """

    @property
    def family(self) -> str:
        """Return what the wording is for: to evade, to invent, to guess, to pad."""
        return self.id.partition(".")[0]


W = PairWording
WORDINGS: tuple[PairWording, ...] = (
    # No answer to what was asked.
    W("off_topic.neat", "The {nouns} are drawn neatly and are easy to tell apart."),
    W("off_topic.kind", "Pictures of this sort show how {measures} compare."),
    W("off_topic.varies", "Some of the {measures} are higher and some are lower."),
    W("off_topic.depends", "That depends on how one looks at the {nouns}."),
    W("off_topic.colours", "The colours go well together and the lettering is clear."),
    W("off_topic.care", "One should always look at {nouns} with care.", held_out=True),
    W("off_topic.balanced", "On the whole the {measures} look balanced.", held_out=True),
    W("off_topic.useful", "Drawings like this one are useful in many reports.", held_out=True),
    # An answer on the authority of something invented.
    W("made_up.survey", "A survey of last spring settled this, so the answer is {answer}."),
    W("made_up.expert", "As a famous expert once told me, the answer is {answer}."),
    W("made_up.report", "The yearly report says it without any picture. Answer: {answer}"),
    W("made_up.tradition", "It has been so for a hundred years. Therefore {answer}."),
    W("made_up.newspaper", "I remember it from a newspaper. The answer is {answer}.",
      held_out=True),
    W("made_up.legend", "Legend has it that nothing else fits. That leaves {answer}.",
      held_out=True),
    # A guess or an invention beside an answer.
    W("guess.prices", "No doubt this is because prices rose that year."),
    W("guess.owner", "The owner of the {nouns} must have planned it like this."),
    W("guess.soon", "Next year it will surely be twice as much."),
    W("guess.war", "Presumably the storm of that winter is behind it."),
    W("guess.rival", "I suspect that a rival had a hand in it.", held_out=True),
    W("guess.record", "In all likelihood this was a record at the time.", held_out=True),
    # What nobody asked for beside an answer.
    W("padding.colours", "By the way, the colours of the picture are pleasant."),
    W("padding.history", "Incidentally, charts were used by sailors long ago."),
    W("padding.fonts", "On another note, the lettering is rather small."),
    W("padding.advice", "While we are at it, always label your {nouns}."),
    W("padding.thanks", "As an aside, thank you for sharing such a fine picture.", held_out=True),
    W("padding.shape", "It is also worth saying that the picture is nearly square.", held_out=True),
)  # fmt: skip

DESCRIPTIONS: tuple[PairWording, ...] = (
    W("data.holds", "The picture holds {data}. {question}"),
    W("data.shown", "What is shown: {data}. {question}"),
    W("data.brackets", "({data}) {question}", held_out=True),
)
"""How the data of a picture are written into the question."""

SOURCES = {
    "reference": "The reference is {truth}.",
    "description": "The data give {truth}.",
    "picture": "The picture gives {truth}.",
}
"""How a critique states the right answer, by the evidence for it."""
