"""Wordings that train, val and cal are made with; ``held_out_wordings`` has none of them."""

from __future__ import annotations

from data_prep.synthetic.benchmark_answers.training_simplevqa import CHINESE, ENGLISH
from data_prep.synthetic.benchmark_answers.wordings import (
    ChartHalWordings,
    ChartomWordings,
    Topic,
    Wordings,
    lines,
)

TOPICS = (
    Topic("annual rainfall", "mm", "valleys", 120, 900),
    Topic("bread production", "tonnes", "bakeries", 20, 480),
    Topic("ridership", "thousand passengers", "tram lines", 12, 95),
    Topic("average wage", "coins", "guilds", 150, 880),
    Topic("forest cover", "%", "provinces", 11, 88),
    Topic("literacy", "%", "counties", 21, 95),
    Topic("share of renters", "%", "boroughs", 11, 83),
    Topic("training loss", "nats", "models", 12, 98),
    Topic("harvest", "kg", "farms", 110, 960),
    Topic("noise level", "dB", "machines", 31, 98),
    Topic("water use", "litres", "households", 105, 640),
    Topic("number of loans", "books", "libraries", 130, 990),
    Topic("track length", "km", "railways", 14, 320),
    Topic("melting temperature", "degrees", "alloys", 210, 940),
)

CHARTHAL = ChartHalWordings(
    subjects=lines(
        """
        museum ticket prices
        the popularity of chess clubs
        wages of lighthouse keepers
        the spread of electric scooters
        life expectancy of sea turtles
        sales of video games
        the cost of dental care
        voter turnout among students
        the quality of drinking water
        coffee consumption in offices
        the rise of remote work
        the migration of storks
        """
    ),
    causes=lines(
        """
        a change in the rules
        cheaper materials
        a shift in demand
        unusual weather
        better equipment
        a shortage of skilled staff
        a different way of counting
        investment in the years before
        the closing of an old site
        competition from abroad
        local differences in soil and terrain
        a longer season
        """
    ),
    irrelevant_questions=lines(
        """
        According to the chart, what was the trend in {asked} between 2010 and 2020?
        What does the chart tell us about {asked}?
        Based on the values of {a} in this chart, what is behind {asked}?
        Judging by this chart, by how many percent did {asked} change?
        Given the bars for {a} and {b}, how will {asked} develop?
        """
    ),
    inexistent_closed_questions=lines(
        """
        What is the {measure} of {other}?
        According to the chart, how high is the {measure} of {other}?
        How much larger is the {measure} of {other} than that of {a}?
        Read the {measure} of {other} off the chart.
        """
    ),
    inexistent_open_questions=lines(
        """
        What explains the high {measure} of {other} in this chart?
        Why might the {measure} of {other} have fallen after the reform shown here?
        How did the events at {other} affect the {measure} seen in the chart?
        """
    ),
    claims=lines(
        """
        the {measure} of {a} is {false_a}
        {a} reaches {false_a}
        {a} stands at {false_a}
        """
    ),
    contradictory_closed_questions=lines(
        """
        Since {claim} in this chart, how high is the {measure} of {b}?
        The chart shows that {claim}. What is the value of {b}?
        Given that {claim}, what {measure} does the chart show for {b}?
        """
    ),
    contradictory_unanswered_questions=lines(
        """
        Since {claim} in this chart, by how much does it exceed every other value?
        The chart shows that {claim}. Which of the {things} reached that before?
        Given that {claim}, what colour is the bar of that height?
        """
    ),
    contradictory_open_questions=lines(
        """
        The chart shows that {claim}. What could be the reasons?
        Since {claim}, which conditions might have led to this?
        Why is it that {claim}, as the chart suggests?
        """
    ),
    normal_closed_questions=lines(
        """
        What is the {measure} of {a}?
        How high is the {measure} of {a} in the chart?
        Which {measure} does the chart give for {a}?
        State the value of {a}.
        """
    ),
    normal_open_questions=lines(
        """
        The {measure} of {a} differs from that of {b}. What might explain this?
        Which factors could lie behind the gap between {a} and {b}?
        Why would the {measure} of {a} be {value_a}?
        """
    ),
    unrelated=lines(
        """
        The chart has nothing to do with {asked}.
        This chart is about {measure}, not about {asked}.
        The question is unrelated to the chart, which compares the {measure} of {things}.
        {asked} cannot be found here: the chart deals with {measure} only.
        The figure you show is on {measure}; it is not connected with {asked}.
        """
    ),
    lacking=lines(
        """
        {other} does not appear in the chart.
        The chart has no data on {other}.
        There is no bar for {other}.
        Only {a} and {b} are among the {things} shown; {other} is missing.
        The figure does not include {other}.
        """
    ),
    denying=lines(
        """
        That is not what the chart shows: {a} stands at {value_a}.
        The premise is wrong, because {a} has {value_a}.
        {a} does not have that value in the chart; it has {value_a}.
        The claim is false. The bar of {a} ends at {value_a}.
        You are mistaken about {a}, whose {measure} is {value_a}.
        """
    ),
    declining=lines(
        """
        So I cannot answer the question.
        Therefore no answer can be given.
        It is impossible to say from this figure.
        I will not guess.
        For that I would need another source.
        """
    ),
    answering=lines(
        """
        The answer is {x}.
        It is {x}.
        I read {x} off the chart.
        {x}
        That makes {x}.
        From the figure one gets {x}.
        """
    ),
    tentative=lines(
        """
        One reason might be {cause}.
        It could have to do with {cause}.
        Perhaps {cause} played a part.
        {cause} may have contributed.
        A possible explanation is {cause}, but the chart does not prove it.
        I can only speculate that {cause} mattered.
        """
    ),
    certain=lines(
        """
        The reason is {cause}.
        This is entirely due to {cause}.
        {cause} caused it.
        It clearly comes from {cause}.
        There is no doubt that {cause} is behind it.
        {cause} drove the values, as the figure proves.
        """
    ),
    padding=lines(
        """
        The chart compares {things} by {measure}.
        {a} and {b} stand side by side.
        The vertical axis gives {measure} in {unit}.
        I looked at the bars one after the other.
        Thank you for the picture.
        """
    ),
)

