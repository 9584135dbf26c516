"""Plots of a report and of a training run, drawn without a display.

A file appears only when it is complete.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from evaluation.intervals import Floats
from judging.files.atomic import atomic_path
from judging.log_lines import one_line

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BLUE, ORANGE, GREEN, GREY = "#0072B2", "#D55E00", "#009E73", "#666666"
"""Okabe and Ito's colours, which colour-blind readers can tell apart."""
MOST_PEOPLE = 20
"""Most people in a picture."""
LONGEST_NAME = 40
"""Characters of a name of a person or a system that are drawn."""
SHORT_LABEL = 14
"""Longest label, in characters, that is not set aslant."""
BARS = (
    ("people", "people", GREEN, "o"),
    ("raw", "as judged", GREY, "s"),
    ("corrected", "corrected", BLUE, "D"),
)
"""Parts of a rate that are drawn, their names, colours and marks."""


def draw_report(report: Mapping[str, Any], out_dir: Path) -> list[str]:
    """Draw the plots that a report has figures for; return their file names in reading order."""
    draw_confusion(report["confusion"], out_dir / "confusion.png")
    names = ["confusion.png"]
    drawings: dict[str, tuple[str, Callable[..., None]]] = {
        "reliability": ("calibration", draw_reliability),
        "risk_coverage": ("risk_coverage", draw_risk_coverage),
        "people": ("annotators", draw_people),
        "ranking": ("answerer_ranking", draw_ranking),
        "favour": ("favour", draw_favour),
    }
    for name, (part, draw) in drawings.items():
        if report[part]:
            names.append(f"{name}.png")
            more = [report["abstention"]] if part == "risk_coverage" else []
            draw(report[part], *more, out_dir / names[-1])
    return names


def draw_confusion(confusion: Mapping[str, Any], path: Path) -> None:
    """Draw a confusion matrix: counts, coloured by the share of each human label."""
    labels = [label.replace("; ", ";\n", 1) for label in confusion["labels"]]
    counts = np.array(confusion["counts"], dtype=float)
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    side = 2.2 + 0.95 * len(labels)
    with figure_file(path, side + 0.8, side) as figure:
        axes = figure.subplots()
        image = axes.imshow(shares, cmap="Blues", vmin=0, vmax=1)
        for row, column in np.ndindex(counts.shape):
            share = shares[row, column]
            text = f"{counts[row, column]:,.0f}\n{share:.1%}"
            colour = "white" if share > 0.55 else "black"
            axes.text(column, row, text, ha="center", va="center", color=colour, fontsize=9)
        slanted = any(len(label) > SHORT_LABEL for label in labels)
        axes.set_xticks(
            range(len(labels)),
            labels,
            rotation=35 if slanted else 0,
            ha="right" if slanted else "center",
            parse_math=False,
        )
        axes.set_yticks(range(len(labels)), labels, parse_math=False)
        axes.set(xlabel="judge", ylabel="people", title=f"{counts.sum():,.0f} scored items")
        figure.colorbar(image, ax=axes, label="share of the human label", shrink=0.8)


def draw_reliability(calibration: Mapping[str, Any], path: Path) -> None:
    """Draw accuracy against confidence in equal-mass bins, ``after`` and, if known, ``before``."""
    colours = {"before": ORANGE, "after": BLUE}
    with figure_file(path, 5, 5) as figure:
        axes = figure.subplots()
        axes.plot([0, 1], [0, 1], color=GREY, linestyle=":", label="confidence = accuracy")
        for stage, curve in calibration.items():
            bins = curve["bins"]
            name = f"{stage} calibration" if len(calibration) > 1 else "judge"
            axes.plot(
                [cell["confidence"] for cell in bins],
                [cell["accuracy"] for cell in bins],
                marker="o" if stage == "after" else "s",
                color=colours[stage],
                label=f"{name}, ECE {curve['ece']:.3f}",
            )
        lowest = min(
            min(cell["confidence"], cell["accuracy"])
            for curve in calibration.values()
            for cell in curve["bins"]
        )
        start = max(0.0, np.floor(lowest * 10 - 0.5) / 10)
        axes.set(xlim=(start, 1.01), ylim=(start, 1.01), aspect="equal")
        axes.set(xlabel="confidence in the label given", ylabel="share on which people agree")
        axes.set_title("Reliability, bins of equally many items")
        finish_axes(axes)


