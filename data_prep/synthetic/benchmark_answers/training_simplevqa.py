"""Wordings of SimpleVQA's questions and answers that train, val and cal are made with."""

from __future__ import annotations

from data_prep.synthetic.benchmark_answers.wordings import SimpleVQAWordings, lines

ENGLISH = SimpleVQAWordings(
    questions={
        "person": lines(
            """
            Who designed the bridge in the picture, the one near {w}?
            Who painted the portrait of {w} that the picture shows?
            Who founded the company {w}, whose logo this is?
            """
        ),
        "town": lines(
            """
            In which town does the tower in the picture stand, known as {w} Tower?
            Where was the coin from the {w} collection in this picture struck?
            """
        ),
        "title": lines(
            """
            In which film does {w}, the character in the picture, appear?
            Which book by {w} has this cover?
            """
        ),
        "thing": lines(
            """
            What is the shop {w} in the picture known for?
            Which goods does the ship {w} in the picture carry?
            """
        ),
        "year": lines(
            """
            In which year was the building in the picture, {w} Hall, completed?
            When was the stamp of {w} in the picture issued?
            """
        ),
        "number": lines(
            """
            How high is the mountain {w} in the picture, in metres?
            What is the length of the {w} river in the picture, in kilometres?
            """
        ),
        "names": lines(
            """
            Which towns does the {w} line on this map connect?
            What are the towns on the coat of arms of {w}?
            """
        ),
    },
    claiming=lines(
        """
        {x}
        {x}.
        It is {x}.
        The answer is {x}.
        I am not certain, but I think it is {x}.
        If I remember rightly: {x}.
        Looking at the style and the details, this must be {x}.
        **{x}**
        The picture shows something well known. The answer to your question is {x}, I think.
        答案是{x}。
        """
    ),
    claiming_beside=lines(
        """
        Not {y}, but {x}.
        At first I thought of {y}. It is {x}, though.
        It is {x}, not {y}.
        Many people say {y}; the right answer is {x}.
        {y}? No, {x}.
        """
    ),
    unattempted=lines(
        """
        I do not know.
        I'm sorry, I cannot tell from the picture.
        Could you give me more context, please?
        The picture is too blurred for me to say anything.
        That is an interesting question, on which much has been written.
        I would have to look it up.
        No idea.
        I am unable to identify what is shown.
        It depends on things that the picture does not show.
        """
    ),
    excluding=lines(
        """
        All I know is that it is not {x}.
        It cannot be {x}; more I cannot say.
        Certainly not {x}. Otherwise I have no idea.
        I would rule out {x}, but the answer escapes me.
        """
    ),
    alternatives=lines(
        """
        {x} or {y}
        It is either {x} or {y}.
        My guesses are {x} and {y}.
        Possibly {x}, possibly {y}.
        """
    ),
    partly=lines(
        """
        {part} is one of them; the others I do not know.
        I recognise {part}, but not the rest.
        {part}, and I cannot tell what else.
        """
    ),
    rough=lines(
        """
        about {x}
        over {x}
        roughly {x}, I would say
        It must be somewhere around {x}.
        """
    ),
    joints=(", ", " and ", "; "),
)

CHINESE = SimpleVQAWordings(
    questions={
        "person": lines("图中位于{w}附近的桥是谁设计的？\n图中{w}的肖像是谁画的？"),
        "town": lines("图中的{w}塔位于哪个城镇？\n图中这枚{w}硬币是在哪里铸造的？"),
        "title": lines("图中人物{w}出自哪部电影？\n图中封面是{w}的哪本书？"),
        "thing": lines("图中的商店{w}以什么出名？\n图中的{w}号船运载什么货物？"),
        "year": lines("图中的{w}大厅建成于哪一年？\n图中的{w}邮票是哪一年发行的？"),
        "number": lines("图中的{w}山海拔多少米？\n图中的{w}河全长多少公里？"),
        "names": lines("地图上的{w}线连接哪些城镇？\n{w}的纹章上有哪些城镇？"),
    },
    claiming=lines(
        """
        {x}
        {x}。
        是{x}。
        答案是{x}。
        我不太确定，但我想是{x}。
        如果没记错的话：{x}。
        从风格和细节来看，应该是{x}。
        **{x}**
        The answer is {x}.
        """
    ),
    claiming_beside=lines(
        """
        不是{y}，而是{x}。
        起初我以为是{y}，其实是{x}。
        是{x}，不是{y}。
        很多人说是{y}，正确答案是{x}。
        """
    ),
    unattempted=lines(
        """
        我不知道。
        抱歉，从图片上看不出来。
        能否提供更多背景信息？
        图片太模糊，我无法判断。
        这是一个很有意思的问题。
        我需要查一下资料。
        无法识别图中的内容。
        """
    ),
    excluding=lines(
        """
        我只知道不是{x}。
        不可能是{x}，其他的我说不上来。
        肯定不是{x}，别的我不清楚。
        """
    ),
    alternatives=lines("{x}或者{y}\n要么是{x}，要么是{y}。\n我猜是{x}和{y}中的一个。"),
    partly=lines("其中一个是{part}，其余的我不知道。\n我认得{part}，别的认不出来。"),
    rough=lines("大约{x}\n超过{x}\n我估计在{x}左右。"),
    joints=("、", "和", "，"),
)
