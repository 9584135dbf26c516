"""What an hour of labelling buys, with rows picked for people in three ways.

python -m experiments labelling_hour embedded-qs --data test.jsonl --data cal.jsonl \
--picture hour.png --out runs/labelling_hour.json

Made annotators label rows that real people labelled: they give people's label, but for a share of
errors. Each repetition divides the questions anew: two thirds are the pool, the others say what the
judge gained, by people's labels without errors. After every round the judge learns from all labels
so far and, where rows are picked by doubt, picks the next.

Training a judge thousands of times takes too long. What learns here is its linearisation: to first
order, a step of training moves a judge's log-odds along their gradient by the adapter's weights. So
a logistic regression on that gradient, at the tokens of the response and in the upper half of the
layers, starts as the judge and goes on as its training begins. Its penalty is chosen by
cross-validation over questions; the largest leaves the judge nearly as it is. So compare the ways
to pick rows; the numbers of labels are not those of real training.

The second part asks what the same labels say of the judge's accuracy on all rows, as
``custos review --estimate`` corrects it. Questions are drawn anew, to see how often the interval
holds the truth.
"""

from __future__ import annotations

import argparse
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from scipy.optimize import isotonic_regression
from scipy.special import expit, logit

from evaluation.correction.label_plan import sampling_probabilities, systematic_sample
from evaluation.correction.scores import corrected_rate
from evaluation.intervals import Floats, Ints, Mask
from evaluation.outcomes import full_label, question_numbers
from evaluation.report.evaluate import grade_examples
from evaluation.report.markdown import markdown_table
from evaluation.report.plots import figure_file
from judging.errors import CustosError
from judging.files.records import read_records, write_json
from judging.judge import Judge
from judging.judge.card import encoder_of, read_card, run_folder
from judging.types import LabelledExample

SIZES = (25, 50, 100, 150, 200, 300, 400, 600)
"""Labels after each round."""
PICKS = ("random", "doubtful", "drawn")
"""Ways to pick rows: by chance, those of which the judge is least sure, and those that
``custos review --rows`` draws."""
PER_HOUR = 180
"""Labels that a person gives in an hour, one in 20 seconds."""
COMPONENTS, SKETCH = 64, 4096
PENALTIES = (1.0, 3.0, 10.0, 30.0, 300.0)
FOLDS, POOL = 4, 2 / 3


@dataclass(frozen=True)
class Rows:
    """Rows with what a judge and people say of them."""

    odds: Floats
    """The judge's log-odds of the best label, ``[N]``."""
    features: Floats
    """What moves them, ``[N, D]``."""
    right: Mask
    """Whether people gave the best label, ``[N]``."""
    questions: Ints

    def __getitem__(self, index: Any) -> Rows:
        """Select rows."""
        return Rows(
            self.odds[index], self.features[index], self.right[index], self.questions[index]
        )


def judged_rows(source: str, examples: Sequence[LabelledExample]) -> Rows:
    """Grade rows with a judge that has an adapter, and compute what moves each verdict."""
    verdicts = grade_examples(Judge.load(source), examples)
    best = [next(iter(verdict.probabilities), "") for verdict in verdicts]
    chances = [v.probabilities.get(name, np.nan) for v, name in zip(verdicts, best, strict=True)]
    right = [full_label(example) == name for example, name in zip(examples, best, strict=True)]
    if np.isnan(chances).any():
        raise CustosError("every row needs a label of the judge")
    gradients = log_odds_gradients(source, examples)
    centred = gradients - gradients.mean(axis=0)
    left, size, _ = np.linalg.svd(centred, full_matrices=False)
    features = (left * size)[:, :COMPONENTS] * np.sqrt(len(examples)) / size[0]
    odds = logit(np.clip(chances, 0.001, 0.999))
    return Rows(odds, features, np.array(right), question_numbers(examples))