def draw_risk_coverage(
    curve: Mapping[str, Any], abstention: Mapping[str, Any] | None, path: Path
) -> None:
    """Draw the error among the most confident verdicts against the share of verdicts kept.

    The error at a stated risk, if there is one, is marked with its interval.
    """
    with figure_file(path, 5.5, 4) as figure:
        axes = figure.subplots()
        label = f"judge, AURC {curve['aurc']:.4f}"
        axes.plot(curve["coverage"], curve["error"], color=BLUE, label=label)
        if abstention and abstention["error"]["value"] is not None:
            error, risk = abstention["error"], abstention["risk"]
            axes.axhline(risk, color=GREY, linestyle=":", label=f"stated risk {risk:g}")
            axes.errorbar(
                # Of the verdicts on the curve, which leaves out rows without a label.
                [min(1.0, error["n"] / curve["n"])],
                [error["value"]],
                yerr=error_bars([error]),
                fmt="s",
                color=ORANGE,
                capsize=3,
                label="kept, 95 % interval",
            )
        axes.set(xlim=(0, 1.01), title="Risk and coverage", ylabel="error among them")
        axes.set_xlabel("share of verdicts kept, the most confident first")
        axes.set_ylim(bottom=0)
        finish_axes(axes)


def draw_ranking(ranking: Mapping[str, Any], path: Path) -> None:
    """Draw the share of Correct answers per answering system, by people and by the judge."""
    names = list(ranking["answerers"])
    heights = np.arange(len(names), dtype=np.float64)
    with figure_file(path, 6.5, 1.6 + 0.5 * len(names)) as figure:
        axes = figure.subplots()
        for side, colour, marker, offset in (
            ("people", BLUE, "o", -0.13),
            ("judge", ORANGE, "s", 0.13),
        ):
            shares = [ranking["answerers"][name][side] for name in names]
            _intervals(axes, shares, heights + offset, fmt=marker, color=colour, label=side)
        _name_rows(axes, map(_short, names))
        axes.set_xlabel("share called Correct, 95 % interval")
        tau = ranking["kendall_tau"]["value"]
        axes.set_title("Answering systems" + ("" if tau is None else f", Kendall tau-b {tau:.2f}"))
        finish_axes(axes)


def draw_people(annotators: Mapping[str, Any], path: Path) -> None:
    """Draw every person's agreement with the others beside the judge's, and the ceiling.

    Of many people, those with most rows are drawn.
    """
    each = sorted(annotators["each"].items(), key=lambda person: -person[1]["n"])[:MOST_PEOPLE]
    heights = np.arange(len(each))
    with figure_file(path, 7.5, 2 + 0.6 * len(each)) as figure:
        axes = figure.subplots()
        for side, name, colour, offset in (
            ("person", "this person", BLUE, -0.18),
            ("judge", "judge in place of this person", ORANGE, 0.18),
        ):
            shares = [measured[side]["agreement"] for _, measured in each]
            axes.barh(
                heights + offset,
                [share["value"] for share in shares],
                height=0.34,
                xerr=error_bars(shares),
                color=colour,
                ecolor=GREY,
                capsize=3,
                label=name,
            )
        ceiling, best = (annotators[name]["agreement"]["value"] for name in ("people", "best"))
        axes.axvline(ceiling, color="black", linestyle="--", label="two people agree")
        axes.axvline(best, color=GREY, linestyle=":", label="no judge could agree on more")
        texts = []
        for name, measured in each:
            star = " *" if measured["wins"] else ""
            texts.append(f"{_short(name)}{star}\n{measured['n']:,} rows")
        _name_rows(axes, texts)
        axes.set(xlim=(0, 1.01), title="Judge in place of each person; * shown to be no worse")
        axes.set_xlabel("share of rows with the label of another person, 95 % interval")
        axes.grid(alpha=0.25, axis="x")
        axes.spines[["top", "right"]].set_visible(False)
        figure.legend(loc="outside lower center", ncols=2, frameon=False)


