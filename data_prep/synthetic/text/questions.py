"""Wordings of the questions of each world: one row of the table per wording.

``subject`` names what is asked for, so that a response can be a sentence like "subject is X";
``clause`` is another whole sentence, in which ``{items}`` stands for the answer; ``deed`` completes
"It was X who ..." for questions about people.
"""

from __future__ import annotations

from dataclasses import dataclass

from data_prep.synthetic.text.names import Language
from data_prep.synthetic.wording import Wording


@dataclass(frozen=True)
class TextQuestion(Wording):
    """One wording of a world's question. The id reads language, world, name."""

    subject: str
    be: str = ""
    """English verb between subject and answer; Chinese uses one word for all."""
    deed: str = ""
    clause: str = ""

    @property
    def language(self) -> Language:
        """Return the language that the question is asked in."""
        return "zh" if self.id.startswith("zh.") else "en"

    @property
    def world(self) -> str:
        """Return the name of the world that fills the template's slots."""
        return self.id.split(".")[1]


Q = TextQuestion
QUESTIONS: tuple[TextQuestion, ...] = (
    Q("en.table_filter.more", "{table}\n\nWhich towns have more than {limit} {noun}?",
      "the towns with more than {limit} {noun}", "are"),
    Q("en.table_filter.name", "Name every town in the table with over {limit} {noun}.\n\n{table}",
      "the towns with over {limit} {noun}", "are"),
    Q("en.table_filter.exceed", "{table}\nIn which towns does the number of {noun} exceed {limit}?",
      "the towns exceeding {limit} {noun}", "are", held_out=True),
    Q("zh.table_filter.more", "{table}\n\n哪些城镇的{noun}多于{limit}？",
      "{noun}多于{limit}的城镇"),
    Q("zh.table_filter.name", "写出{noun}数量超过{limit}的所有城镇。\n{table}", "符合条件的城镇",
      held_out=True),
    Q("en.table_lookup.many", "{table}\n\nHow many {noun} does {town} have?",
      "the number of {noun} in {town}", "is"),
    Q("en.table_lookup.read", "Read the table: what is the number of {noun} in {town}?\n{table}",
      "the number of {noun}", "is", held_out=True),
    Q("zh.table_lookup.many", "{table}\n\n{town}有多少{noun}？", "{town}的{noun}数量"),
    Q("en.table_measure.what", "{table}\n\nWhat is the {measure} of {row}?",
      "the {measure} of {row}", "is"),
    Q("en.table_measure.give", "Give the {measure} of {row}.\n{table}", "the {measure}", "is"),
    Q("zh.table_measure.what", "{table}\n\n{row}的{measure}是多少？", "{row}的{measure}"),
    Q("en.sequence.next", "A sequence begins {shown}. Write down the next {count} term(s).",
      "the requested part of the sequence", "is"),
    Q("en.sequence.go_on", "{shown}, ...\nHow does it go on? Give {count} more number(s).",
      "the continuation", "is"),
    Q("zh.sequence.next", "数列以{shown}开头，接下来的{count}项是什么？", "接下来的部分"),
    Q("en.number_set.divisible", "Which of the numbers {members} are divisible by {divisor}?",
      "the numbers divisible by {divisor}", "are"),
    Q("en.number_set.multiples", "Set: {{{members}}}. List the multiples of {divisor} in it.",
      "the multiples of {divisor}", "are"),
    Q("zh.number_set.divisible", "在{members}中，哪些数能被{divisor}整除？",
      "能被{divisor}整除的数"),
    Q("en.option_set.multiples", "Which option or options are multiples of {divisor}?",
      "the matching options", "are"),
    Q("en.option_set.select", "Select everything that {divisor} divides without remainder.",
      "the right selection", "is", held_out=True),
    Q("zh.option_set.multiples", "下列选项中，哪些是{divisor}的倍数？", "符合要求的选项"),
    Q("en.option_town.most", "{table}\n\nWhich town has the most {noun}?",
      "the town with the most {noun}", "is"),
    Q("zh.option_town.most", "{table}\n\n哪个城镇的{noun}最多？", "{noun}最多的城镇"),
    Q("en.word_problem.left",
      "{who} fills {boxes} boxes with {each} {goods} each and gives {given} away. How many "
      "{goods} are left?", "the number of {goods} left", "is"),
    Q("en.word_problem.remain",
      "There are {boxes} shelves holding {each} {goods} apiece. {who} sells {given} of them. How "
      "many remain?", "the number remaining", "is", held_out=True),
    Q("zh.word_problem.left",
      "{who}装了{boxes}个箱子，每箱{each}个{goods}，又送出{given}个。还剩多少个{goods}？",
      "剩下的数量"),
    Q("en.part_of_whole.share", "{part} of {whole} {goods} are blue. What share of them is blue?",
      "the blue share", "is"),
    Q("zh.part_of_whole.share", "{whole}个{goods}中有{part}个是蓝色的。蓝色的占比是多少？",
      "蓝色的占比"),
    Q("en.peaks.above",
      "Peaks of a spectrum:\n{table}\nAt which positions is the height above {level}?",
      "the positions above {level}", "are"),
    Q("en.peaks.tall", "{table}\nList the position of every peak taller than {level}.",
      "the positions of the taller peaks", "are"),
    Q("zh.peaks.above", "光谱的峰：\n{table}\n哪些位置的峰高于{level}？", "高于{level}的峰的位置"),
    Q("en.points.above", "Points: {points}. Which of them lie above the line y = {level}?",
      "the points above the line", "are"),
    Q("zh.points.above", "给定点：{points}。哪些点在直线 y = {level} 的上方？", "直线上方的点"),
    Q("en.calendar.dates", "{calendar}\n\nOn which date or dates does the {event} take place?",
      "the date or dates of the {event}", "are"),
    Q("zh.calendar.dates", "{calendar}\n\n{event}在哪些日期举行？", "{event}的日期"),
    Q("en.roster.members", "Team {team}: {first}. Team {other}: {second}. Who is in team {team}?",
      "the members of team {team}", "are", clause="team {team} consists of {items}"),
    Q("en.roster.plays", "{other} fields {second}; {team} fields {first}. Who plays for {team}?",
      "the players of {team}", "are", held_out=True),
    Q("zh.roster.members", "{team}队：{first}。{other}队：{second}。{team}队有哪些人？",
      "{team}队的成员"),
    Q("en.cargo.holds",
      "Crate {here} holds {first}. Crate {there} holds {second}. What is in crate {here}?",
      "the contents of crate {here}", "are", clause="crate {here} holds {items}"),
    Q("en.cargo.unpack",
      "We unpacked crate {there} ({second}) and crate {here} ({first}). What did crate {here} "
      "contain?", "the goods in crate {here}", "are"),
    Q("zh.cargo.holds", "{there}号箱装着{second}，{here}号箱装着{first}。{here}号箱里有什么？",
      "{here}号箱里的东西"),
    Q("en.open_person.wrote", "who wrote the novel {work}", "the author of {work}", "was",
      "wrote the novel {work}", "the novel {work} was written by {items}"),
    Q("en.open_person.founded", "Who founded the town of {place}?", "the founder of {place}", "was",
      "founded the town of {place}", "the town of {place} was founded by {items}"),
    Q("en.open_person.played", "who plays {thing} in the film {work}", "the actor behind {thing}",
      "is", "plays {thing} in {work}", "the role of {thing} is played by {items}"),
    Q("en.open_person.sings", "who sings the theme song of {work}", "the singer of the theme song",
      "is", "sings the theme song of {work}", "the theme song of {work} is sung by {items}"),
    Q("en.open_person.won", "who won the {thing} prize in {date}",
      "the winner of the {thing} prize", "was", "won the {thing} prize in {date}",
      "the {thing} prize went to {items}"),
    Q("en.open_person.invented", "who is credited with inventing the {thing} engine",
      "the inventor of the {thing} engine", "was", "invented the {thing} engine",
      "the {thing} engine was invented by {items}"),
    Q("en.open_person.captain", "Who was captain of the ship {thing} on its first voyage?",
      "the captain of the {thing}", "was", "commanded the {thing}",
      "the {thing} was commanded by {items}", held_out=True),
    Q("en.open_person.mayor", "who became mayor of {place} in {date}", "the new mayor of {place}",
      "was", "became mayor of {place}", "{place} was governed by {items}", held_out=True),
    Q("zh.open_person.wrote", "谁写了小说《{work}》？", "小说《{work}》的作者",
      clause="{items}写了小说《{work}》"),
    Q("zh.open_person.founded", "谁创建了{place}？", "{place}的创建者",
      clause="{items}创建了{place}"),
    Q("en.open_place.built", "where was the ship {thing} built",
      "the place where the {thing} was built", "was",
      clause="the ship {thing} was built in {items}"),
    Q("en.open_place.set", "In which town is {work} set?", "the town where {work} is set", "is",
      clause="{work} is set in {items}"),
    Q("en.open_place.filmed", "where was {work} filmed", "the filming location of {work}", "was",
      clause="{work} was filmed in {items}"),
    Q("en.open_place.capital", "what is the capital of {place}", "the capital of {place}", "is",
      clause="{place} has its seat of government in {items}"),
    Q("en.open_place.ends", "where does the {thing} railway end", "the end of the {thing} railway",
      "is", clause="the {thing} railway ends in {items}", held_out=True),
    Q("zh.open_place.built", "{thing}号建造于哪里？", "{thing}号的建造地",
      clause="{thing}号建造于{items}"),
    Q("en.open_year.when", "when did the novel {work} come out", "the year {work} came out", "was",
      clause="the novel {work} came out in {items}"),
    Q("en.open_year.year", "In what year was the town of {place} founded?",
      "the founding year of {place}", "was", clause="the town of {place} was founded in {items}"),
    Q("en.open_year.last", "when was the last time {thing} won the cup", "{thing}'s last cup win",
      "was", clause="{thing} last won the cup in {items}"),
    Q("zh.open_year.year", "{place}建于哪一年？", "{place}的建成年份", clause="{place}建于{items}"),
    Q("en.open_date.when", "On what day did the {thing} treaty take effect?",
      "the day the {thing} treaty took effect", "was",
      clause="the {thing} treaty took effect on {items}"),
    Q("en.open_date.release", "what is the release date of {work}", "the release date of {work}",
      "is", clause="{work} will be released on {items}"),
    Q("zh.open_date.when", "{thing}条约于哪一天生效？", "{thing}条约的生效日期",
      clause="{thing}条约于{items}生效"),
    Q("en.open_count.chapters", "how many chapters are there in {work}",
      "the number of chapters in {work}", "is", clause="{work} has {items} chapters"),
    Q("en.open_count.seasons", "how many seasons of {work} were made", "the number of seasons",
      "is", clause="{work} ran for {items} seasons"),
    Q("zh.open_count.chapters", "《{work}》有多少章？", "《{work}》的章数",
      clause="《{work}》有{items}章"),
    Q("en.open_title.song", "what is the name of the first song by {thing}",
      "the first song by {thing}", "is", clause="the first song by {thing} is called {items}"),
    Q("en.open_title.film", "which film did {thing} direct in {date}", "the film {thing} directed",
      "was", clause="{thing} directed {items}"),
    Q("en.open_title.book", "Which book made {thing} famous?", "the book that made {thing} famous",
      "is", clause="{thing} became famous with {items}", held_out=True),
    Q("zh.open_title.song", "{thing}的第一首歌叫什么名字？", "{thing}的第一首歌",
      clause="{thing}的第一首歌叫{items}"),
)  # fmt: skip
