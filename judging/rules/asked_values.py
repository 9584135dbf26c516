"""Values that are equal to a reference, and whether they are what a question asks for."""

import re
from contextlib import suppress

from judging.rules.mathematics import answer_of, same_mathematics
from judging.rules.mathematics_reading import UnreadError, notation, split_outside
from judging.rules.quantities import Unit, has_two_units, parse_unit

_SYMBOL = re.compile(r"(?<![A-Za-z\\'’])(?<!\d )(?!I\b|[Aa]\s+[A-Za-z]{2})[A-Za-z](?![A-Za-z])")
"""A letter of its own, but no unit, article or "I"."""
_ASKING = re.compile(
    r"(?i:\b(?:what|which|find|determine|calculate|compute|evaluate|give|state|solve|how)\b)"
    r"|求|计算|问"
)
"""What stands before the part of a question that says what it asks for."""
_TO_SOLVE = re.compile(r"(?i:\b(?:solv\w+|solutions?|roots?|zeros?)\b)|解|根")
"""Asks for the values of a symbol that need not stand alone."""
_FORM = re.compile(
    r"(?i:\b(?:(?<!or )(?:factor|expand)\w*\b(?! or )|round(?:ed|ing)?|rationali\w+|lowest terms"
    r"|binary|in base|scientific notation|complet\w+ the square|(?:as|to|into|in) (?:an? )?"
    r"(?:\w+ )?(?:fractions?|decimals?|percent\w*|products?|number))\b)"
    r"|因式|分解|展开|约分|科学记数|小数|分数"
)
"""Asks for one form: "Factor x^2 - 1" is not answered by its value, "Expand or factor" is."""
_SIMPLER = re.compile(r"(?i:\b(?:simpl(?:if\w+|est)|reduc\w+))|化简")
"""Asks for an expression without common factors and parts that could be joined."""
_PART = re.compile(r"\\?[a-z]+|\(", re.IGNORECASE)
"""A symbol, a function or a bracket in one notation."""
_IN_UNIT = re.compile(r"(?i:\b(?:how many|in|to|into)\s+([a-z]+))")
"""Names the unit that is asked for: "Convert 3 days to hours"."""
_SCALES = {
    "%": re.compile(r"(?i:%|\bpercent)|百分"),
    **{word: re.compile(rf"(?i:\b{word}s?\b)") for word in ("thousand", "million", "billion")},
}
"""What a question may say of a number that has no such mark: "in millions of dollars"."""
_NUMBER = re.compile(r"[-+]?[\d.,]+")
_PART_NUMBER = re.compile(r"-?[\d.]+")
_BARE_DECIMAL = re.compile(r"[-+]?\d+\.\d+")
_BARE_FRACTION = re.compile(r"\d+/\d+")
_FORMULA = re.compile(
    r"\\[A-Za-z]|\d%?\s?[+*=<>^×÷·]|[A-Za-z]\s?[=<>^]|\d%?\s[-/]\s\d|\$[A-Za-z(][^$\n]{0,99}\$"
)
_AMOUNT = re.compile(
    r"(?i:\b(?:(?:fraction|share|percent(?:age)?|proportion|probability|chance|ratio|rate|slope|value"
    r"|radius|diameter|perimeter|circumference|median|maximum|minimum"
    r"|sum|total|average|length|height|width|depth|weight|mass|area|volume|distance|speed|price|cost"
    r"|amount|population|revenue|income|profit|budget|salary|worth|age)s?|(?:part|portion|half) of"
    r"|comput\w+|calculat\w+|evaluat\w+|simplif\w+|solv\w+|convert\w*|[xyz]|how many(?! of)"
    r"|plus|minus|times|divided|multiplied|squared?|cubed?|root|power|twice|remainder|difference"
    r"|how (?:much|long|far|tall|old|big|heavy|high|deep|wide|large|fast|expensive))\b)"
    r"|比(?![分赛])|率|求|计算|多少|多[长高远重大]"
)
"""Asks for a number; else 3/4 may be a metre in music, 9/11 a day, 35 mm a film, 5.0 a version."""
_OF_TWO = re.compile(
    r"(?i:\b(?:scor(?:es?|ing)|rat(?:ed|ings?)|record|signature|dates?|odds|blood pressure)\b)"
    r"|比分|得分|血压"
)
"""Asks for two numbers that are no amount, as a score of 3-1, though "total" may stand beside."""
_VERSION = re.compile(r"(?i:\b(?:versions?|releases?|editions?)\b)|版")
"""Asks for a name that may end in ".0"."""
_ZEROS = re.compile(r"(?<=\d)\.0+(?!\d)")
_PLAIN_NUMBER = re.compile(r"(?:[a-z]=)?[-+]?[$€£¥]?\d[\d,]*(?:\.\d+)?(?:%|[a-z]*)")
_COMPUTATION = re.compile(
    r"(?!-?\d(?:\.\d+)?(?:\\times|\\cdot|[×·⋅*])10\^)"
    r".*?(?:[\d)}][-+*/×·⋅÷^][\d({\\]|\\(?:times|cdot|div|[dtc]?frac|sqrt)(?![a-z]))"
)
"""Two numbers and what to do with them, but no power of ten."""
_FRACTION = re.compile(r"\\frac\{?(\d+)\}?\{?(\d+)\}?")
_QUOTIENT = re.compile(r"(?:^|[(\[⟨,;])-?(\d+)/(\d+)(?=[)\]⟩,;a-z%]|$)")
"""A fraction that is a whole part of an answer, in one notation."""
_OF_NUMBERS = re.compile(
    r"(?<![\w^.}])\d+(?:\.\d+)?(?:[-+]\d+(?:\.\d+)?(?![\w^.\\(])|\\(?:cdot|times)\d+(?![\d^]))"
    r"|(?<![\d.])(?!10\^)\d+\^(?:\d|\{\d+\})|\d\.\d+/\d|\d/\d+\.\d"
)
"""A sum, a product, a power or a quotient of numbers."""
_COEFFICIENT = re.compile(r"^(?:[\d.]+|\\frac\{\d+\}\{\d+\}|\d+/\d+(?![\w^])|\\cdot|\\times)+")
_LOSS = re.compile(
    r"(?i:\b(?:loss\w*|lost|lose|decreas\w*|declin\w*|drop\w*|f[ae]ll\w*|reduc\w*|deficit|debts?|below"
    r"|chang\w*|differ\w*|lower|short\w*|fewer|less|deep\w*|depth|under|elevation|altitude|shr[aiu]nk"
    r"|bce?|sav\w+|ago|earlier|cold\w*|ow[ei]\w*|overdr\w+)\b)|下降|减少|亏|降低|变化|差|矮|低|深|少多|海拔"
)
"""Gives a number the sign that an answer may leave out."""
_FOR_ONE = re.compile(
    r"(?i:\b(?:find|give|name|state|write|provide|construct)(?: down)? (?:an?|any|one|some)\b"
    r"(?! (?:polynomial|expression|formula|equation|function)\b)"
    r"|\bexample|\b(?:eigen|normal )vector|\bdirection|\bantiderivative|\bparametri[sz]"
    r"|\bbas[ei]s\b|\bpolar\b|\bprimitive root|\bmod(?:ulo)?\b|\bwith (?:roots|zeros))"
    r"|\\p?mod|模"
    r"|[写举找求出]一[个种条]|举例|任意|(?:方向|法|特征)向量"
)
"""Asks for one of many right values, of which the reference is another: 12 is 5 modulo 7."""
_MONOTONE = re.compile(r"(?i:\b(?:increas|decreas|monoton|concav|convex))|单调")
"""Asks for intervals that may have their ends or not: [1, 2] and (1, 2)."""
_INTEGRAL = re.compile(r"(?i:\bintegra(?:l|te)\b)|\\int|∫|积分")
"""Asks for an expression that may have any constant, unless it has no symbols."""
_DEGREES = re.compile(r"(?:\^\{?\\circ\}?|°|degrees?)\W*$", re.IGNORECASE)
_ANGLE = re.compile(r"(?i:\b(?:angles?|phase|rotat\w+|theta|arg\w*|(?:arc)?(?:sin|cos|tan))\b)|角")
_HEAT = re.compile(r"(?i:temperature|\b(?:hot|cold|warm|cool|boil|melt|freez)\w*)|温|[热冷沸]|熔点")
"""Asks for a temperature, whose scale may be either of two."""
_LONGEST = 1_000
"""Characters at the end of a question that are looked through for the answer itself."""


