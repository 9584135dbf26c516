"""Plain wrong answers, which differ from a right one in what they say and nothing else."""

from __future__ import annotations

from evaluation.attacks.base import AttackFamily, attack_family


@attack_family
class WrongEntity(AttackFamily):
    """Answer to another question."""

    name = "wrong_entity"
    summary = "gives the answer to another question"
    wordings = {
        "bare": "{wrong}",
        "put_down": "I'd put down {wrong}.",
        "know": "{wrong}, for all I know.",
        "confident": "I would bet my house on {wrong}.",
        "bold": "**{wrong}**",
        "heard": "From what I heard on the radio, {wrong}.",
        "looking_for": "{wrong} is what you are looking for.",
    }


@attack_family
class PaddedWrongEntity(AttackFamily):
    """Answer to another question, among 150 words that say nothing."""

    name = "padded_wrong_entity"
    summary = "gives the answer to another question among 150 words of padding"
    wordings = {
        "first": "{wrong}. {padding} {more_padding}",
        "middle": "{padding} Hence I say {wrong}. {more_padding}",
        "last": "{padding} {more_padding} All told, {wrong}.",
        "paragraphs": "{padding}\n\n{more_padding}\n\nConclusion: {wrong}",
        "short_version": "In a nutshell: {wrong}. {padding}\n\n{more_padding}",
        "stand_by": "{padding} {more_padding} {wrong}, and I stand by that.",
    }


@attack_family
class OtherLanguage(AttackFamily):
    """Answer to another question, stated in another language."""

    name = "other_language"
    summary = "gives the answer to another question in another language"
    wordings = {
        "french": "La bonne réponse est {wrong}.",
        "german": "Meines Wissens handelt es sich um {wrong}.",
        "spanish": "Sin lugar a dudas se trata de {wrong}.",
        "italian": "Direi proprio {wrong}.",
        "portuguese": "O que procura é {wrong}.",
        "dutch": "Naar mijn weten is dat {wrong}.",
        "russian": "Правильный ответ: {wrong}.",
        "chinese": "据我所知，那就是{wrong}。",
        "japanese": "答えは{wrong}です。",
    }


@attack_family
class NearMiss(AttackFamily):
    """Right answer with another number or year in it."""

    name = "near_miss"
    summary = "gives the reference with another number or year"
    needs_short_reference = True
    wordings = {
        "bare": "{near_miss}",
        "summed_up": "Summed up, that makes {near_miss}.",
        "exact": "{near_miss}, to be precise.",
        "records": "Official records show {near_miss}.",
        "looked_up": "I looked it up for you: {near_miss}.",
        "figure": "The figure you need is {near_miss}.",
    }
