"""ChartHal's ``evaluate.py``. Its wording says which of seven rubrics a prompt asks for."""

from serve.chat.contract import Contract, Label, PromptLayout, Sample, chat_contract

PLAIN = "\nQuestion: {question}\nResponse: {response}\n\nScore the response above"
WITH_REFERENCE = (
    "\nQuestion: {question}\nGround Truth: {reference}\nResponse: {response}\n\n"
    "Score the response above"
)
REFERENCE_LAST = "\nQuestion: {question}\nGround Truth: {reference}\nResponse: {response}\n\nDO NOT"
TRUTH = "ground truth"
VARIANTS = {
    "irrelevant": (PLAIN, ("unrelated to the chart",), (TRUTH,)),
    "inexistent-closed": (PLAIN, ("does not exist",), (TRUTH, "speculative")),
    "inexistent-open": (PLAIN, ("does not exist", "speculative"), (TRUTH,)),
    "contradictory-closed": (WITH_REFERENCE, ("contradicts", TRUTH), ()),
    "contradictory-open": (PLAIN, ("contradicts",), (TRUTH,)),
    "normal-closed": (REFERENCE_LAST, (TRUTH,), ("contradicts",)),
    "normal-open": (PLAIN, ("open-ended",), (TRUTH, "contradicts", "does not exist")),
}
"""For each rubric the form of its prompt, and the words that must and must not stand there."""
SAMPLES = {
    "irrelevant": Sample(
        "Who won the match?",
        "",
        "That has nothing to do with this chart of rainfall, so I cannot say.",
        "The home team won by two goals.",
    ),
    "inexistent-closed": Sample(
        "How much did it rain in 1890?",
        "",
        "The chart does not show 1890, so this cannot be answered from it.",
        "It rained 812 mm in 1890.",
    ),
    "inexistent-open": Sample(
        "Why was 1890 so dry?",
        "",
        "The chart does not show 1890; perhaps the winds differed, but that is a guess.",
        "1890 was dry because of the volcano.",
    ),
    "contradictory-closed": Sample(
        "Since May is the wettest month, how much rain fell in June?",
        "May is not the wettest month; 40 mm fell in June.",
        "May is not the wettest month in the chart. In June 40 mm fell.",
        "As May is the wettest month, 90 mm fell in June.",
    ),
    "contradictory-open": Sample(
        "Since May is the wettest month, why is that so?",
        "",
        "The chart does not show May as the wettest month, so I cannot explain it.",
        "May is the wettest month because of the monsoon.",
    ),
    "normal-closed": Sample.of_task("charthal", wrong="90 mm"),
    "normal-open": Sample(
        "Why might it rain less in summer?",
        "",
        "One reason could be drier winds, though the chart does not settle it.",
        "It rains less in summer because the winds are dry, without any doubt.",
    ),
}


@chat_contract
def charthal() -> Contract:
    """Define ChartHal's contract."""
    return Contract(
        name="charthal",
        harness="ChartHal",
        task="charthal",
        layouts=tuple(
            PromptLayout(form, variant=name, cues=cues, absent=absent, sample=SAMPLES[name])
            for name, (form, cues, absent) in VARIANTS.items()
        ),
        words={"1": "1", "0": "0"},
        reply="Score: {label}",
        form={"score": Label()},
    )
