"""Padding: sentences that say nothing, before and after an answer."""

from __future__ import annotations

from data_prep.synthetic.hard.frames import Frame, Kind
from data_prep.synthetic.seeds import seeded_rng

OPENINGS = (
    *("Honestly, ", "As far as I can see, ", "Hm. ", "Well, ", "Okay. ", "Thanks for asking. "),
    *("To be brief: ", "Here goes. ", "Sure. ", "Let me see. ", "Good one. ", "So: "),
)
CLOSINGS = (
    *(" Hope this helps.", " That is all.", " Let me know if you need more.", " Cheers!"),
    *(" Nothing more to add.", " End of story.", " Have a nice day.", " I am fairly sure."),
    *(" At least that is what I read.", " Feel free to check.", " Over and out.", " Period."),
)
"""Parts that may stand around the frames of any kind in English."""

FILLERS = (
    "This is a topic that has interested many people over the years.",
    "There are several things to keep in mind before we come to the point.",
    "Questions of this sort turn up in quizzes and in school books.",
    "It helps to read the question twice, since small words matter.",
    "Much has been written about the matter, and not all of it is reliable.",
    "One could spend hours on the history behind it.",
    "However, the details are not needed here.",
    "The sources that I have seen do not disagree on the main point.",
    "It is worth noting that the context may be wider than it seems.",
    "Some of the material is old, and some of it was revised later.",
    "I have tried to keep the explanation as simple as possible.",
    "Readers who want to know more will find books in any library.",
    "Nothing in what follows depends on opinion.",
    "That said, one should not read too much into a single line.",
    "The subject is taught in schools, although not everywhere in the same way.",
    "As with most facts, it is easy to check once you know where to look.",
    "Let me give some background before I go on.",
    "It may not be obvious at first, but the matter is quite simple.",
    "People remember this sort of thing better when they have a picture in mind.",
    "In short, the question has been asked before and will be asked again.",
    "I could add dates, names and places, but they would distract.",
    "The wording of the question leaves little room for doubt.",
    "For the sake of completeness, I mention that other views exist.",
    "With that in mind, everything else falls into place.",
)
CLAIMS = (
    *("{yes}", "It is {yes}.", "So we arrive at {yes}.", "The point is {yes}."),
    *("What counts is {yes}, not {no}.", "The result, then, is {yes}.", "That leaves {yes}."),
    *("{no} was considered and dropped. {yes} stayed.", "All in all: {yes}."),
    *("While {no} appears in some lists, it does not belong there. {yes} does.",),
    *("The options {no} and {other} were rejected one by one, which leaves {yes}.",),
    *("After all this, my answer is {yes}.",),
)
MENTIONS = (
    *("{no} is sometimes named here.", "I will not go into {no} any further."),
    *("Whether {no} matters is left to the reader.", "That is all there is to say."),
)
NUM_FRAMES = 160


def _padded(number: int) -> Frame:
    """Make the frame of a number: filler sentences around a claim, or around none."""
    rng = seeded_rng("padding", number)
    core = rng.choice(MENTIONS if number % 5 == 0 else CLAIMS)
    fillers = rng.sample(FILLERS, rng.randint(3, 14))
    before = rng.choice((0, len(fillers), rng.randint(0, len(fillers))))
    return Frame(" ".join([*fillers[:before], core, *fillers[before:]]))


PADDED = Kind(
    "padded", tuple(_padded(number) for number in range(NUM_FRAMES)), weight=2.0, empty_share=0.15
)
KINDS = (PADDED,)
