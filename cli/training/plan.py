"""``custos plan``: what a training run needs before anything is loaded, and how many labels."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli.measuring.plan_labels import labels
from cli.shared.columns import in_columns
from cli.shared.error_line import CommandGroup
from cli.shared.options.output import AsJson
from cli.shared.options.recipe import Keys
from cli.shared.output_folders import Verb

if TYPE_CHECKING:
    from train.plan.planner import RunPlan

LEAST_IN_MINUTES = 120
"""Seconds from which on a time is given in minutes."""
FEW_ROWS = 8
"""Rows of a step on a GPU from which on it is likely to be busy; nothing was measured."""
MEANINGS = {
    "weights": "the frozen backbone",
    "adapter": "what is trained, in float32",
    "gradients": "one for each trained number",
    "optimizer": "two numbers of AdamW for each trained one",
    "gathered": "layers put together for a pass, and their gradients",
    "activations": "kept from the forward pass",
    "logits": "at supervised positions",
    "pictures": "pixels and the vision tower",
    "workspace": "intermediate results",
    "buckets": "gradients on their way between GPUs",
    "gaps": "between tensors, which the C library keeps",
    "reserve": "the process and its libraries",
}


class Plans(CommandGroup):
    """Group of plans; ``custos plan RECIPE`` is short for ``custos plan training RECIPE``."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put the verb before a recipe or its options."""
        if args and args[0] not in (*self.commands, "--help"):
            args = ["training", *args]
        rest: list[str] = super().parse_args(ctx, args)
        return rest


app = typer.Typer(
    no_args_is_help=True,
    help="Say what a training run needs ('custos plan RECIPE' for short), or how many labels.",
)


