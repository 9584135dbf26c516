"""Wordings that test rows alone are made with; no training row has one of them."""

from __future__ import annotations

from data_prep.synthetic.benchmark_answers.wordings import (
    ChartHalWordings,
    ChartomWordings,
    SimpleVQAWordings,
    Topic,
    Wordings,
    lines,
)

TOPICS = (
    Topic("snow depth", "cm", "passes", 14, 340),
    Topic("apple yield", "crates", "orchards", 25, 760),
    Topic("test accuracy", "points", "classifiers", 21, 97),
    Topic("travel time", "minutes", "ferries", 12, 180),
    Topic("energy demand", "kWh", "districts", 105, 980),
    Topic("share of cyclists", "%", "suburbs", 11, 79),
    Topic("humidity", "%", "caves", 31, 97),
)

CHARTHAL = ChartHalWordings(
    subjects=lines(
        """
        opera attendance
        the market for used pianos
        salaries of goalkeepers
        demand for solar lamps
        sleep among night nurses
        the trade in vintage stamps
        """
    ),
    causes=lines(
        """
        a new tax
        the arrival of a large employer
        a fault in the instruments
        dry summers
        an ageing population
        better roads
        """
    ),
    irrelevant_questions=lines(
        """
        How does the figure reflect {asked} over the last decade?
        Using the numbers for {a} and {b}, estimate the growth of {asked}.
        Which policy would improve {asked}, in view of the pattern seen here?
        """
    ),
    inexistent_closed_questions=lines(
        """
        Tell me the {measure} recorded for {other} in this graph.
        What does the graph report as {measure} at {other}?
        """
    ),
    inexistent_open_questions=lines(
        """
        What happened at {other} to make its {measure} jump in the graph?
        In what way did the new policy at {other} shape the {measure} plotted here?
        """
    ),
    claims=lines("the graph puts {a} at {false_a}\n{a} comes to {false_a}"),
    contradictory_closed_questions=lines(
        """
        As {claim}, tell me the {measure} of {b}.
        We see that {claim}; what, then, does {b} come to?
        """
    ),
    contradictory_unanswered_questions=lines(
        """
        As {claim}, what is its lead over the runner-up?
        We see that {claim}; which label is printed next to that mark?
        """
    ),
    contradictory_open_questions=lines(
        """
        As {claim}, what drove such a result?
        We see that {claim}. How would you account for it?
        """
    ),
    normal_closed_questions=lines(
        """
        Give the {measure} recorded for {a}.
        At which {measure} does {a} end up in the graph?
        """
    ),
    normal_open_questions=lines(
        """
        How would you account for {a} and {b} being so far apart?
        What lies behind a {measure} of {value_a} at {a}?
        """
    ),
    unrelated=lines(
        """
        Nothing in this graph concerns {asked}.
        I see a graph of {measure}; {asked} is a different subject altogether.
        Your question about {asked} does not relate to the graph at all.
        """
    ),
    lacking=lines(
        """
        I find no entry for {other} in the graph.
        The graph leaves out {other}; it covers {a}, {b} and a few more.
        Values for {other} are not given anywhere in the graph.
        """
    ),
    denying=lines(
        """
        Actually, the graph puts {a} at {value_a}, so the statement in the question is incorrect.
        I have to correct the question: {a} is at {value_a}.
        This contradicts the graph, where {a} has a {measure} of {value_a}.
        """
    ),
    declining=lines(
        """
        This leaves the question without an answer.
        I can't determine it from what is drawn.
        Hence there is nothing I could derive.
        """
    ),
    answering=lines(
        """
        My reading is {x}.
        {x} is what the graph gives.
        The mark is at {x}.
        """
    ),
    tentative=lines(
        """
        {cause} could possibly be involved.
        It is conceivable that {cause} had some influence.
        This may be linked to {cause}, among other things.
        I would guess, without being sure, that {cause} helped.
        """
    ),
    certain=lines(
        """
        Without question, {cause} brought this about.
        It results from {cause}.
        {cause} is the one decisive factor.
        """
    ),
    padding=lines(
        """
        The graph lists several {things}.
        Each mark stands for one of the {things}.
        Let me go through the graph.
        """
    ),
)

