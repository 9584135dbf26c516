"""Judges that need no model, to compare trained judges with.

Each rule takes a request and returns ``Correct``, ``Partial`` or ``Wrong``. With ``reference_mode``
``any`` one matching reference is enough. With ``all`` the references are the elements of the answer
set A, and the response R is split into its own elements: R = A is Correct, a non-empty proper
subset Partial, and anything outside A, or nothing, Wrong.

Logistic regressions on features of a response see labels of the very data that they are measured
on, of other questions, which no judge does: they are rivals and no tools.
"""

from __future__ import annotations

import math
import re
from bisect import bisect
from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from evaluation.estimate import paired_accuracies
from evaluation.intervals import Floats
from evaluation.measure import measure
from evaluation.outcomes import full_label, gather, label_set, question_numbers
from judging.files.questions import Embed
from judging.rules.quantities import is_near_any
from judging.rules.whole_words import holds, normalise, plain_numbers
from judging.tasks import get_task
from judging.tasks.truthful import TIE, A, B
from judging.types import JudgeRequest, LabelledExample, Verdict
from judging.verdicts.by_rule import RULES_JUDGE, verdict_of_rules

Label = Literal["Correct", "Partial", "Wrong"]
TASK_METRICS = ("accuracy", "kappa", "macro_f1", "ece")
RULES_NAME = "benchmark_rules"
"""Name of a benchmark's own rules among the rivals."""
VARIANT_MAJORITY = "majority_by_variant"
TASK_RIVALS = (RULES_NAME, VARIANT_MAJORITY)
"""Rivals that a judge of a task should beat: the others are measured over all rows together."""
RELATIVE_TOLERANCE = 0.05
TOKEN_F1_THRESHOLD = 0.5
"""Half of the tokens shared; a convention, not fitted to any data."""
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_NUMBER = re.compile(r"[-+]?(?:\d++\.?\d*|\.\d+)(?:e[-+]?\d+)?")
"""Its first digits are possessive: long runs of digits would be divided in every way."""
_BETWEEN_ELEMENTS = re.compile(r"[;\n，；、]|,(?!\d{3}(?!\d))|\band\b", re.IGNORECASE)


def exact_match(request: JudgeRequest) -> Label:
    """Compare elements for equality, normalised."""
    return _compare_elements(request, _equal)


def relaxed_accuracy(request: JudgeRequest) -> Label:
    """Compare numbers within 5 % of the reference, and other text for equality, normalised.

    This is ChartQA's measure (Masry et al. 2022): ``5%`` reads as 0.05. Thousands separators are
    accepted, and only zero equals a reference of zero.
    """
    return _compare_elements(request, _near)


def token_f1(request: JudgeRequest) -> Label:
    """Compare elements by the F1 of their tokens (SQuAD), which must be at least 0.5.

    White space separates tokens, so that a text in a script without it is a single token.
    """
    return _compare_elements(request, _share_tokens)


def containment(request: JudgeRequest) -> Label:
    """Look for the references in the response, as whole words and whole numbers.

    In mode ``any`` a single one is enough. In mode ``all``, all are Correct, some Partial and none
    Wrong. The rest of the response cannot be told apart from reasoning and is ignored.
    """
    references = [reference for reference in request.references if reference.strip()]
    occurs = [holds(request.response, reference) for reference in references]
    if not any(occurs):
        return "Wrong"
    return "Correct" if request.reference_mode != "all" or all(occurs) else "Partial"


def longer_response(request: JudgeRequest) -> str:
    """Prefer the response of a pair with more characters."""
    return _preferred(*(float(len(text.strip())) for text in request.answers))


def nearer_reference(request: JudgeRequest) -> str:
    """Prefer the response that shares more tokens with a reference, by F1 as SQuAD counts it."""
    return _preferred(*(nearest_f1(text, request.references) for text in request.answers))


QUICK_RULES: Mapping[str, Callable[[JudgeRequest], Label]] = {
    "exact_match": exact_match,
    "relaxed_accuracy": relaxed_accuracy,
    "token_f1": token_f1,
    "containment": containment,
}
PAIR_RULES: Mapping[str, Callable[[JudgeRequest], str]] = {
    "longer_response": longer_response,
    "nearer_reference": nearer_reference,
}