def same_as_asked(reference: str, answer: str, question: str) -> bool | None:
    """Tell whether an answer has a reference's value, as :func:`same_mathematics` does.

    Returns:
        ``None`` also where the question may ask for more than the value: a name, a form, a unit,
        another spelling of what it states itself (``2x + 3x``, 5 km); where a computation stands
        for its result, or a loss has no sign; where the question says what the numbers count
        (percent, millions) or asks for one of many; and where they may be names, dates or scores:
        version 3.1 and 3.10, 6/8 and 3/4 time, 9/11 and 11/9, a record of 10/2 and 5.
    """
    is_same = same_mathematics(reference, answer)
    given, wanted = bare(answer), bare(reference)
    if is_same is None or given == wanted:
        return is_same
    parts = [sorted(_PART_NUMBER.findall(text)) for text in (wanted, given)]
    if parts[0] != parts[1] and any(map(has_two_units, (reference, answer))):
        return None
    is_formula = "\\" in reference or _FORMULA.search(question)
    asks_amount = is_formula or (_AMOUNT.search(question) and not _OF_TWO.search(question))
    wanted_form, given_form = _form(reference), _form(answer)
    are_numbers = all(answer_of(text).is_number for text in (reference, answer))
    if is_same is False:
        is_signed = given.replace("-", "") == wanted.replace("-", "")
        may_be_right = (
            (len(parts[0]) > 1 and parts[0] == parts[1] and not asks_amount)  # in another order
            or (is_signed and (_LOSS.search(question) or not asks_amount))
            # 8 may be short for a score of 8/10.
            or (("/" in wanted_form) != ("/" in given_form) and not asks_amount)
            or _FOR_ONE.search(question)
            or ("," in wanted and parts[0] == parts[1] and _MONOTONE.search(question))
            or (_INTEGRAL.search(question) and not are_numbers)
            or _differ_in_scale(reference, answer, question)
            or _differ_in_turns(reference, answer, question)
        )
        return None if may_be_right else False
    is_repeated = not _NUMBER.fullmatch(given_form) and _stands_in(given_form, question)
    last = notation(answer).split("=")[-1]
    is_computed = _PLAIN_NUMBER.fullmatch(wanted) and _COMPUTATION.match(last)
    is_fraction = _QUOTIENT.match(_form(last))  # a result, or unfinished as 10/2 is
    forms = {_ZEROS.sub("", form) for form in (wanted_form, given_form)}
    is_respelled = len(forms) == 1 and not _VERSION.search(question)
    may_be_name = (
        all(map(_BARE_FRACTION.fullmatch, (wanted, given)))
        or all(map(_BARE_DECIMAL.fullmatch, (wanted, given)))
        or (are_numbers and wanted_form != given_form and not (asks_amount or is_respelled))
    )
    has_more_parts = len(_PART.findall(given_form)) > len(_PART.findall(wanted_form))
    is_reducible = _BARE_FRACTION.fullmatch(wanted_form) or has_more_parts
    asks_form = _FORM.search(question) or (is_reducible and _SIMPLER.search(question))
    is_other_form = asks_form and wanted_form != given_form
    is_open = (
        (is_repeated and wanted_form != given_form)
        or (is_computed and not is_fraction)
        or (_is_unfinished(answer) and not _is_unfinished(reference))
        or (are_numbers and _is_unfinished(reference))  # such as a size, 2 × 4
        or may_be_name
        or is_other_form
        or _is_in_other_unit(reference, answer, question)
    )
    return None if is_open or not is_asked(reference, answer, question) else True


