"""Wordings of questions about scenes: one row of the table per wording.

Slots: ``noun``, ``nouns``, ``measure``, ``measures`` (from the kind of scene and the column), ``a``
and ``b`` (items), ``rank``, ``end``, ``condition`` (from the problem).
"""

from __future__ import annotations

from dataclasses import dataclass

from data_prep.synthetic.wording import Wording


@dataclass(frozen=True)
class ChartQuestion(Wording):
    """One wording of an operation's question. The id reads operation, name."""

    kind: str = ""
    """The only kind of scene that this wording suits; empty: all."""

    @property
    def operation(self) -> str:
        """Return the operation that the question asks for."""
        return self.id.partition(".")[0]


Q = ChartQuestion
QUESTIONS: tuple[ChartQuestion, ...] = (
    Q("read_value.what", "What is the {measure} of {a}?"),
    Q("read_value.read", "Read off the {measure} of {a}."),
    Q("read_value.state", "State the {measure} that belongs to {a}.", held_out=True),
    Q("ranked_value.what", "What is the {rank} {measure}?"),
    Q("ranked_value.give", "Give the {rank} {measure} in the picture."),
    Q("ranked_value.come", "To what does the {rank} {measure} come?", held_out=True),
    Q("ranked_name.which", "Which {noun} has the {rank} {measure}?"),
    Q("ranked_name.name", "Name the {noun} with the {rank} {measure}."),
    Q("ranked_name.for", "For which {noun} is the {measure} the {rank}?", held_out=True),
    Q("sum_named.what", "What is the sum of the {measures} of {a} and {b}?"),
    Q("sum_named.together", "Together, what is the {measure} of {a} and {b}?"),
    Q("sum_named.add", "Add the {measures} of {a} and {b}. What do you get?", held_out=True),
    Q("gap_named.much", "By how much do the {measures} of {a} and {b} differ?"),
    Q("gap_named.difference", "What is the difference between the {measures} of {a} and {b}?"),
    Q("gap_named.apart", "How far apart are the {measures} of {a} and {b}?", held_out=True),
    Q("sum_ends.what", "What is the sum of the two {end} {measures}?"),
    Q("sum_ends.add", "Add the two {end} {measures}. What do you get?"),
    Q("sum_ends.make", "How much do the two {end} {measures} make together?", held_out=True),
    Q("spread.what", "What is the difference between the largest and the smallest {measure}?"),
    Q("spread.much", "By how much does the largest {measure} exceed the smallest?"),
    Q("spread.apart", "How far apart are the largest and the smallest {measure}?", held_out=True),
    Q("lead.far", "How far is the largest {measure} ahead of the second largest?"),
    Q("lead.much", "By how much does the largest {measure} exceed the second largest?"),
    Q("lead.margin", "What margin separates the largest {measure} from the runner-up?",
      held_out=True),
    Q("biggest_rise.large", "How large is the biggest rise from one point to the next?"),
    Q("biggest_rise.much", "By how much does the line climb in its steepest step?"),
    Q("biggest_rise.gain", "What is the greatest gain between neighbouring points?", held_out=True),
    Q("trend.does", "Does the {measure} rise or fall from {a} to {b}?"),
    Q("trend.going", "Going from {a} to {b}, does the line end higher or lower: rise or fall?"),
    Q("trend.direction", "Between {a} and {b}, is there a rise or a fall overall?", held_out=True),
    Q("total.what", "What is the total of all {measures}?"),
    Q("total.add", "Add up all {measures}. What is the result?"),
    Q("total.perimeter", "What is the perimeter of the figure?", kind="polygon"),
    Q("total.shapes", "How many shapes are there altogether?", kind="counting"),
    Q("total.every", "What do the {measures} of all {nouns} add up to?", held_out=True),
    Q("largest_two.which", "Which two {nouns} have the {end} {measures}?"),
    Q("largest_two.name", "Name the two {nouns} with the {end} {measures}."),
    Q("largest_two.for", "For which two {nouns} are the {measures} the {end}?", held_out=True),
    Q("matching_names.for", "For which {nouns} is the {measure} {condition}?"),
    Q("matching_names.list", "List the {nouns} whose {measure} is {condition}."),
    Q("matching_names.pick", "Pick out each of the {nouns} where the {measure} is {condition}.",
      held_out=True),
    Q("matching_count.for", "For how many {nouns} is the {measure} {condition}?"),
    Q("matching_count.how", "How many {nouns} are there whose {measure} is {condition}?"),
    Q("matching_count.number", "Count the {nouns} where the {measure} is {condition}.",
      held_out=True),
    Q("exterior.what", "What is the exterior angle next to {a}, in degrees?"),
    Q("exterior.extend", "One side at {a} is extended. How many degrees is the outer angle?"),
    Q("exterior.beside", "How large is the exterior angle beside {a}, in degrees?", held_out=True),
)  # fmt: skip