def rule_verdicts(
    rule: Callable[[JudgeRequest], str], examples: Sequence[LabelledExample]
) -> list[Verdict]:
    """Judge examples by a rule, which scores all of them and gives no posteriors."""
    return [
        Verdict(id=example.id, status="scored", label=rule(example), judge="rule")
        for example in examples
    ]


def majority_verdicts(
    examples: Sequence[LabelledExample],
    part_of: Callable[[LabelledExample], Hashable] = lambda example: None,
) -> list[Verdict]:
    """Give every example the most frequent human label of its part; no other constant beats it."""
    counts: dict[Hashable, Counter[str]] = {}
    for example in examples:
        counts.setdefault(part_of(example), Counter())[full_label(example)] += 1
    most = {part: counter.most_common(1)[0][0] for part, counter in counts.items()}
    return [
        Verdict(id=example.id, status="scored", label=most[part_of(example)], judge="majority")
        for example in examples
    ]


def verdicts_of_rules(examples: Sequence[LabelledExample]) -> list[Verdict] | None:
    """Grade examples by the rules of each one's task; ``None`` if no task has rules."""
    if not any(get_task(example.task).has_rules for example in examples):
        return None
    return [
        verdict_of_rules(example)
        if get_task(example.task).has_rules
        else Verdict(id=example.id, status="abstain", judge=RULES_JUDGE)
        for example in examples
    ]


def measure_by_task(
    examples: Sequence[LabelledExample],
    verdicts: Sequence[Verdict],
    rivals: Mapping[str, Sequence[Verdict]],
    seed: int = 0,
) -> dict[str, Any]:
    """Measure a judge on every task apart, beside the rivals of :data:`TASK_RIVALS`.

    A rival leads to ``accuracy`` and ``gain`` (the judge's accuracy minus the rival's), rows
    without a label being wrong for both, and ``decided``, the share of rows that it labels.
    """
    by_variant = majority_verdicts(examples, lambda example: (example.task, example.variant))
    beside = {**rivals, VARIANT_MAJORITY: by_variant}
    measured: dict[str, Any] = {}
    for task in sorted({example.task for example in examples}):
        rows = [index for index, example in enumerate(examples) if example.task == task]
        of_task = [examples[index] for index in rows]
        given = {name: [beside[name][i] for i in rows] for name in TASK_RIVALS if name in beside}
        mine = [verdicts[index] for index in rows]
        labels = label_set(of_task, mine, *given.values())
        judge = gather(of_task, mine, labels)
        compared = {}
        for name, of_rival in given.items():
            rival = gather(of_task, of_rival, labels)
            if rival.scored.any():
                paired = paired_accuracies(
                    judge.right.tolist(), rival.right.tolist(), judge.clusters, seed
                )
                compared[name] = {
                    "accuracy": paired["second"],
                    "gain": paired["difference"],
                    "decided": float(rival.scored.mean()),
                }
        measured[task] = {
            "n": len(rows),
            **measure(judge, TASK_METRICS, seed),
            "rivals": compared,
        }
    return measured


def parse_number(text: str) -> float | None:
    """Read a whole text as one number, a percentage as a fraction; ``None`` for any other text."""
    text = plain_numbers(text).strip().casefold()
    text = _THOUSANDS.sub("", text)
    is_percentage = text.endswith("%")
    text = text.removesuffix("%").strip()
    if not _NUMBER.fullmatch(text):
        return None
    value = float(text) / (100 if is_percentage else 1)
    return value if math.isfinite(value) else None


def nearest_f1(text: str, references: Sequence[str]) -> float:
    """Compute the largest F1 of the tokens of a text and of a reference; 0 without references.

    It is the harmonic mean of precision and recall; two empty texts have 1.
    """
    tokens, each_wanted = _tokens(text), map(_tokens, references)
    return max(
        (2 * len(tokens & w) / (len(tokens) + len(w)) if tokens or w else 1.0 for w in each_wanted),
        default=0.0,
    )


def _tokens(text: str) -> set[tuple[str, int]]:
    """Collect the tokens of a text, a repeated one with the number of its occurrence."""
    counts: Counter[str] = Counter()
    tokens = set()
    for token in normalise(text).split():
        tokens.add((token, counts[token]))
        counts[token] += 1
    return tokens


Matches = tuple[Sequence[bool], Sequence[bool]]
"""Which elements equal a reference, and which references equal an element."""