def _form(text: str) -> str:
    """Return a text in one notation, if it has one, without what only groups."""
    with suppress(UnreadError):
        text = notation(text)
    return re.sub(r"[{}]|\\(?:cdot|times)(?![a-z])", "", _FRACTION.sub(r"\1/\2", bare(text)))


def _stands_in(form: str, question: str) -> bool:
    """Tell whether a question holds a text in one notation, its parts in any order."""
    asked, marks = _form(question[-_LONGEST:]), sorted(form)
    last = len(asked) - len(form)
    return any(sorted(asked[at : at + len(form)]) == marks for at in range(last + 1))


def _differ_in_scale(reference: str, answer: str, question: str) -> bool:
    """Tell whether two numbers may be equal in the percent or millions that a question asks for."""
    scales = [scale for scale, named in _SCALES.items() if named.search(question)]
    pairs = [(f"{reference} {scale}", answer) for scale in scales]
    pairs += [(reference, f"{answer} {scale}") for scale in scales]
    return any(same_mathematics(*pair) for pair in pairs)


def _differ_in_turns(reference: str, answer: str, question: str) -> bool:
    """Tell whether two angles may be one, such as -90° and 270°, or degrees be of two scales."""
    one, other = notation(reference), notation(answer)
    pairs = [
        (f"{turn}+{a}", b) for turn in ("360", r"2\pi") for a, b in ((one, other), (other, one))
    ]
    are_degrees = all(map(_DEGREES.search, (reference, answer)))
    are_angles = are_degrees or _ANGLE.search(question)
    is_turned = are_angles and any(same_mathematics(*pair) for pair in pairs)
    return bool(is_turned or (are_degrees and _HEAT.search(question)))