def draw_favour(favour: Mapping[str, Any], path: Path) -> None:
    """Draw how far the judge favours each answering system over the others, or harms it."""
    colours = {"favoured": BLUE, "harmed": ORANGE, "not shown": GREY}
    systems = favour["systems"]
    own = favour["own_family"]["names"] if favour["own_family"] else []
    heights = np.arange(len(systems))
    with figure_file(path, 6.5, 1.6 + 0.4 * len(systems)) as figure:
        axes = figure.subplots()
        for finding, colour in colours.items():
            chosen = [s["finding"] == finding for s in systems.values()]
            bars = [s["difference"] for s in systems.values() if s["finding"] == finding]
            if bars:
                axes.barh(
                    heights[chosen],
                    [bar["value"] for bar in bars],
                    xerr=error_bars(bars),
                    height=0.6,
                    color=colour,
                    alpha=0.75,
                    capsize=3,
                    label="neither is shown" if finding == "not shown" else finding,
                )
        _name_rows(axes, (f"{_short(name)}{' (own family)' * (name in own)}" for name in systems))
        axes.axvline(0, color="black", linewidth=0.8)
        axes.set(xlabel="bias less that on the other systems, 95 % interval")
        axes.set_title("Whom the judge favours")
        finish_axes(axes)


def draw_rates(rates: Mapping[str, Mapping[str, Any]], path: Path, full: float = 1.0) -> None:
    """Draw the interval of each rate as judged, corrected and, if known, by people.

    ``full`` is what a rate of 1 is in the unit of the figures.
    """
    names = list(rates)
    with figure_file(path, 7.5, 1.5 + 0.75 * len(names)) as figure:
        axes = figure.subplots()
        shown = [bar for bar in BARS if any(rate.get(bar[0]) for rate in rates.values())]
        for place, (part, label, colour, mark) in enumerate(shown):
            offset = 0.24 * (place - (len(shown) - 1) / 2)
            drawn = [(at, rates[name].get(part)) for at, name in enumerate(names)]
            known: Sequence[tuple[int, Any]] = [(at, rate) for at, rate in drawn if rate]
            places, rates_of = np.array([at for at, _ in known]), [rate for _, rate in known]
            style: dict[str, Any] = {"fmt": mark, "color": colour, "label": label}
            _intervals(axes, rates_of, places + offset, full, linewidth=2.5, **style)
        _name_rows(axes, map(one_line, names))
        axes.set(ylim=(len(names) - 0.45, -0.55), xlim=(0, 1), xlabel="rate, 95 % interval")
        axes.xaxis.set_major_formatter(lambda share, _: f"{100 * share:.0f} %")
        axes.grid(alpha=0.25)
        axes.spines[["top", "right"]].set_visible(False)
        figure.legend(loc="outside right upper", frameon=False)


def draw_learning_curve(history: Sequence[Mapping[str, float]], path: Path) -> None:
    """Draw loss and held-out accuracy over training steps.

    Entries have ``step`` and any of ``train_loss``, ``val_nll``, ``val_accuracy`` and the
    ``NAME_accuracy`` of an earlier stage. Raise ``ValueError`` if no entry has one of the first
    three.
    """
    with figure_file(path, 9, 3.8) as figure:
        losses, accuracy = figure.subplots(1, 2, sharex=True)
        has_points = [
            _curve(losses, history, "train_loss", "training loss", GREY, ""),
            _curve(losses, history, "val_nll", "validation NLL", BLUE, "o"),
            _curve(accuracy, history, "val_accuracy", "validation accuracy", GREEN, "o"),
        ]
        earlier = {key for entry in history for key in entry if key.endswith("_accuracy")}
        for key in sorted(earlier - {"val_accuracy"}):
            _curve(accuracy, history, key, f"{key.removesuffix('_accuracy')} kept", ORANGE, "s")
        if not any(has_points):
            raise ValueError("history has no train_loss, val_nll or val_accuracy to draw")
        losses.set_ylabel("loss")
        accuracy.set_ylabel("agreement with people")
        for axes in (losses, accuracy):
            axes.set_xlabel("step")
            finish_axes(axes)


