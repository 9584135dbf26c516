"""What pairs say beyond the responses of the chart factory: one row per surface form.

Held-out rows are used by ``forms="test"`` only.
"""

from __future__ import annotations

from dataclasses import dataclass

MISREAD, MISREASONED, OFF_TOPIC, MADE_UP, PADDED = (
    "visual misinterpretation",
    "wrong physical reasoning",
    "off-topic or vague",
    "speculative or fictional",
    "distracting additions",
)
"""The paper's five tags of untruthfulness."""


@dataclass(frozen=True)
class Form:
    """One wording; slots are those of chart questions (``noun``, ``measures``) and ``answer``."""

    id: str
    template: str
    held_out: bool = False

    @property
    def family(self) -> str:
        """What the wording does."""
        return self.id.partition(".")[0]


F = Form
FORMS: tuple[Form, ...] = (
    # No answer to what was asked.
    F("off_topic.neat", "The {nouns} are drawn neatly and are easy to tell apart."),
    F("off_topic.kind", "Pictures of this sort show how {measures} compare."),
    F("off_topic.varies", "Some of the {measures} are higher and some are lower."),
    F("off_topic.depends", "That depends on how one looks at the {nouns}."),
    F("off_topic.colours", "The colours go well together and the lettering is clear."),
    F("off_topic.care", "One should always look at {nouns} with care.", True),
    F("off_topic.balanced", "On the whole the {measures} look balanced.", True),
    F("off_topic.useful", "Drawings like this one are useful in many reports.", True),
    # An answer on the authority of something invented.
    F("made_up.survey", "A survey of last spring settled this, so the answer is {answer}."),
    F("made_up.expert", "As a famous expert once told me, the answer is {answer}."),
    F("made_up.report", "The yearly report says it without any picture. Answer: {answer}"),
    F("made_up.tradition", "It has been so for a hundred years. Therefore {answer}."),
    F("made_up.newspaper", "I remember it from a newspaper. The answer is {answer}.", True),
    F("made_up.legend", "Legend has it that nothing else fits. That leaves {answer}.", True),
    # A guess or an invention beside an answer.
    F("guess.prices", "No doubt this is because prices rose that year."),
    F("guess.owner", "The owner of the {nouns} must have planned it like this."),
    F("guess.soon", "Next year it will surely be twice as much."),
    F("guess.war", "Presumably the storm of that winter is behind it."),
    F("guess.rival", "I suspect that a rival had a hand in it.", True),
    F("guess.record", "In all likelihood this was a record at the time.", True),
    # What nobody asked for beside an answer.
    F("padding.colours", "By the way, the colours of the picture are pleasant."),
    F("padding.history", "Incidentally, charts were used by sailors long ago."),
    F("padding.fonts", "On another note, the lettering is rather small."),
    F("padding.advice", "While we are at it, always label your {nouns}."),
    F("padding.thanks", "As an aside, thank you for sharing such a fine picture.", True),
    F("padding.shape", "It is also worth saying that the picture is nearly square.", True),
)  # fmt: skip

DESCRIPTIONS: tuple[Form, ...] = (
    F("data.holds", "The picture holds {data}. {question}"),
    F("data.shown", "What is shown: {data}. {question}"),
    F("data.brackets", "({data}) {question}", True),
)
"""How the data of a picture are told within the question."""

SOURCES = {
    "reference": "The reference is {truth}.",
    "description": "The data give {truth}.",
    "picture": "The picture gives {truth}.",
}
"""How a critique tells the right answer, by what shows it."""