def _is_unfinished(text: str) -> bool:
    r"""Tell whether parts are not worked out: ``1 + 2``, ``6/2``, ``3x + 2x``, ``3^2 \pi``."""
    last = notation(text).split("=")[-1]
    terms = [_COEFFICIENT.sub("", term) for term in split_outside(last, "[-+]") if term]
    is_one = len(split_outside(last, "[,;]")) == 1
    is_divisible = any(int(a) % int(b) == 0 for a, b in _QUOTIENT.findall(_form(last)) if int(b))
    is_repeated = is_one and len(set(terms)) < len(terms)
    return is_repeated or is_divisible or _OF_NUMBERS.search(last) is not None


def _is_in_other_unit(reference: str, answer: str, question: str) -> bool:
    """Tell whether an answer is in another unit than its reference and the question name."""
    units = [_unit(text) for text in (reference, answer)]
    asked = [parse_unit(word).unit for word in _IN_UNIT.findall(question.lower())]
    return None not in units and units[0] != units[1] and units[0] in asked


def _unit(text: str) -> Unit | None:
    answer = answer_of(text)
    return parse_unit(answer.marks[0]).unit if answer.kind == "value" else None


def bare(text: str) -> str:
    """Return a text without spaces and the marks of formulas."""
    return re.sub(r"[\s$]|\\[()\[\]]", "", text)


def is_asked(reference: str, answer: str, question: str) -> bool:
    """Tell whether a name that one of two equal answers has and the other lacks is the one asked.

    ``y = 5`` beside 5 is another answer where the question asks for x, and 5 beside ``y = 5`` where
    it asks for a line; ``2x = 6`` leaves x to be found. A name of the answer's own counts where the
    question has no symbols.
    """
    wanted, given = _name(reference), _name(answer)
    if wanted and answer_of(answer).kind == "equation":
        return False
    if not wanted == "" != given and not given == "" != wanted:
        return True
    name = wanted or given
    if not _SYMBOL.search(question):
        return not wanted
    *_, asking = _ASKING.split(question)
    letters = {symbol[0] for symbol in _SYMBOL.finditer(asking)} - {name[2:-1].strip("( ")}
    bare = rf"(?<![\w\\^+*/({{=<>-])(?<![-+*/^=<>] ){re.escape(name)}(?![\w^(]|\$?\s?[-+*/^=<>])"
    return letters == {name[0]} and bool(_TO_SOLVE.search(question) or re.search(bare, asking))


def _name(text: str) -> str:
    answer = answer_of(text)
    return answer.marks[0] if answer.kind == "named" and len(answer.items) == 1 else answer.name