CHARTOM = ChartomWordings(
    number_questions=lines(
        """
        How high is the {measure} of {a}, in {unit}?
        By the chart, what {measure} does {a} have (in {unit})?
        What does {a} come to in {unit}?
        How many {unit} does the chart show for {a}?
        """
    ),
    choice_questions=lines(
        """
        Which of the {things} has the largest {measure}?
        Where is the {measure} the smallest?
        Whose {measure} changed most?
        """
    ),
    ranking_questions=lines(
        """
        Rank the {things} by {measure}, from largest to smallest.
        Sort the {things} by {measure}, beginning with the largest.
        """
    ),
    plain=lines(
        """
        {x}
        {x}.
        It is {x}.
        Answer: {x}
        The chart shows {x}.
        """
    ),
    approximate=lines(
        """
        about {x}
        ~{x}
        roughly {x}
        {x}, give or take
        I would estimate {x}.
        """
    ),
    data_beside=lines(
        """
        {x} (2018 = {a}, 2019 = {b}).
        {x}; the axis starts at {a} and ends at {b}.
        The first bar has {a} and the second {b}. The one in question: {x}.
        In 2019 the bar ends at {x}.
        """
    ),
    working=lines(
        """
        {half} + {half} = {x}
        Twice {half} gives {x}.
        Each grid line is worth {half}; two of them make {x}.
        """
    ),
    corrected=lines(
        """
        {y}. No, {x}.
        {y}... wait, I misread the axis: {x}.
        My first answer was {y}. Correction: {x}.
        """
    ),
    misled=lines(
        """
        A careless reader would say {y}. It is {x}.
        At first sight {y}, in truth {x}.
        The broken axis suggests {y}, but the labels say {x}.
        """
    ),
    denying_other=lines("Not {y} but {x}.\n{x}, never {y}.\nIt isn't {y}; it is {x}."),
    markup=lines("**{x}**\n<answer>{x}</answer>\n\\boxed{{{x}}}\n`{x}`"),
    long_reasoning=(
        "Let me look at the axis first. It has a label for each step, and the bar in question ends "
        "close to one of them. The picture is drawn in perspective, which makes things look "
        "different. Reading the label, I get {x}.",
        "First I find the bar, then I follow its end to the axis, and there I read the value. The "
        "result is {x}.",
    ),
    refusing=lines(
        """
        I cannot read this chart.
        There is not enough information.
        The axis has no labels, so I do not know.
        Sorry, no picture has reached me.
        Too hard to say.
        """
    ),
    denying=lines("It isn't {x}.\nCertainly not {x}.\n{x} is wrong."),
    alternatives=lines("{x} or {y}\nEither {x} or {y}, I cannot decide.\n{x}, or maybe {y}"),
    ranges=lines("between {x} and {y}\nfrom {x} to {y}\nsomewhere from {x} up to {y}"),
    choosing=lines(
        """
        {number}
        {letter}
        ({letter})
        {text}
        {number}. {text}
        The answer is {text}.
        Option {number}
        I choose {letter}.
        It is {text}, as the bar shows.
        """
    ),
    choosing_beside=lines(
        """
        Not {text2} but {text}.
        It looks like {text2}, but it is {text}.
        {text2}? No, {text}.
        Options {number2} and {number} remain; I take {number}.
        A careless reader picks {text2}. The right one is {text}.
        """
    ),
    undecided=lines(
        """
        {text} or {text2}
        I cannot tell.
        Anything but {text}.
        {number} and {number2}
        It isn't {text}.
        """
    ),
    ordered=lines(
        """
        {order}
        From largest to smallest: {order}.
        The order is {order}
        I would rank them like this: {order}.
        """
    ),
    ordered_backward=lines(
        """
        From smallest to largest: {backward}.
        {backward} (smallest first)
        In rising order: {backward}
        """
    ),
    unordered=lines("I cannot rank them.\nThey are all about the same.\nThe chart gives no order."),
)

TRAINING = Wordings(
    topics=TOPICS,
    charthal=CHARTHAL,
    simplevqa={"english": ENGLISH, "chinese": CHINESE},
    chartom=CHARTOM,
)