ENGLISH = SimpleVQAWordings(
    questions={
        "person": lines(
            "Name the sculptor of the statue of {w} shown here.\nWhose work is this map of {w}?"
        ),
        "town": lines(
            "Name the town in which this {w} festival takes place.\nWhere was {w}, seen here, born?"
        ),
        "title": lines(
            """
            Name the novel that this scene with {w} comes from.
            Which opera by {w} is being staged here?
            """
        ),
        "thing": lines("Name the goods that {w} sells at the stall shown here."),
        "year": lines("Give the year in which the station {w} shown here was opened."),
        "number": lines("Give the depth of lake {w}, shown here, in metres."),
        "names": lines("Name the towns that the {w} canal drawn here passes."),
    },
    claiming=lines(
        """
        That would be {x}.
        {x}, I believe.
        You are looking at something made famous by its age; my answer is {x}.
        So: {x}
        I'd go with {x}, though I could be wrong.
        参考图片，我的回答是{x}。
        """
    ),
    claiming_beside=lines(
        """
        One might take it for {y}, yet it is {x}.
        {x} rather than {y}.
        I was going to write {y}; correction: {x}.
        """
    ),
    unattempted=lines(
        """
        This is beyond my knowledge.
        I can't make out enough detail to give an answer.
        Is there any caption that goes with the picture?
        Pictures of this kind are common, and each has its history.
        """
    ),
    excluding=lines("Whatever it is, {x} it is not.\nI can only exclude {x}."),
    alternatives=lines("Could be {x}, could be {y}.\n{x} / {y}"),
    partly=lines(
        """
        I can name {part} only; what is left is unclear to me.
        One is {part}. No idea about any other.
        """
    ),
    rough=lines("more than {x}\nsome {x}, at a guess"),
    joints=(" as well as ", " / ", ", and "),
)

CHINESE = SimpleVQAWordings(
    questions={
        "person": lines("请说出图中{w}雕像的作者。"),
        "town": lines("请说出图中{w}节在哪个城镇举行。"),
        "title": lines("图中{w}的剧照来自哪部歌剧？"),
        "thing": lines("请说出图中摊位{w}出售的货物。"),
        "year": lines("请给出图中{w}车站启用的年份。"),
        "number": lines("请给出图中{w}湖的深度（米）。"),
        "names": lines("请说出图中{w}运河经过的城镇。"),
    },
    claiming=lines("应为{x}。\n我的回答是{x}。\n我猜测是{x}，不一定对。\n回答：{x}"),
    claiming_beside=lines("看起来像{y}，但实际上是{x}。\n应为{x}，并非{y}。"),
    unattempted=lines("这超出了我的知识范围。\n细节不足，无法作答。\n有没有相关的说明文字？"),
    excluding=lines("我能排除的只有{x}。\n反正不会是{x}，答案我不知道。"),
    alternatives=lines("可能是{x}，也可能是{y}。\n{x}/{y}"),
    partly=lines("我只能说出{part}，剩下的不清楚。\n有一个是{part}，另外的我没有把握，不作答。"),
    rough=lines("{x}上下\n不止{x}"),
    joints=("以及", "与", "；"),
)

CHARTOM = ChartomWordings(
    number_questions=lines(
        """
        Read off the {measure} of {a} ({unit}).
        What {measure} in {unit} belongs to {a}?
        """
    ),
    choice_questions=lines(
        """
        Pick the one of the {things} with the second largest {measure}.
        At which of the {things} is the {measure} closest to the average?
        """
    ),
    ranking_questions=lines("List the {things} in falling order of {measure}."),
    plain=lines("My reading: {x}\nThat bar stands at {x}.\n=> {x}"),
    approximate=lines("close to {x}\n≈ {x}\n{x} or thereabouts"),
    data_beside=lines(
        """
        The neighbours have {a} and {b}, this one has {x}.
        {x} (tick marks at {a} and {b})
        """
    ),
    working=lines("2 x {half} = {x}\nDoubling {half}, we arrive at {x}."),
    corrected=lines("{y}; on second thought, {x}.\nScratch {y}. It should be {x}."),
    misled=lines(
        """
        Most people would be tricked into {y}; the true value is {x}.
        The drawing makes it look like {y}, which is wrong. Final answer: {x}
        """
    ),
    denying_other=lines("{y} is wrong, {x} is right.\nRather than {y}, it is {x}."),
    markup=lines("## Result {x}\n*{x}*\n[{x}]\n$${x}$$"),
    long_reasoning=lines(
        "The scale is unusual, so I compared the mark with the labels above and below it before I "
        "settled on a value; after this check I am confident that the figure to report is {x}."
    ),
    refusing=lines(
        "No value can be read off here.\nI'd rather not answer.\nThe image did not load."
    ),
    denying=lines("Any value except {x}.\nNo, {x} can't be."),
    alternatives=lines("{x}? {y}? I'm torn.\nOne of {x} and {y}"),
    ranges=lines("{x} – {y}\nanything in the range {x} to {y}"),
    choosing=lines(
        "My pick: {text}\n[{number}]\nIt has to be {letter}, {text}.\nNumber {number} is right."
    ),
    choosing_beside=lines(
        """
        The drawing suggests {text2}; the numbers say {text}.
        I first had {letter2}, now I have {letter}: {text}.
        """
    ),
    undecided=lines("{text2} and {text} are tied.\nPass.\nIt could be any of them.\nNot {letter}."),
    ordered=lines("In falling order: {order}\nHere you go — {order}"),
    ordered_backward=lines(
        "Starting with the smallest: {backward}\n{backward}, where the last is the largest"
    ),
    unordered=lines("No ranking is possible.\nToo close to call."),
)

HELD_OUT = Wordings(
    topics=TOPICS,
    charthal=CHARTHAL,
    simplevqa={"english": ENGLISH, "chinese": CHINESE},
    chartom=CHARTOM,
)
