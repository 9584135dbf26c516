"""How responses are worded: one row per surface form.

Slots: ``items`` (what is claimed), ``foil`` (named but not claimed), ``subject``/``Subject`` and
``be`` (from the question form), ``clause``/``Clause`` (a whole sentence, items included), ``deed``
(questions about people), ``steps`` (true working) and ``town``, ``year``, ``other`` (by-the-way
facts of open questions). Held-out rows are used by ``forms="test"`` and ``"all"`` only; every
family has some in each language, so a test set shows all behaviours.
"""

from __future__ import annotations

from dataclasses import dataclass
from string import Formatter
from typing import Literal

from data_prep.synthetic.text.names import Language

Join = Literal["and", "comma", "semicolon", "lines", "bullets", "numbered"]


@dataclass(frozen=True)
class Form:
    """One wording of a response. The id reads language, family, name."""

    id: str
    template: str
    join: Join = "and"
    held_out: bool = False

    @property
    def language(self) -> Language:
        """Language of the response."""
        return "zh" if self.id.startswith("zh.") else "en"

    @property
    def family(self) -> str:
        """What the wording does: state, reason, correct itself, refuse, ..."""
        return self.id.split(".")[1]

    @property
    def slots(self) -> frozenset[str]:
        """Names of the slots the template needs."""
        return frozenset(name for _, name, _, _ in Formatter().parse(self.template) if name)


