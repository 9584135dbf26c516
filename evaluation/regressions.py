"""Logistic regressions on features of a response, which reports set beside a judge.

They see labels of the very data that they are measured on, of other questions, which no judge does:
they are rivals and no tools.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

import numpy as np

from evaluation.baselines import nearest_f1, parse_number
from evaluation.intervals import Floats
from evaluation.outcomes import full_label, question_numbers
from judging.files.questions import Embed
from judging.rules.whole_words import holds, normalise
from judging.types import JudgeRequest, LabelledExample, Verdict

OVERLAP, SENTENCES = "logistic_overlap", "sentence_embeddings"
"""Names of the regressions in reports."""
FOLDS = 10
STRENGTH = 0.01
"""Two vectors of 384 numbers a row would fit the labels of a few hundred rows by heart."""
_NEGATION = re.compile(r"\b(?:no|not|never|nor|none|neither|isn't|wasn't|aren't|cannot|can't)\b")
_HEDGE = re.compile(r"\b(?:or|maybe|perhaps|possibly|might|either|unclear|unknown|unsure)\b")


def regression_verdicts(
    examples: Sequence[LabelledExample], features: Floats, name: str, strength: float = 1.0
) -> list[Verdict] | None:
    """Judge every example by a regression that was fitted on the other questions' labels.

    The folds hold whole questions. ``features`` are ``[examples, features]``; ``name`` is that of
    the rival in reports. ``strength`` is the inverse strength of the ridge penalty: fewer rows than
    features need a small one. ``None`` with fewer than two questions or labels.
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
    """Judge by embeddings of the response and of the nearest reference.

    It is the strongest small judge that others would try first. ``None`` with fewer than two
    questions or labels.
    """
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
