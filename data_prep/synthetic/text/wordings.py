"""Wordings of responses: one row of the table per wording.

Slots: ``items`` (what is claimed), ``foil`` (named but not claimed), ``subject``/``Subject`` and
``be`` (from the question), ``clause``/``Clause`` (a whole sentence, items included), ``deed``
(questions about people), ``steps`` (true working) and ``town``, ``year``, ``other`` (side remarks
in answers to open questions). Every family has held-out wordings in each language, so that a test
set shows all behaviours.
"""

from __future__ import annotations

from dataclasses import dataclass
from string import Formatter
from typing import Literal

from data_prep.synthetic.text.names import Language
from data_prep.synthetic.wording import Wording

Join = Literal["and", "comma", "semicolon", "lines", "bullets", "numbered"]


@dataclass(frozen=True)
class TextWording(Wording):
    """One wording of a response. The id reads language, family, name."""

    join: Join = "and"

    @property
    def language(self) -> Language:
        """Return the language of the response."""
        return "zh" if self.id.startswith("zh.") else "en"

    @property
    def family(self) -> str:
        """Return what the wording is for: to state, to reason, to correct, to refuse, ..."""
        return self.id.split(".")[1]

    @property
    def slots(self) -> frozenset[str]:
        """Return the names of the slots that the template needs."""
        return frozenset(name for _, name, _, _ in Formatter().parse(self.template) if name)


