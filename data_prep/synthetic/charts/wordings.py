"""Wordings of responses: a table of frames, and one of wordings of their steps.

Slots of a frame: ``readings`` (item and value pairs), ``step``/``Step`` (the line of thought,
calculation included), ``answer``, and ``noun``, ``nouns``, ``measure``, ``measures`` as in
questions. The families ``complete`` (all that the picture holds is listed), ``selected`` (only what
the step works with) and ``inline`` (inside the step) state readings, step and answer, whether these
are right or not: right answers, faulty logic and misreadings share them.
"""

from __future__ import annotations

from dataclasses import dataclass

from data_prep.synthetic.wording import Wording


@dataclass(frozen=True)
class ResponseFrame(Wording):
    """One frame of a response. The id reads family, name."""

    reading: str = "{item} is {value}"
    """Wording of one reading; the family ``inline`` puts it inside the step."""

    @property
    def family(self) -> str:
        """Return what the wording is for: to state in full, to circle, to decline, ..."""
        return self.id.partition(".")[0]


@dataclass(frozen=True)
class StepWording(Wording):
    """One wording of an operation's line of thought, around ``items``; has the problem's slots."""

    @property
    def operation(self) -> str:
        """Return the operation that is worded."""
        return self.id.partition(".")[0]


REASONED = ("complete", "selected", "inline")

F = ResponseFrame
FRAMES: tuple[ResponseFrame, ...] = (
    # All readings, the step, the answer.
    F("complete.shows", "The picture shows {readings}. {Step}. The answer is {answer}."),
    F("complete.off", "Reading everything off: {readings}. {Step}. Answer: {answer}",
      "{item}: {value}"),
    F("complete.see", "I see {readings} and nothing else. {Step}. So the answer is {answer}.",
      "{item} at {value}"),
    F("complete.all", "All {measures}: {readings}.\n{Step}.\nTherefore {answer}.",
      "{item} = {value}"),
    F("complete.drawn", "What is drawn: {readings}.\n{Step}.\n**{answer}**", "{item} ({value})"),
    F("complete.again", "The whole picture: {readings}. Let me check again: yes. {Step}. The "
      "answer is {answer}."),
    F("complete.view", "Everything in view: {readings}. {Step}. That leaves {answer}.",
      "{item} with {value}", held_out=True),
    F("complete.data", "In full, the data are {readings}. {Step}. Final answer: {answer}.",
      "{item} = {value}", held_out=True),
    # The readings that are used, the step, the answer.
    F("selected.plain", "{Readings}. {Step}. The answer is {answer}."),
    F("selected.read", "I read {readings}. {Step}. Answer: {answer}", "{item} = {value}"),
    F("selected.closely", "Looking closely, {readings}. {Step}. So the answer is {answer}."),
    F("selected.matters", "What matters here: {readings}.\n{Step}.\nTherefore {answer}.",
      "{item}: {value}"),
    F("selected.note", "Note {readings}. {Step}.\n**{answer}**", "{item} at {value}"),
    F("selected.check", "{Readings}. {Step}. Let me check again: yes. The answer is {answer}."),
    F("selected.relevant", "Relevant readings: {readings}. {Step}. That leaves {answer}.",
      "{item} ({value})", held_out=True),
    F("selected.find", "I find {readings}. {Step}. Final answer: {answer}.", "{item} at {value}",
      held_out=True),
    # The readings inside the step, the answer.
    F("inline.plain", "{Step}. The answer is {answer}.", "{item} at {value}"),
    F("inline.answer", "{Step}. Answer: {answer}", "{item} ({value})"),
    F("inline.look", "Let me look. {Step}. Therefore {answer}.", "{item} with {value}"),
    F("inline.see", "As far as I see, {step}. So the answer is {answer}.", "{item} at {value}"),
    F("inline.short", "{Step}.\n**{answer}**", "{item} = {value}"),
    F("inline.think", "I think that {step}. Let me check again: yes. The answer is {answer}.",
      "{item} ({value})"),
    F("inline.question", "About the question: {step}. Final answer: {answer}.",
      "{item} with {value}", held_out=True),
    F("inline.leaves", "{Step}. That leaves {answer}.", "{item} ({value})", held_out=True),
    # The answer alone.
    F("bare.plain", "{answer}"),
    F("bare.stop", "{answer}."),
    F("bare.bold", "**{answer}**"),
    F("bare.bracket", "({answer})", held_out=True),
    F("bare.quoted", '"{answer}"', held_out=True),
    F("label.answer", "Answer: {answer}"),
    F("label.the", "The answer is {answer}."),
    F("label.boxed", "\\boxed{{{answer}}}"),
    F("label.final", "Final answer: {answer}.", held_out=True),
    # Formatting gone wrong.
    F("garbled.table", "|{answer}||--|\n||"),
    F("garbled.json", '{{"ans": "{answer}, "'),
    F("garbled.repeat", "ans ans ans {answer} ans ans"),
    F("garbled.tags", "<td>{answer}</tr></td><br", held_out=True),
    F("garbled.marks", "## ** {answer} ** ## %%", held_out=True),
    # Something is said to be missing or wrong; no answer.
    F("missing.scale", "The scale needed to read the {measures} is missing, so this cannot be "
      "answered."),
    F("missing.not_given", "{Readings}. The picture does not give what else is needed, so the "
      "question cannot be answered."),
    F("missing.enough", "There is not enough information in the picture to determine the "
      "{measures}."),
    F("missing.mistaken", "The question does not fit the picture: its conditions contradict what "
      "is drawn. No answer is possible."),
    F("missing.unlabelled", "The {nouns} carry no usable labels. It is impossible to say without "
      "further data."),
    F("missing.after", "I can make out {readings}. Still, one condition is not stated, and without "
      "it the problem cannot be solved.", "{item} at {value}"),
    F("missing.incomplete", "The question is incomplete; I cannot determine an answer from it.",
      held_out=True),
    F("missing.data", "{Readings}. Beyond that the data required are absent, so no conclusion can "
      "be drawn.", "{item} = {value}", held_out=True),
    F("part_missing.rest", "{answer} can be named. For the other {nouns} the picture gives no "
      "information, so nothing more can be determined."),
    F("part_missing.some", "Part of the answer is {answer}. Whether there is more cannot be "
      "determined, since some {measures} are not given."),
    F("part_missing.sure", "Only {answer} can be confirmed; the conditions for the remaining "
      "{nouns} are missing.", held_out=True),
    # No end, or no way out of a circle.
    F("circling.wait", "{Readings}. {Step}. Wait, let me check that again. {Readings}. Hmm, but "
      "then"),
    F("circling.maybe", "Let me see: {readings}. Or maybe not? Let me see: {readings}. Or maybe "
      "not? Let me", "{item} at {value}"),
    F("circling.back", "First I look at the {measures}. {Readings}. Now I go back and look at the "
      "{measures} once more, because if"),
    F("circling.compare", "To answer this I compare the {nouns} one after the other. {Readings}, "
      "which means that the", "{item} = {value}"),
    F("circling.doubt", "{Step}. But is that right? I start over. {Step}. But is that right? I "
      "start over. And"),
    F("circling.cut", "I read {readings}. {Step}, and with that the answer to the question is",
      "{item} = {value}"),
    F("circling.hmm", "Hmm, {readings}. Hold on. Hmm, {readings}. Hold on. Perhaps I should",
      "{item} ({value})", held_out=True),
    F("circling.steps", "Step 1: {readings}. Step 2: {step}. Step 3: repeat step 1, then step 2, "
      "then", "{item} at {value}", held_out=True),
    F("part_circling.so_far", "So far I have {answer}. Now for the other {nouns}, wait, let me "
      "look again, it could be that the"),
    F("part_circling.first", "{answer} for certain. Then the next one, no, back to the start, then "
      "the next one, no, back to"),
    F("part_circling.rest", "One part is {answer}. Going on with the rest, I compare and compare "
      "again and", held_out=True),
)  # fmt: skip