F = Form
FORMS: tuple[Form, ...] = (
    # The answer alone.
    F("en.bare.and", "{items}"),
    F("en.bare.comma", "{items}", "comma"),
    F("en.bare.stop", "{items}."),
    F("en.bare.lines", "{items}", "lines"),
    F("en.bare.bullets", "{items}", "bullets"),
    F("en.bare.numbered", "{items}", "numbered", held_out=True),
    F("en.bare.semicolon", "{items}", "semicolon", held_out=True),
    F("en.label.answer", "Answer: {items}", "comma"),
    F("en.label.final", "Final answer: {items}"),
    F("en.label.boxed", "\\boxed{{{items}}}", "comma"),
    F("en.label.bold", "**{items}**", "comma"),
    F("en.label.the_answer", "The answer is {items}."),
    F("en.label.listed", "The answer is:\n{items}", "bullets"),
    F("en.label.my_answer", "My answer: {items}.", held_out=True),
    F("en.label.result", "Result = {items}", "comma", held_out=True),
    # One sentence.
    F("en.sentence.be", "{Subject} {be} {items}."),
    F("en.sentence.listed", "{Subject} {be}:\n{items}", "lines"),
    F("en.sentence.deed", "{items} {deed}."),
    F("en.sentence.it_was", "It was {items} who {deed}."),
    F("en.sentence.clause", "{Clause}."),
    F("en.sentence.as_asked", "As for {subject}, the answer is {items}.", held_out=True),
    F("en.sentence.comes_to", "{Subject}: {items}.", "comma", held_out=True),
    # A sentence and more around it.
    F("en.elaborate.note",
      "{Subject} {be} {items}. I hope this helps; ask me for further details."),
    F("en.elaborate.sure", "Sure! {Subject} {be} {items}. Everything needed is in the question."),
    F("en.elaborate.aside", "{Subject} {be} {items}, as was first recorded in {town} in {year}."),
    F("en.elaborate.deed",
      "{items} {deed}. The story is told in several chronicles from {town}, the oldest of {year}."),
    F("en.elaborate.succeed",
      "It was {items} who {deed}, some years after {other} had tried and failed to do the same."),
    F("en.elaborate.although",
      "{Clause}, although the chronicles of {town} do not mention it before {year}."),
    F("en.elaborate.attention",
      "{Clause}. This drew wide attention in {town} at the time and was described at length by "
      "{other} in a study of {year}, which remains the main source today."),
    F("en.elaborate.remembered",
      "Good question! {Clause}, which is still remembered in {town} with a fair every year."),
    F("en.elaborate.compared",
      "{Subject} {be} {items}. People often think of {other} or {town} in this connection, but "
      "those belong to a different story altogether."),
    F("en.elaborate.markdown", "**Answer**\n\n{items}\n\n*Source: the material in the question.*",
      "comma"),
    F("en.elaborate.known",
      "According to the records kept in {town}, {subject} {be} {items}. They were last revised "
      "in {year}.", held_out=True),
    F("en.elaborate.sources",
      "As most sources agree, {clause}. Later accounts from {town}, among them one by {other}, "
      "repeat this without adding much of their own.", held_out=True),
    F("en.elaborate.question", "You are asking about {subject}. That would be {items}.",
      held_out=True),
    F("en.elaborate.friend", "{items} {deed}, with some help from {other}, an old friend.",
      held_out=True),
    # Working first.
    F("en.reasoned.therefore",
      "Let me work through this. {steps} Therefore, the answer is {items}."),
    F("en.reasoned.step", "Step by step: {steps}\n\nFinal answer: {items}", "comma"),
    F("en.reasoned.boxed", "{steps} This gives \\boxed{{{items}}}.", "comma"),
    F("en.reasoned.so", "{steps} So {subject} {be} {items}."),
    F("en.reasoned.think", "<think>{steps} That settles it.</think>\n{items}", held_out=True),
    F("en.reasoned.hence", "First I look at the facts. {steps} Hence {subject} {be} {items}.",
      held_out=True),
    # A first answer withdrawn for another.
    F("en.corrected.wait",
      "{steps} The answer is {foil}. Wait, I misread that. The answer is {items}."),
    F("en.corrected.actually", "{foil}. Actually, no: {items}.", "comma"),
    F("en.corrected.scratch", "{Subject} {be} {foil}. Scratch that, it should be {items}."),
    F("en.corrected.mistake",
      "At first I get {foil}. I made a mistake there. Corrected answer: {items}"),
    F("en.corrected.recheck", "Answer: {foil}\n\nLet me check again. {steps}\n\nAnswer: {items}",
      "comma"),
    F("en.corrected.sorry", "It's {foil}. Sorry, I take that back, it's {items}.", held_out=True),
    F("en.corrected.revised", "Draft: {foil}\nRevised: {items}", "comma", held_out=True),
    # One answer held against another.
    F("en.contrast.not_but", "Not {foil} but {items}."),
    F("en.contrast.rather", "{Subject} {be} {items} rather than {foil}."),
    F("en.contrast.isnt", "Many would say {foil}, but that is wrong. The answer is {items}."),
    F("en.contrast.comma_not", "{items}, not {foil}."),
    F("en.contrast.instead", "I considered {foil} and rejected it; the answer is {items}.",
      held_out=True),
    F("en.contrast.unlike", "Contrary to what one might expect, it is not {foil}; it is {items}.",
      held_out=True),
    # Answers given with little confidence.
    F("en.hedged.think", "I think {subject} {be} {items}, but I'm not completely sure."),
    F("en.hedged.probably", "Probably {items}."),
    F("en.hedged.believe", "I believe the answer is {items}."),
    F("en.hedged.far", "As far as I know, {clause}."),
    F("en.hedged.recall", "If I remember correctly, it is {items}, though please double-check.",
      held_out=True),
    # Two answers, neither chosen.
    F("en.guesses.either", "It is either {items} or {foil}."),
    F("en.guesses.or", "{foil} or {items}"),
    F("en.guesses.possibly", "{Subject} {be} {items}, or possibly {foil}.", held_out=True),
    # No answer.
    F("en.refusal.unknown", "I don't know."),
    F("en.refusal.subject", "I'm sorry, but I have no information about {subject}."),
    F("en.refusal.unclear", "There is not enough information to determine {subject}."),
    F("en.refusal.cannot", "I cannot answer this question."),
    F("en.refusal.look", "To find {subject}, consult a reliable source or an encyclopedia.",
      held_out=True),
    F("en.refusal.unsure", "Unfortunately I am unable to say what the answer is.", held_out=True),
    # Stopped before a final answer, though the right values were mentioned.
    F("en.cut.check",
      "Let me see. {steps} Now {items} could be what is wanted, but before I say so I have to "
      "check whether the"),
    F("en.cut.marker", "{steps} Having looked at {items} once more, I conclude that the answer is"),
    F("en.cut.comparing",
      "We need {subject}. {steps} Comparing {items} with {foil}, we see that if"),
    F("en.cut.circles",
      "Hmm. {steps} Maybe {items}? Or {foil}? Let me go back to the beginning and", held_out=True),
    F("en.cut.suppose",
      "First, recall what is asked: {subject}. Suppose we begin with {items} and then look for",
      held_out=True),
    F("en.empty.none", ""),
    F("en.empty.newline", " \n", held_out=True),
    # Chinese, in the same order.
    F("zh.bare.and", "{items}"),
    F("zh.bare.comma", "{items}", "comma"),
    F("zh.bare.lines", "{items}", "lines"),
    F("zh.bare.stop", "{items}。", held_out=True),
    F("zh.label.answer", "答案：{items}", "comma"),
    F("zh.label.is", "答案是{items}。"),
    F("zh.label.boxed", "\\boxed{{{items}}}", "comma"),
    F("zh.label.final", "最终答案：{items}。", held_out=True),
    F("zh.sentence.be", "{subject}是{items}。"),
    F("zh.sentence.listed", "{subject}如下：\n{items}", "bullets"),
    F("zh.sentence.clause", "{clause}。"),
    F("zh.sentence.should", "{subject}应为{items}。", held_out=True),
    F("zh.elaborate.note", "{subject}是{items}。希望对你有帮助，如有疑问请继续提问。"),
    F("zh.elaborate.aside", "{subject}是{items}，这件事最早于{year}年在{town}有记载。"),
    F("zh.elaborate.clause",
      "{clause}。这件事当时在{town}引起了广泛关注，{other}后来对此有详细记述。"),
    F("zh.elaborate.known", "根据已有资料，{subject}是{items}。更多细节可以查阅相关文献。",
      held_out=True),
    F("zh.reasoned.therefore", "我们来分析一下。{steps}因此，答案是{items}。"),
    F("zh.reasoned.final", "解：{steps}\n最终答案：{items}", "comma"),
    F("zh.reasoned.so", "先看条件。{steps}所以{subject}是{items}。", held_out=True),
    F("zh.corrected.wait", "{steps}答案是{foil}。等等，我看错了，答案是{items}。"),
    F("zh.corrected.no", "{foil}。不对，应该是{items}。"),
    F("zh.corrected.again", "答案：{foil}\n重新检查一遍。{steps}\n答案：{items}", "comma",
      held_out=True),
    F("zh.contrast.not_but", "不是{foil}，而是{items}。"),
    F("zh.contrast.rather", "{subject}是{items}，而不是{foil}。"),
    F("zh.contrast.mistaken", "很多人以为是{foil}，其实是{items}。", held_out=True),
    F("zh.hedged.think", "我觉得{subject}可能是{items}，但不太确定。"),
    F("zh.hedged.know", "据我所知，{clause}。"),
    F("zh.hedged.should", "应该是{items}吧。", held_out=True),
    F("zh.guesses.either", "要么是{items}，要么是{foil}。"),
    F("zh.guesses.or", "{foil}或者{items}", held_out=True),
    F("zh.refusal.unknown", "我不知道。"),
    F("zh.refusal.subject", "抱歉，我没有关于{subject}的信息。"),
    F("zh.refusal.cannot", "信息不足，无法确定。", held_out=True),
    F("zh.cut.check", "我们来看。{steps}看起来可能是{items}，不过在下结论之前，还需要检查"),
    F("zh.cut.marker", "{steps}再看一遍{items}之后，可以得出答案是"),
    F("zh.cut.circles", "嗯。{steps}会不会是{items}？还是{foil}？让我回到开头，重新",
      held_out=True),
    F("zh.empty.none", ""),
    F("zh.empty.newline", "\n", held_out=True),
)  # fmt: skip