W = TextWording
WORDINGS: tuple[TextWording, ...] = (
    # The answer alone.
    W("en.bare.and", "{items}"),
    W("en.bare.comma", "{items}", "comma"),
    W("en.bare.stop", "{items}."),
    W("en.bare.lines", "{items}", "lines"),
    W("en.bare.bullets", "{items}", "bullets"),
    W("en.bare.numbered", "{items}", "numbered", held_out=True),
    W("en.bare.semicolon", "{items}", "semicolon", held_out=True),
    W("en.label.answer", "Answer: {items}", "comma"),
    W("en.label.final", "Final answer: {items}"),
    W("en.label.boxed", "\\boxed{{{items}}}", "comma"),
    W("en.label.bold", "**{items}**", "comma"),
    W("en.label.the_answer", "The answer is {items}."),
    W("en.label.listed", "The answer is:\n{items}", "bullets"),
    W("en.label.my_answer", "My answer: {items}.", held_out=True),
    W("en.label.result", "Result = {items}", "comma", held_out=True),
    # One sentence.
    W("en.sentence.be", "{Subject} {be} {items}."),
    W("en.sentence.listed", "{Subject} {be}:\n{items}", "lines"),
    W("en.sentence.deed", "{items} {deed}."),
    W("en.sentence.it_was", "It was {items} who {deed}."),
    W("en.sentence.clause", "{Clause}."),
    W("en.sentence.as_asked", "As for {subject}, the answer is {items}.", held_out=True),
    W("en.sentence.comes_to", "{Subject}: {items}.", "comma", held_out=True),
    # A sentence and more around it.
    W("en.elaborate.note",
      "{Subject} {be} {items}. I hope this helps; ask me for further details."),
    W("en.elaborate.sure", "Sure! {Subject} {be} {items}. Everything needed is in the question."),
    W("en.elaborate.aside", "{Subject} {be} {items}, as was first recorded in {town} in {year}."),
    W("en.elaborate.deed",
      "{items} {deed}. The story is told in several chronicles from {town}, the oldest of {year}."),
    W("en.elaborate.succeed",
      "It was {items} who {deed}, some years after {other} had tried and failed to do the same."),
    W("en.elaborate.although",
      "{Clause}, although the chronicles of {town} do not mention it before {year}."),
    W("en.elaborate.attention",
      "{Clause}. This drew wide attention in {town} at the time and was described at length by "
      "{other} in a study of {year}, which remains the main source today."),
    W("en.elaborate.remembered",
      "Good question! {Clause}, which is still remembered in {town} with a fair every year."),
    W("en.elaborate.compared",
      "{Subject} {be} {items}. People often think of {other} or {town} in this connection, but "
      "those belong to a different story altogether."),
    W("en.elaborate.markdown", "**Answer**\n\n{items}\n\n*Source: the material in the question.*",
      "comma"),
    W("en.elaborate.known",
      "According to the records kept in {town}, {subject} {be} {items}. They were last revised "
      "in {year}.", held_out=True),
    W("en.elaborate.sources",
      "As most sources agree, {clause}. Later accounts from {town}, among them one by {other}, "
      "repeat this without adding much of their own.", held_out=True),
    W("en.elaborate.question", "You are asking about {subject}. That would be {items}.",
      held_out=True),
    W("en.elaborate.friend", "{items} {deed}, with some help from {other}, an old friend.",
      held_out=True),
    # Working first.
    W("en.reasoned.therefore",
      "Let me work through this. {steps} Therefore, the answer is {items}."),
    W("en.reasoned.step", "Step by step: {steps}\n\nFinal answer: {items}", "comma"),
    W("en.reasoned.boxed", "{steps} This gives \\boxed{{{items}}}.", "comma"),
    W("en.reasoned.so", "{steps} So {subject} {be} {items}."),
    W("en.reasoned.think", "<think>{steps} That settles it.</think>\n{items}", held_out=True),
    W("en.reasoned.hence", "First I look at the facts. {steps} Hence {subject} {be} {items}.",
      held_out=True),
    # A first answer withdrawn for another.
    W("en.corrected.wait",
      "{steps} The answer is {foil}. Wait, I misread that. The answer is {items}."),
    W("en.corrected.actually", "{foil}. Actually, no: {items}.", "comma"),
    W("en.corrected.scratch", "{Subject} {be} {foil}. Scratch that, it should be {items}."),
    W("en.corrected.mistake",
      "At first I get {foil}. I made a mistake there. Corrected answer: {items}"),
    W("en.corrected.recheck", "Answer: {foil}\n\nLet me check again. {steps}\n\nAnswer: {items}",
      "comma"),
    W("en.corrected.sorry", "It's {foil}. Sorry, I take that back, it's {items}.", held_out=True),
    W("en.corrected.revised", "Draft: {foil}\nRevised: {items}", "comma", held_out=True),
    # One answer held against another.
    W("en.contrast.not_but", "Not {foil} but {items}."),
    W("en.contrast.rather", "{Subject} {be} {items} rather than {foil}."),
    W("en.contrast.isnt", "Many would say {foil}, but that is wrong. The answer is {items}."),
    W("en.contrast.comma_not", "{items}, not {foil}."),
    W("en.contrast.instead", "I considered {foil} and rejected it; the answer is {items}.",
      held_out=True),
    W("en.contrast.unlike", "Contrary to what one might expect, it is not {foil}; it is {items}.",
      held_out=True),
    # Answers given with little confidence.
    W("en.hedged.think", "I think {subject} {be} {items}, but I'm not completely sure."),
    W("en.hedged.probably", "Probably {items}."),
    W("en.hedged.believe", "I believe the answer is {items}."),
    W("en.hedged.far", "As far as I know, {clause}."),
    W("en.hedged.recall", "If I remember correctly, it is {items}, though please double-check.",
      held_out=True),
    # Two answers, neither chosen.
    W("en.guesses.either", "It is either {items} or {foil}."),
    W("en.guesses.or", "{foil} or {items}"),
    W("en.guesses.possibly", "{Subject} {be} {items}, or possibly {foil}.", held_out=True),
    # No answer.
    W("en.refusal.unknown", "I don't know."),
    W("en.refusal.subject", "I'm sorry, but I have no information about {subject}."),
    W("en.refusal.unclear", "There is not enough information to determine {subject}."),
    W("en.refusal.cannot", "I cannot answer this question."),
    W("en.refusal.look", "To find {subject}, consult a reliable source or an encyclopedia.",
      held_out=True),
    W("en.refusal.unsure", "Unfortunately I am unable to say what the answer is.", held_out=True),
    # Stopped before a final answer, though the right values were mentioned.
    W("en.cut.check",
      "Let me see. {steps} Now {items} could be what is wanted, but before I say so I have to "
      "check whether the"),
    W("en.cut.marker", "{steps} Having looked at {items} once more, I conclude that the answer is"),
    W("en.cut.comparing",
      "We need {subject}. {steps} Comparing {items} with {foil}, we see that if"),
    W("en.cut.circles",
      "Hmm. {steps} Maybe {items}? Or {foil}? Let me go back to the beginning and", held_out=True),
    W("en.cut.suppose",
      "First, recall what is asked: {subject}. Suppose we begin with {items} and then look for",
      held_out=True),
    W("en.empty.none", ""),
    W("en.empty.newline", " \n", held_out=True),
    # Chinese, in the same order.
    W("zh.bare.and", "{items}"),
    W("zh.bare.comma", "{items}", "comma"),
    W("zh.bare.lines", "{items}", "lines"),
    W("zh.bare.stop", "{items}。", held_out=True),
    W("zh.label.answer", "答案：{items}", "comma"),
    W("zh.label.is", "答案是{items}。"),
    W("zh.label.boxed", "\\boxed{{{items}}}", "comma"),
    W("zh.label.final", "最终答案：{items}。", held_out=True),
    W("zh.sentence.be", "{subject}是{items}。"),
    W("zh.sentence.listed", "{subject}如下：\n{items}", "bullets"),
    W("zh.sentence.clause", "{clause}。"),
    W("zh.sentence.should", "{subject}应为{items}。", held_out=True),
    W("zh.elaborate.note", "{subject}是{items}。希望对你有帮助，如有疑问请继续提问。"),
    W("zh.elaborate.aside", "{subject}是{items}，这件事最早于{year}年在{town}有记载。"),
    W("zh.elaborate.clause",
      "{clause}。这件事当时在{town}引起了广泛关注，{other}后来对此有详细记述。"),
    W("zh.elaborate.known", "根据已有资料，{subject}是{items}。更多细节可以查阅相关文献。",
      held_out=True),
    W("zh.reasoned.therefore", "我们来分析一下。{steps}因此，答案是{items}。"),
    W("zh.reasoned.final", "解：{steps}\n最终答案：{items}", "comma"),
    W("zh.reasoned.so", "先看条件。{steps}所以{subject}是{items}。", held_out=True),
    W("zh.corrected.wait", "{steps}答案是{foil}。等等，我看错了，答案是{items}。"),
    W("zh.corrected.no", "{foil}。不对，应该是{items}。"),
    W("zh.corrected.again", "答案：{foil}\n重新检查一遍。{steps}\n答案：{items}", "comma",
      held_out=True),
    W("zh.contrast.not_but", "不是{foil}，而是{items}。"),
    W("zh.contrast.rather", "{subject}是{items}，而不是{foil}。"),
    W("zh.contrast.mistaken", "很多人以为是{foil}，其实是{items}。", held_out=True),
    W("zh.hedged.think", "我觉得{subject}可能是{items}，但不太确定。"),
    W("zh.hedged.know", "据我所知，{clause}。"),
    W("zh.hedged.should", "应该是{items}吧。", held_out=True),
    W("zh.guesses.either", "要么是{items}，要么是{foil}。"),
    W("zh.guesses.or", "{foil}或者{items}", held_out=True),
    W("zh.refusal.unknown", "我不知道。"),
    W("zh.refusal.subject", "抱歉，我没有关于{subject}的信息。"),
    W("zh.refusal.cannot", "信息不足，无法确定。", held_out=True),
    W("zh.cut.check", "我们来看。{steps}看起来可能是{items}，不过在下结论之前，还需要检查"),
    W("zh.cut.marker", "{steps}再看一遍{items}之后，可以得出答案是"),
    W("zh.cut.circles", "嗯。{steps}会不会是{items}？还是{foil}？让我回到开头，重新",
      held_out=True),
    W("zh.empty.none", ""),
    W("zh.empty.newline", "\n", held_out=True),
)  # fmt: skip
