"""``custos backbone``: the model that judges are built on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from cli.shared.options import with_groups
from cli.shared.screen import in_columns
from judging.models.embedded import EMBEDDED, EMBEDDED_2, EMBEDDED_BASE, LICENSE, PUBLISHED
from judging.models.fetched import is_made
from judging.models.gguf_files import NAMED

if TYPE_CHECKING:
    from judging.models.backbones import Backbone

HEADINGS = ("backbone", "parameters", "licence", "made of", "download", "here")
SMOKE_QUESTION = "What is the capital of France?"
MAX_SMOKE_TOKENS = 24


@with_groups
def backbone(
    name: Annotated[str, typer.Argument()] = "embedded",
    smoke: Annotated[bool, typer.Option("--smoke")] = False,
) -> None:
    """Fetch a backbone if it is missing, load it, and print what it is.

    A backbone is the model that judges are trained on. Those of 'custos backbones' are fetched and
    converted once, into the folder that the variable CUSTOS_CACHE names, or else into
    ~/.cache/custos.

    Example: custos backbone --smoke

    Options:
        name: A name in 'custos backbones', a folder, a GGUF file, or the name of a Qwen model on
            the Hugging Face hub.
        smoke: Have the backbone answer one question.
    """
    from judging.models.backbones import load_backbone
    from judging.models.devices import computed_in

    loaded = load_backbone(name)
    config = loaded.model.config
    facts = {
        "name": loaded.name,
        "version": loaded.version,
        "architecture": config.model_type,
        "parameters": f"{sum(weight.numel() for weight in loaded.model.parameters()):,}",
        "vocabulary": f"{config.get_text_config().vocab_size:,}",
        "dtype": computed_in(loaded.model),
        "device": str(loaded.model.device),
        "folder": config.name_or_path,
    }
    for fact, value in facts.items():
        typer.echo(f"{fact:<13}{value}")
    if smoke:
        typer.echo(f"\n{SMOKE_QUESTION}\n{answer(loaded, SMOKE_QUESTION)}")


def answer(loaded: Backbone, question: str) -> str:
    """Answer a question with the backbone, decoded greedily."""
    conversation = [{"role": "user", "content": [{"type": "text", "text": question}]}]
    prompt = loaded.processor.apply_chat_template(
        conversation,
        tokenize=True,
        return_dict=True,
        add_generation_prompt=True,
        processor_kwargs={"return_tensors": "pt"},
    ).to(loaded.model.device)
    tokens = loaded.model.generate(**prompt, max_new_tokens=MAX_SMOKE_TOKENS, do_sample=False)
    answer_tokens = tokens[0, prompt["input_ids"].shape[1] :]
    return str(loaded.tokenizer.decode(answer_tokens, skip_special_tokens=True)).strip()


def backbones() -> None:
    """List the backbones that have a name here: what they are, and whether they are here.

    One that is not here is fetched when it is first used. Any checkpoint of a supported family can
    be used too, by its folder, its name on the hub or its GGUF file.

    Example: custos backbones
    """
    embedded = ("135M", LICENSE, EMBEDDED_BASE)
    rows = [
        *((name, *embedded, PUBLISHED) for name in (EMBEDDED, EMBEDDED_2)),
        *(
            (name, f"{each.parameters / 1e6:,.0f}M", each.license, each.base_model, each.file)
            for name, each in NAMED.items()
        ),
    ]
    cells = [
        (*texts, f"{file.size / 1e6:,.0f} MB", "yes" if is_made(file.version) else "no")
        for *texts, file in rows
    ]
    for line in in_columns([HEADINGS, *cells]):
        typer.echo(line)