@app.command(cls=Verb)
def training(
    recipe: Annotated[
        str,
        typer.Argument(help="A file, a name in 'custos recipe list', or a task in 'custos tasks'."),
    ],
    keys: Keys = None,
    gpus: Annotated[int, typer.Option(min=0, help="GPUs, one process for each; 0: the CPU.")] = 1,
    shared: Annotated[
        bool,
        typer.Option(
            "--shared",
            help="Plan for GPUs that share one model, as 'custos train RECIPE --config-file fsdp2' "
            "has them do. Default: each holds a copy.",
        ),
    ] = False,
    memory: Annotated[
        float | None,
        typer.Option(
            min=0.1,
            help="GiB of one GPU. Default: 78, an H100; with --gpus 0 that of this machine.",
        ),
    ] = None,
    rate: Annotated[
        float | None,
        typer.Option(
            min=0.001,
            metavar="TOKENS_PER_S",
            help="Tokens that one GPU trains on in a second, as a short run printed or you guess. "
            "Default: no time is given.",
        ),
    ] = None,
    tokens_per_row: Annotated[
        int | None,
        typer.Option(
            min=8,
            help="Plan without data, with rows of so many tokens. Default: the recipe's files.",
        ),
    ] = None,
    pixels_per_row: Annotated[
        int, typer.Option(min=0, help="Pixels of the picture of such a row.")
    ] = 0,
    rows: Annotated[
        int | None, typer.Option(min=1, help="Number of such rows. Default: unknown.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Say what a training run needs: memory by part, tokens, steps, time, and whether it fits.

    Nothing is loaded or trained. One step runs on tensors without data, with the recipe's model,
    adapter and longest rows, and what it would allocate is counted. This takes some seconds. Sizes
    of Qwen2.5-VL and Qwen3-VL are built in; other backbones need their config.json. The exit status
    is 0 whether the run fits or not.

    Example: custos plan training hieval_stage1 --gpus 8 --memory 80 --rate 20000
    --tokens-per-row 600 --rows 50000

    Example: custos plan training truthful_judge --gpus 4 --shared --memory 24 --tokens-per-row 1500
    --rows 10000

    Example: custos plan training embedded/mine --gpus 0 data.train=labelled.jsonl data.val=null
    """
    from train.launch.run_plan import plan_run

    result = plan_run(
        recipe,
        keys or [],
        gpus=gpus,
        memory=memory,
        rate=rate,
        shared=shared,
        tokens_per_row=tokens_per_row,
        pixels_per_row=pixels_per_row,
        num_rows=rows,
    )
    typer.echo(json.dumps(_as_dict(result), indent=1) if as_json else _as_text(result))


app.command(cls=Verb)(labels)


def _as_text(plan: RunPlan) -> str:
    from train.plan.planner import in_gib

    memory, row = plan.memory, plan.longest
    counted = f"counted by {plan.counted}" if plan.num_rows else f"from {plan.counted}"
    pictures = f", {row.patches:,} patches" if row.patches else ""
    rows = f"{plan.num_rows:,}" if plan.num_rows else "unknown"
    checkpointing = "on" if plan.checkpointing else "off"
    reason = f": {plan.reason}" if plan.reason else ""
    steps = "unknown: give --rows" if plan.steps is None else f"{plan.steps:,}"
    facts = [
        ("backbone", plan.recipe.backbone),
        ("parameters", f"{memory.parameters:,}; trained {memory.trained:,}"),
        ("rows", f"{rows}; the longest {_tokens(plan):,} tokens{pictures}, "
         f"{counted}"),
        *([("rows a GPU", _rows_per_gpu(plan))] if plan.hardware.gpus > 1 else []),
        ("micro-batch", f"{plan.micro_batch} of the longest rows"),
        ("checkpointing", f"{checkpointing}{reason}"),
        ("attention", plan.attention),
        ("tokens a step", f"{plan.tokens_per_step:,}"),
        ("steps", steps),
        *([("time", _duration(plan.seconds))] if plan.seconds else []),
    ]  # fmt: skip
    sizes = [
        (f"  {part}", in_gib(size).rjust(10), MEANINGS[part])
        for part, size in plan.memory.parts().items()
        if size
    ]
    device = "on each GPU" if plan.hardware.gpus else "on the CPU"
    total = f"{in_gib(plan.memory.total)} of {plan.hardware.memory:.3g} GiB"
    verdict = "fits" if plan.fits else f"does not fit; {plan.advice}"
    return "\n".join(
        [*in_columns(facts), f"memory {device}:", *in_columns(sizes), f"{total}: {verdict}"]
    )


def _as_dict(plan: RunPlan) -> dict[str, Any]:
    return {
        "backbone": plan.recipe.backbone,
        "parameters": plan.memory.parameters,
        "trained": plan.memory.trained,
        "rows": plan.num_rows or None,
        "longest_row_tokens": _tokens(plan),
        "counted_by": plan.counted,
        "batch_size": plan.recipe.optim.batch_size,
        "micro_batch": plan.micro_batch,
        "gradient_checkpointing": plan.checkpointing,
        "checkpointing_reason": plan.reason,
        "attention": plan.attention,
        "tokens_per_step": plan.tokens_per_step,
        "steps": plan.steps,
        "seconds": plan.seconds,
        "bytes": plan.memory.parts(),
        "total_bytes": plan.memory.total,
        **asdict(plan.hardware),
        "fits": plan.fits,
        "advice": plan.advice,
    }


def _rows_per_gpu(plan: RunPlan) -> str:
    """Return the rows of a step on each GPU, with a note where they are few."""
    gpus, rows = plan.hardware.gpus, plan.recipe.optim.batch_size
    share = f"{rows / gpus:.3g} of optim.batch_size={rows}"
    if rows >= FEW_ROWS * gpus:
        return share
    return (
        f"{share}: few, so GPUs may wait for each other; optim.batch_size={FEW_ROWS * gpus} gives "
        f"{FEW_ROWS}, and is another judge's run"
    )


def _tokens(plan: RunPlan) -> int:
    return plan.longest.instruction + plan.longest.length


def _duration(seconds: float) -> str:
    if seconds < LEAST_IN_MINUTES:
        return f"{max(1, round(seconds))} s"
    hours, minutes = divmod(round(seconds / 60), 60)
    return f"{hours:,} h {minutes} min" if hours else f"{minutes} min"