def draw_label_plan(
    curves: Mapping[str, tuple[Floats, Floats]], half_width: float, path: Path
) -> None:
    """Draw half the width of intervals against the number of labelled rows, by name of the curve.

    The first one is the wider line. The wanted half-width is marked where each curve reaches it.
    """
    with figure_file(path, 6.5, 4) as figure:
        axes = figure.subplots()
        axes.axhline(half_width, color=GREY, linestyle=":", label=f"wanted: {half_width:g}")
        for number, (name, (rows, widths)) in enumerate(curves.items()):
            colour = (BLUE, ORANGE)[number % 2]
            if widths.min() <= half_width:
                # The curve crosses between two of its points.
                at = float(np.interp(-half_width, -widths, rows))
                axes.plot([at, at], [0, half_width], color=colour, linewidth=0.8)
            axes.plot(rows, widths, color=colour, linewidth=2 - number * 0.8, label=name)
        axes.set_xscale("log")
        low, high = (
            end(rows.max() if end is max else rows.min() for rows, _ in curves.values())
            for end in (min, max)
        )
        ticks = [10.0**power * step for power in range(7) for step in (1, 2, 5)]
        ticks = [tick for tick in ticks if low <= tick <= high]
        axes.set_xticks(ticks, [f"{tick:,.0f}" for tick in ticks])
        axes.minorticks_off()
        axes.set_ylim(bottom=0)
        axes.set(xlabel="rows that people label", ylabel="95 % interval: either side of the figure")
        finish_axes(axes)


def _curve(
    axes: Axes, history: Sequence[Mapping[str, float]], key: str, name: str, colour: str, mark: str
) -> bool:
    """Draw one curve of a history; tell whether it has any point."""
    points = [(entry["step"], entry[key]) for entry in history if entry.get(key) is not None]
    if points:
        steps, values = zip(*points, strict=True)
        axes.plot(steps, values, color=colour, marker=mark, markersize=4, label=name)
    return bool(points)


def _name_rows(axes: Axes, names: Iterable[str]) -> None:
    """Name the rows of a plot, from top to bottom."""
    texts = list(names)
    # A name may hold dollar signs, which are no formula, and control characters.
    axes.set_yticks(range(len(texts)), texts, parse_math=False)
    axes.invert_yaxis()


def _short(name: str) -> str:
    """Shorten a name of a person or a system so that it leaves room for the picture."""
    name = one_line(name)
    return name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 1]}…"


def _intervals(
    axes: Axes,
    estimates: Sequence[Mapping[str, Any]],
    heights: Floats,
    full: float = 1.0,
    **style: Any,
) -> None:
    """Draw values with their intervals at heights; ``full`` is what 1 is in their unit."""
    values = np.array([estimate["value"] for estimate in estimates], dtype=float) / full
    axes.errorbar(values, heights, xerr=error_bars(estimates) / full, capsize=3, **style)


def error_bars(estimates: Sequence[Mapping[str, Any]]) -> Floats:
    """Compute the lengths of error bars below and above ``n`` estimates, ``[2, n]``; 0 without."""
    value, low, high = (
        np.array([estimate[end] for estimate in estimates], dtype=np.float64)
        for end in ("value", "low", "high")
    )
    return np.nan_to_num(np.maximum([value - low, high - value], 0))


def finish_axes(axes: Axes) -> None:
    """Add grid and legend."""
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    if axes.get_legend_handles_labels()[0]:
        axes.legend(frameon=False)


@contextmanager
def figure_file(
    path: Path, width: float, height: float, *, is_cut: bool = False
) -> Iterator[Figure]:
    """Yield a figure, sized in inches, and save it as the PNG file ``path`` after the block.

    Where ``is_cut``, the block places what it draws itself, and the picture is as large as that.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout=None if is_cut else "constrained")
    FigureCanvasAgg(figure)
    yield figure
    with atomic_path(path) as partial:
        box = "tight" if is_cut else None
        with warnings.catch_warnings():
            # Letters that the font lacks are drawn as boxes, and stand in the report's tables.
            warnings.filterwarnings("ignore", message="Glyph .* missing from font")
            figure.savefig(partial, format="png", dpi=150, bbox_inches=box)