def log_odds_gradients(source: str, examples: Sequence[LabelledExample]) -> Floats:
    """Compute a sketch of the gradient of every row's log-odds, ``[N, SKETCH]``.

    By the weights of the judge's adapter in the upper half of the layers. A sketch adds up the
    parts of a long vector with random signs, and keeps inner products on average.
    """
    import torch

    from judging.models.adapters import load_adapter
    from judging.models.backbones import load_backbone
    from judging.scoring.ask_model import encode_groups
    from judging.scoring.packing import lay_out, trunk_length
    from judging.scoring.tree_batch import TreeModel, label_logprobs

    folder = run_folder(source)
    if folder is None:
        raise CustosError(f"{source}: expected a run folder or a shipped judge")
    card = read_card(folder)
    backbone = load_backbone(card.backbone, device="cpu", version=card.backbone_version)
    adapted = load_adapter(backbone.model, folder, trainable=True).eval()
    half = backbone.model.config.get_text_config().num_hidden_layers // 2
    weights = []
    for name, weight in adapted.named_parameters():
        layers = re.findall(r"layers\.(\d+)\.", name)
        weight.requires_grad_(weight.requires_grad and int(layers[-1]) >= half)
        weights += [weight] if weight.requires_grad else []
    size = sum(weight.numel() for weight in weights)
    places = torch.Generator().manual_seed(0)
    bins = torch.randint(SKETCH, (size,), generator=places)
    signs = torch.randint(2, (size,), generator=places) * 2.0 - 1
    model, encoder = TreeModel(adapted), encoder_of(backbone, card)
    sketches = np.zeros((len(examples), SKETCH))
    requests = {index: example.request() for index, example in enumerate(examples)}
    for group in encode_groups(requests, encoder):
        tree = encoder.tree(group.task.labels(group.rubric))
        alike = defaultdict(list)
        for prompt in group.prompts:
            alike[examples[prompt.request_index].question].append(prompt)
        for prompts in alike.values():
            ids = [(*p.prompt.prefix_ids, *p.prompt.suffix_ids) for p in prompts]
            trunk = trunk_length(ids) or len(group.prompts[0].prompt.prefix_ids)
            with torch.autocast(model.device.type, dtype=torch.bfloat16):
                with torch.no_grad():
                    prefix = model.prefill(torch.tensor(ids[0][:trunk]))
                for prompt, tokens in zip(prompts, ids, strict=True):
                    rest = replace(
                        prompt.prompt, prefix_ids=tokens[:trunk], suffix_ids=tokens[trunk:]
                    )
                    batch = lay_out(model, [rest], [tree], backbone.tokenizer.pad_token_id)
                    scores = label_logprobs(model(batch, prefix), tree)[0]
                    odds = scores[0] - scores[1:].logsumexp(0)
                    moved = torch.autograd.grad(odds, weights)
                    flat = torch.cat([part.float().flatten() for part in moved]) * signs
                    sketch = torch.zeros(SKETCH).index_add_(0, bins, flat)
                    sketches[prompt.request_index] = sketch.numpy()
    return sketches


def learnt(rows: Rows, labels: Mask, penalty: float) -> Callable[[Rows], Floats]:
    """Fit log-odds that start as the judge's; return how they are computed of rows."""

    def design(of: Rows) -> Floats:
        return np.column_stack([of.odds, np.ones(len(of.odds)), of.features])

    inputs = design(rows)
    start = np.eye(1, inputs.shape[1])[0]  # the judge's own log-odds, and nothing else
    weights = start.copy()
    for _ in range(12):
        chance = expit(inputs @ weights)
        slope = inputs.T @ (chance - labels) + penalty * (weights - start)
        bend = (inputs.T * (chance * (1 - chance))) @ inputs + penalty * np.eye(len(start))
        step = np.linalg.solve(bend, slope)
        weights -= step
        if np.abs(step).max() < 1e-4:
            break
    return lambda of: np.asarray(design(of) @ weights)


def learnt_best(rows: Rows, labels: Mask) -> Callable[[Rows], Floats]:
    """Fit as :func:`learnt`, with the penalty that predicts labels on other questions best."""
    fold = rows.questions % FOLDS
    losses = np.zeros(len(PENALTIES))
    for number, penalty in enumerate(PENALTIES):
        for part in np.unique(fold):
            held = fold == part
            odds = learnt(rows[~held], labels[~held], penalty)(rows[held])
            losses[number] += np.logaddexp(0, np.where(labels[held], -odds, odds)).sum()
    return learnt(rows, labels, PENALTIES[int(losses.argmin())])