def _compare_elements(
    request: JudgeRequest, match: Callable[[Sequence[str], Sequence[str]], Matches]
) -> Label:
    """Compare the elements of the response with the references, as the module describes."""
    response = request.response.strip()
    references = [reference for reference in request.references if reference.strip()]
    if not response or not references:
        return "Wrong"
    if request.reference_mode != "all" or len(references) == 1:
        return "Correct" if match([response], references)[0][0] else "Wrong"
    # Each once: a model that gets stuck repeats an element thousands of times.
    elements = set(map(str.strip, _BETWEEN_ELEMENTS.split(response))) - {""}
    are_right, are_given = match(list(elements), references)
    if not all(are_right) or not any(are_given):
        return "Wrong"
    return "Correct" if all(are_given) else "Partial"


def _equal(elements: Sequence[str], references: Sequence[str]) -> Matches:
    given, wanted = list(map(normalise, elements)), list(map(normalise, references))
    all_given, all_wanted = set(given), set(wanted)
    return [text in all_wanted for text in given], [text in all_given for text in wanted]


def _near(elements: Sequence[str], references: Sequence[str]) -> Matches:
    """Match two numbers by their values, and texts with texts or numbers as texts."""
    given, wanted = _Values.of(elements), _Values.of(references)
    are_right = [
        text in wanted.texts
        if value is None
        else text in wanted.words or is_near_any([value], wanted.numbers, RELATIVE_TOLERANCE)
        for value, text in given.each
    ]
    are_given = [
        text in given.texts
        if value is None
        else text in given.words or is_near_any(given.around(value), [value], RELATIVE_TOLERANCE)
        for value, text in wanted.each
    ]
    return are_right, are_given


@dataclass(frozen=True)
class _Values:
    """Texts, some of them numbers, indexed so that an equal or near one is found at once."""

    each: Sequence[tuple[float | None, str]]
    """Number of each text, ``None`` where it is none, and its normalised form."""
    numbers: Sequence[float]
    """Numbers among the texts, in ascending order."""
    texts: set[str]
    words: set[str]
    """Texts that are no numbers."""

    @classmethod
    def of(cls, texts: Sequence[str]) -> _Values:
        """Read texts."""
        each = [(parse_number(text), normalise(text)) for text in texts]
        return cls(
            each,
            sorted(value for value, _ in each if value is not None),
            {text for _, text in each},
            {text for value, text in each if value is None},
        )

    def around(self, value: float) -> Sequence[float]:
        """Return the nearest numbers on both sides of a value."""
        place = bisect(self.numbers, value)
        return self.numbers[max(0, place - 1) : place + 1]


def _share_tokens(elements: Sequence[str], references: Sequence[str]) -> Matches:
    wanted = list(map(_tokens, references))
    sizes = np.array(list(map(len, wanted)))
    holding: dict[tuple[str, int], list[int]] = {}
    for index, tokens in enumerate(wanted):
        for token in tokens:
            holding.setdefault(token, []).append(index)
    places = {token: np.array(indices) for token, indices in holding.items()}
    are_right, are_given = [], np.zeros(len(wanted), bool)
    for tokens in map(_tokens, elements):
        shared_by = [places[token] for token in tokens if token in places]
        shared = (
            np.bincount(np.concatenate(shared_by), minlength=len(wanted))
            if shared_by
            else 0 * sizes
        )
        # No two empty texts: what is only punctuation stays, and blank texts are left out.
        equal = 2 * shared / (len(tokens) + sizes) >= TOKEN_F1_THRESHOLD
        are_right.append(bool(equal.any()))
        are_given |= equal
    return are_right, are_given.tolist()


def _preferred(first: float, second: float) -> str:
    if first == second:
        return TIE
    return A if first > second else B


OVERLAP, SENTENCES = "logistic_overlap", "sentence_embeddings"
"""Names of the regressions in reports."""
FOLDS = 10
STRENGTH = 0.01
"""Inverse strength of the penalty on embeddings: with a weaker one, two vectors of 384 numbers a
row would fit the labels of a few hundred rows by heart."""
_NEGATION = re.compile(r"\b(?:no|not|never|nor|none|neither|isn't|wasn't|aren't|cannot|can't)\b")
_HEDGE = re.compile(r"\b(?:or|maybe|perhaps|possibly|might|either|unclear|unknown|unsure)\b")