S = StepWording
STEPS: tuple[StepWording, ...] = (
    S("read_value.asked", "the one asked about is {items}"),
    S("read_value.look", "I look at {items}"),
    S("read_value.go", "the question goes to {items}", held_out=True),
    S("ranked_value.is", "the {rank} is {items}"),
    S("ranked_value.has", "the {rank} {measure} belongs to {items}"),
    S("ranked_value.rank", "in rank, the {rank} comes out as {items}", held_out=True),
    S("ranked_name.is", "the {rank} is {items}"),
    S("ranked_name.has", "the {rank} {measure} belongs to {items}"),
    S("ranked_name.rank", "in rank, the {rank} comes out as {items}", held_out=True),
    S("sum_named.add", "I add {items}"),
    S("sum_named.asked", "the sum is over {items}"),
    S("sum_named.join", "joining {items}", held_out=True),
    S("gap_named.compare", "I compare {items}"),
    S("gap_named.between", "the gap is between {items}"),
    S("gap_named.subtract", "subtracting within {items}", held_out=True),
    S("sum_ends.are", "the two {end} are {items}"),
    S("sum_ends.take", "as the {end} two I take {items}"),
    S("sum_ends.pair", "the {end} pair is {items}", held_out=True),
    S("spread.are", "the largest and the smallest are {items}"),
    S("spread.ends", "the two extremes are {items}"),
    S("spread.top", "from top to bottom the ends are {items}", held_out=True),
    S("lead.are", "the first and the second are {items}"),
    S("lead.top", "the top two are {items}"),
    S("lead.ahead", "leading the field are {items}", held_out=True),
    S("biggest_rise.is", "the biggest rise has the ends {items}"),
    S("biggest_rise.climb", "the steepest climb links {items}"),
    S("biggest_rise.jump", "the greatest jump joins {items}", held_out=True),
    S("trend.compare", "I compare {items}"),
    S("trend.ends", "the two ends are {items}"),
    S("trend.between", "the course is between {items}", held_out=True),
    S("total.add", "I add {items}"),
    S("total.sum", "the sum is over {items}"),
    S("total.join", "joining {items}", held_out=True),
    S("largest_two.are", "the {end} come out as {items}"),
    S("largest_two.take", "as the {end} I take {items}"),
    S("largest_two.rank", "in rank, the {end} come out as {items}", held_out=True),
    S("matching_names.are", "the ones that are {condition} are {items}"),
    S("matching_names.fits", "the condition {condition} fits {items}"),
    S("matching_names.keep", "counting as {condition} I find {items}", held_out=True),
    S("matching_count.are", "the ones that are {condition} are {items}"),
    S("matching_count.fits", "the condition {condition} fits {items}"),
    S("matching_count.keep", "counting as {condition} I find {items}", held_out=True),
    S("exterior.beside", "the angle inside is {items}"),
    S("exterior.straight", "I start from {items}"),
    S("exterior.supplement", "beside the outer angle lies {items}", held_out=True),
)  # fmt: skip
JOINTS = (", so {calc}", ": {calc}", ", and {calc}")
"""How a calculation follows the step it belongs to."""