def pick(how: str, odds: Floats, count: int, rng: np.random.Generator) -> tuple[Ints, Floats]:
    """Pick rows by the judge's log-odds; return them and the probability of each row, ``[N]``."""
    if count > len(odds):
        raise CustosError(
            f"{count} rows are to be picked, and {len(odds)} are there; give more rows"
        )
    even = np.full(len(odds), count / len(odds))
    if how == "random":
        return rng.choice(len(odds), count, replace=False), even
    if how == "doubtful":
        return np.argsort(np.abs(odds), kind="stable")[:count], even
    confidence = expit(np.abs(odds))
    chances = sampling_probabilities(confidence, np.zeros(len(odds), bool), count)
    return systematic_sample(chances, confidence[:, None], rng), chances


def rounds(rows: Rows, how: str, error: float, rng: np.random.Generator) -> Floats:
    """Label rows round by round; return the agreement, first without labels.

    It is the judge's agreement on all rows and what it gained on the questions that are no part of
    the pool, so that luck with questions cancels.
    """
    names = rng.permutation(np.unique(rows.questions))
    in_pool = np.isin(rows.questions, names[: round(POOL * len(names))])
    pool, others = rows[in_pool], rows[~in_pool]
    said = pool.right ^ (rng.random(len(pool.right)) < error)
    is_labelled = np.zeros(len(said), bool)
    judge = learnt(pool[:0], said[:0], 1.0)
    agreement = [float(((judge(others) > 0) == others.right).mean())]
    for size in SIZES:
        left = np.flatnonzero(~is_labelled)
        picked, _ = pick(how, judge(pool[left]), size - int(is_labelled.sum()), rng)
        is_labelled[left[picked]] = True
        judge = learnt_best(pool[is_labelled], said[is_labelled])
        agreement.append(float(((judge(others) > 0) == others.right).mean()))
    start = float(((rows.odds > 0) == rows.right).mean())
    return np.array(agreement) + (start - agreement[0])


def labels_until(agreement: Floats, level: float) -> float:
    """Find how many labels agreement takes to reach a level, inf if it does not.

    Agreement is made to rise first, by isotonic regression, so that luck in one round is none.
    """
    risen = isotonic_regression(agreement).x
    if risen[-1] < level:
        return np.inf
    after = int(np.argmax(risen >= level))
    sizes = (0, *SIZES)
    if not after or risen[after] == risen[after - 1]:
        return float(sizes[after])
    share = (level - risen[after - 1]) / (risen[after] - risen[after - 1])
    return float(sizes[after - 1] + share * (sizes[after] - sizes[after - 1]))


def accuracy_intervals(
    rows: Rows, how: str, repetitions: int, rng: np.random.Generator
) -> Iterator[tuple[int, float, float]]:
    """Yield labels, mean half-width of the interval of a judge's accuracy, and its coverage."""
    is_right = (rows.odds > 0) == rows.right
    by_question = [np.flatnonzero(rows.questions == name) for name in np.unique(rows.questions)]
    for size in SIZES[1:]:
        widths, holds = [], []
        for _ in range(repetitions):
            drawn = [by_question[n] for n in rng.integers(len(by_question), size=len(by_question))]
            index = np.concatenate(drawn)
            picked, chances = pick(how, rows.odds[index], size, rng)
            people = np.full(len(index), np.nan)
            people[picked] = is_right[index][picked]
            found = corrected_rate(
                expit(np.abs(rows.odds[index])),
                people,
                random_sample=True,
                probabilities=chances if how == "drawn" else None,
                groups=np.repeat(np.arange(len(drawn)), list(map(len, drawn))),
            ).corrected
            widths.append((found.high - found.low) / 2)
            holds.append(found.low <= is_right.mean() <= found.high)
        yield size, float(np.mean(widths)), float(np.mean(holds))


def simulate(
    rows: Rows, errors: Sequence[float], levels: Sequence[float], repetitions: int, seed: int
) -> dict[str, Any]:
    """Simulate both parts.

    Returns:
        ``agreement``: by error and way to pick, ``mean``, ``low`` and ``high`` (90 % of the
        repetitions) after no label and after each round, and under ``labels`` by level the median
        and the same range of labels until it is reached. ``intervals``: by way to pick, the rows of
        :func:`accuracy_intervals`.
    """
    agreement: dict[str, Any] = {}
    for error in errors:
        for how in PICKS:
            rngs = (np.random.default_rng([seed, number]) for number in range(repetitions))
            found = [rounds(rows, how, error, rng) for rng in rngs]
            low, high = np.quantile(found, [0.05, 0.95], axis=0).tolist()
            labels = {
                f"{level:g}": np.quantile(
                    [labels_until(one, level) for one in found], [0.05, 0.5, 0.95], method="nearest"
                ).tolist()
                for level in levels
            }
            mean = np.mean(found, axis=0).tolist()
            agreement.setdefault(f"{error:g}", {})[how] = {
                "mean": mean, "low": low, "high": high, "labels": labels,
            }  # fmt: skip
    rng = np.random.default_rng([seed, 1])
    intervals = {how: list(accuracy_intervals(rows, how, 10 * repetitions, rng)) for how in PICKS}
    return {"sizes": [0, *SIZES], "agreement": agreement, "intervals": intervals}


