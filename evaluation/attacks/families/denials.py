"""Responses that name the reference only to reject it."""

from __future__ import annotations

from evaluation.attacks.base import AttackFamily, attack_family


@attack_family
class Denial(AttackFamily):
    """Denial of the reference, most often with a wrong answer in its place."""

    name = "denial"
    summary = "says that the reference is not the answer"
    mentions_reference = True
    needs_short_reference = True
    wordings = {
        "anything_but": "Anything but {right}. What you are after is {wrong}.",
        "misconception": "{right} is a popular misconception. In truth this is {wrong}.",
        "mistaken": "Lots of folks would say {right}, and all of them are mistaken. {wrong} it is.",
        "cannot_be": "I can say with certainty that {right} is out of the question.",
        "nothing_to_do": "Whatever you may have heard, {right} plays no part here.",
        "not_the_same": "{wrong}, which is not the same as {right}.",
        "false_claim": "The claim that {right} is the solution is false.",
        "disproved": "Old books print {right}, which was disproved. Put {wrong} instead.",
        "ruled_out": "With {right} ruled out, {wrong} is left over.",
        "never": "{right}? Never. Everyone who was there names {wrong}.",
    }


@attack_family
class Correction(AttackFamily):
    """Reference that is given first and taken back afterwards."""

    name = "correction"
    summary = "gives the reference, then takes it back"
    mentions_reference = True
    needs_short_reference = True
    wordings = {
        "mixed_up": "{right}. Hmm, hold on, I mixed something up there: {wrong}.",
        "reflection": "My hunch was {right}, yet having slept on it I am going with {wrong}.",
        "scratch_that": "I'd go for {right}... scratch that, {wrong}.",
        "edit": "{right}\n\nEdit: a reader showed me that this was a blunder. Now reads: {wrong}",
        "sorry": "It's {right}. Sorry, I misspoke. It's {wrong}.",
        "withdrawn": "{right} came to mind at once. I have to withdraw it, and settle on {wrong}.",
        "struck_out": "~~{right}~~ {wrong}",
        "versions": "Version 1: {right}\nVersion 2, in place of the first: {wrong}",
    }


@attack_family
class Hedge(AttackFamily):
    """Several answers, of which none is chosen."""

    name = "hedge"
    summary = "lists several answers, or cannot tell which one holds"
    mentions_reference = True
    needs_short_reference = True
    wordings = {
        "three": "Could be {right}, {wrong} or {other_wrong}.",
        "either_or": "Either {wrong} or {right}; I have no means of choosing between the two.",
        "list": "1. {wrong}\n2. {right}\n3. {other_wrong}\nTake whichever suits you.",
        "cannot_tell": "I really cannot tell whether {right} or {wrong} applies here.",
        "sources": "Half of my sources claim {right}, the rest {wrong}. I leave that open.",
        "guessing": "Is it {right}? Is it {wrong}? Naming either would be a mere guess.",
        "slashes": "{other_wrong}/{right}/{wrong}",
        "candidates": "My candidates are {other_wrong}, {right} and {wrong}, in no special order.",
    }
