"""ChartHal's ``evaluate.py``. Its wording says which of seven rubrics a prompt asks for."""

from serve.chat.contract import Contract, Label, PromptLayout, Sample, chat_contract

PLAIN = "\nQuestion: {question}\nResponse: {response}\n\nScore the response above"
WITH_REFERENCE = (
    "\nQuestion: {question}\nGround Truth: {reference}\nResponse: {response}\n\n"
    "Score the response above"
)
REFERENCE_LAST = "\nQuestion: {question}\nGround Truth: {reference}\nResponse: {response}\n\nDO NOT"
TRUTH = "ground truth"
LAYOUTS = (
    PromptLayout(
        PLAIN,
        variant="irrelevant",
        cues=("unrelated to the chart",),
        absent=(TRUTH,),
        sample=Sample(
            "Who won the match?",
            "",
            "That has nothing to do with this chart of rainfall, so I cannot say.",
            "The home team won by two goals.",
        ),
    ),
    PromptLayout(
        PLAIN,
        variant="inexistent-closed",
        cues=("does not exist",),
        absent=(TRUTH, "speculative"),
        sample=Sample(
            "How much did it rain in 1890?",
            "",
            "The chart does not show 1890, so this cannot be answered from it.",
            "It rained 812 mm in 1890.",
        ),
    ),
    PromptLayout(
        PLAIN,
        variant="inexistent-open",
        cues=("does not exist", "speculative"),
        absent=(TRUTH,),
        sample=Sample(
            "Why was 1890 so dry?",
            "",
            "The chart does not show 1890; perhaps the winds differed, but that is a guess.",
            "1890 was dry because of the volcano.",
        ),
    ),
    PromptLayout(
        WITH_REFERENCE,
        variant="contradictory-closed",
        cues=("contradicts", TRUTH),
        sample=Sample(
            "Since May is the wettest month, how much rain fell in June?",
            "May is not the wettest month; 40 mm fell in June.",
            "May is not the wettest month in the chart. In June 40 mm fell.",
            "As May is the wettest month, 90 mm fell in June.",
        ),
    ),
    PromptLayout(
        PLAIN,
        variant="contradictory-open",
        cues=("contradicts",),
        absent=(TRUTH,),
        sample=Sample(
            "Since May is the wettest month, why is that so?",
            "",
            "The chart does not show May as the wettest month, so I cannot explain it.",
            "May is the wettest month because of the monsoon.",
        ),
    ),
    PromptLayout(
        REFERENCE_LAST,
        variant="normal-closed",
        cues=(TRUTH,),
        absent=("contradicts",),
        sample=Sample.of_task("charthal", wrong="90 mm"),
    ),
    PromptLayout(
        PLAIN,
        variant="normal-open",
        cues=("open-ended",),
        absent=(TRUTH, "contradicts", "does not exist"),
        sample=Sample(
            "Why might it rain less in summer?",
            "",
            "One reason could be drier winds, though the chart does not settle it.",
            "It rains less in summer because the winds are dry, without any doubt.",
        ),
    ),
)


@chat_contract
def charthal() -> Contract:
    """Define ChartHal's contract."""
    return Contract(
        name="charthal",
        harness="ChartHal",
        task="charthal",
        layouts=LAYOUTS,
        words={"1": "1", "0": "0"},
        reply="Score: {label}",
        form={"score": Label()},
    )
