"""TruthfulJudge's five tags of untruthfulness, which people mark responses with."""

from __future__ import annotations

from collections.abc import Mapping

MISREAD, MISREASONED, OFF_TOPIC, MADE_UP, PADDED = (
    "visual misinterpretation",
    "wrong physical reasoning",
    "off-topic or vague",
    "speculative or fictional",
    "distracting additions",
)

MEANINGS: Mapping[str, str] = {
    MISREAD: "something in the image is misread, overlooked or made up",
    MISREASONED: "space, size, light, motion or cause is reasoned about wrongly",
    OFF_TOPIC: "the question is passed by, or nothing is said that could be checked",
    MADE_UP: "a guess or an invention is told as if it were known",
    PADDED: "what nobody asked for draws the reader away from the answer",
}