def tables(figures: Mapping[str, Any]) -> str:
    """Render labels until each level, and what they say of the accuracy, as tables in Markdown."""

    def spread(found: Sequence[float]) -> str:
        low, median, high = (f"{n:.0f}" if np.isfinite(n) else "more" for n in found)
        return f"{median} ({low} to {high})"

    until = []
    for error, by_pick in figures["agreement"].items():
        for how, found in by_pick.items():
            cells = [spread(labels) for labels in found["labels"].values()]
            until.append([error, how, *(f"{found['mean'][n]:.3f}" for n in (0, 3, 6, 8)), *cells])
    levels = [f"labels until {level}" for level in found["labels"]]
    head = ["errors", "rows", "0 labels", *(f"{SIZES[n - 1]} labels" for n in (3, 6, 8)), *levels]
    widths = [
        [str(rows[0][0]), *(f"±{width:.3f}, {holds:.0%}" for _, width, holds in rows)]
        for rows in zip(*figures["intervals"].values(), strict=True)
    ]
    return "\n\n".join((markdown_table(head, until), markdown_table(["labels", *PICKS], widths)))


def draw(figures: Mapping[str, Any], path: Path) -> None:
    """Draw agreement, with the least errors, and half-widths by the number of labels."""
    error, by_pick = next(iter(figures["agreement"].items()))
    with figure_file(path, 9, 3.6) as figure:
        learning, measuring = figure.subplots(1, 2)
        for how, found in by_pick.items():
            [line] = learning.plot(figures["sizes"], found["mean"], marker=".", label=how)
            if how == PICKS[0]:
                learning.fill_between(
                    figures["sizes"],
                    found["low"],
                    found["high"],
                    alpha=0.15,
                    color=line.get_color(),
                )
            sizes, widths, holds = zip(*figures["intervals"][how], strict=True)
            name = f"{how}: holds the truth in {min(holds):.0%} to {max(holds):.0%}"
            measuring.plot(sizes, widths, marker=".", label=name)
        learning.set_title(f"Agreement with people, who err on {float(error):.0%}")
        measuring.set_title("Half-width of the interval of the accuracy")
        for axes in (learning, measuring):
            axes.set_xlabel(f"labels ({PER_HOUR} an hour)")
            axes.set_xticks(range(0, SIZES[-1] + 1, PER_HOUR))
            axes.grid(alpha=0.3)
            axes.legend(frameon=False, fontsize=8)


def main(argv: Sequence[str]) -> None:
    """Run the program."""
    parser = argparse.ArgumentParser(
        prog="python -m experiments labelling_hour",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("judge", help="run folder or shipped judge")
    parser.add_argument("--data", type=Path, action="append", required=True, help="labelled rows")
    parser.add_argument("--errors", type=float, nargs="+", default=[0.05, 0.15])
    parser.add_argument("--levels", type=float, nargs="+", default=[0.8, 0.81])
    parser.add_argument("--repetitions", type=int, default=100, help="(default 100)")
    parser.add_argument("--seed", type=int, default=0, help="(default 0)")
    parser.add_argument("--picture", type=Path, help="draw both parts in this PNG file")
    parser.add_argument("--out", type=Path, help="write the figures to this JSON file")
    options = parser.parse_args(argv)
    examples = [row for path in options.data for _, row in read_records(path, LabelledExample)]
    rows = judged_rows(options.judge, examples)
    figures = simulate(rows, options.errors, options.levels, options.repetitions, options.seed)
    if options.out:
        write_json(options.out, {"judge": options.judge, "n": len(examples), **figures})
    if options.picture:
        draw(figures, options.picture)
    Console().print(tables(figures), markup=False, soft_wrap=True)