def regression_verdicts(
    examples: Sequence[LabelledExample], features: Floats, name: str, strength: float = 1.0
) -> list[Verdict] | None:
    """Judge every example by a regression that was fitted on the other questions' labels.

    ``features`` are ``[examples, features]``; ``name`` is that of the rival in reports.
    ``strength`` is the inverse strength of the ridge penalty: fewer rows than features need a small
    one. ``None`` with fewer than two questions or labels.
    """
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    questions = question_numbers(examples)
    num_questions = len(set(questions.tolist()))
    targets = np.array([full_label(example) for example in examples])
    if num_questions < 2 or len(set(targets.tolist())) < 2:
        return None
    folds = np.random.default_rng(0).permutation(num_questions) % min(FOLDS, num_questions)
    verdicts: dict[int, Verdict] = {}
    for fold in np.unique(folds):
        inside = folds[questions] == fold
        labels = sorted(set(targets[~inside].tolist()))
        probabilities = np.ones((int(inside.sum()), 1))
        if len(labels) > 1:
            model = make_pipeline(StandardScaler(), LogisticRegression(C=strength, max_iter=1000))
            model.fit(features[~inside], targets[~inside])
            labels = list(model.classes_)
            probabilities = np.asarray(model.predict_proba(features[inside]))
        rows = np.flatnonzero(inside).tolist()
        for row, posterior in zip(rows, probabilities.tolist(), strict=True):
            verdicts[row] = Verdict(
                id=examples[row].id,
                status="scored",
                label=labels[int(np.argmax(posterior))],
                probabilities=dict(zip(labels, posterior, strict=True)),
                judge=name,
            )
    return [verdicts[row] for row in range(len(examples))]


def overlap_verdicts(examples: Sequence[LabelledExample]) -> list[Verdict] | None:
    """Judge by word overlap, the strongest judge that reads nothing.

    Of pairs it knows by how much the first response exceeds the second in each feature.
    """
    features = []
    for example in examples:
        each = [
            np.array(overlap_features(example.model_copy(update={"responses": (response,)})))
            for response in example.responses
        ]
        features.append(each[0] if len(each) == 1 else each[0] - each[1])
    return regression_verdicts(examples, np.array(features), OVERLAP)


def overlap_features(request: JudgeRequest) -> list[float]:
    """Count what can be counted of a response and its references without understanding them."""
    response = normalise(request.response)
    references = [normalise(text) for text in request.references if text.strip()]
    tokens, asked = set(response.split()), set(normalise(request.question).split())
    wanted = [set(reference.split()) for reference in references]
    recalls = [len(tokens & words) / len(words) for words in wanted if words] or [0.0]
    occurs = [holds(request.response, text) for text in request.references if text.strip()]
    wanted_numbers = {number for words in wanted for number in map(parse_number, words)} - {None}
    numbers = set(map(parse_number, tokens)) - {None}
    reference_length = max(map(len, references), default=0)
    return [
        float(any(occurs)),
        float(np.mean(occurs or [False])),
        nearest_f1(response, references),
        max(recalls),
        float(np.mean(recalls)),
        len(tokens & asked) / max(1, len(tokens)),
        math.log((1 + len(response)) / (1 + reference_length)),
        math.log(1 + len(response)),
        float(bool(wanted_numbers) and wanted_numbers <= numbers),
        float(bool(numbers - wanted_numbers)),
        float(bool(_NEGATION.search(request.response.casefold()))),
        float(bool(_HEDGE.search(request.response.casefold()))),
        float(not response),
    ]


def sentence_verdicts(examples: Sequence[LabelledExample], embed: Embed) -> list[Verdict] | None:
    """Judge by embeddings of response and nearest reference, the small judge to try first."""
    by_row = [(each.response, each.question, *(each.references or ("",))) for each in examples]
    texts = list(dict.fromkeys(text for row in by_row for text in row))
    vector_of = dict(zip(texts, embed(texts), strict=True))
    features = []
    for row in by_row:
        response, question, *references = (vector_of[text] for text in row)
        nearest = max(references, key=lambda reference: float(reference @ response))
        similarities = [nearest @ response, question @ response, question @ nearest]
        features.append(
            np.concatenate([similarities, np.abs(nearest - response), nearest * response])
        )
    return regression_verdicts(examples, np.array(features), SENTENCES, STRENGTH)
