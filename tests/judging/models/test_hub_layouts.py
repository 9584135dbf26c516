"""Checkpoints with the files of the Hugging Face hub: loaded, scored, adapted, generated from."""

import shutil
from pathlib import Path
from typing import Any

import pytest
import torch

from judging.errors import CustosError, FieldError
from judging.models import attention
from judging.models.adapters import add_adapter, quantized_layers, save_adapter
from judging.models.attention import FEW_PAIRS, describe_attention
from judging.models.backbones import Backbone, load_backbone
from judging.scoring.engine import GeneratedText, Sampling
from judging.scoring.prompts import EncodedPrompt, Encoder
from judging.tasks import get_task
from tests.conftest import HubFolders
from tests.hub import LAYOUTS, TEXT_LAYOUTS
from tests.judging.made_up import ask
from tests.judging.models.made_up import edit, error_in
from tests.judging.scoring.made_up import TEXT_ONLY, TOLERANCE, encode, engine_of, varied_tree
from tests.tiny import brute_force, reference_model

THOUGHT = "<think>\n\n</think>\n\n"


@pytest.fixture(scope="module", params=[*LAYOUTS, *TEXT_LAYOUTS])
def name(request: pytest.FixtureRequest) -> str:
    layout: str = request.param
    return layout


@pytest.fixture(scope="module")
def hub(name: str, hub_folders: HubFolders) -> Backbone:
    return load_backbone(hub_folders(name), dtype="float32", device="cpu")


def _requests(name: str, pictures: list[str]) -> list[Any]:
    if name in TEXT_LAYOUTS:
        return [*TEXT_ONLY, *(ask("nine " * n) for n in (1, 7, 4))]
    return [
        ask(),
        ask("It is 18, for one was eaten by the keeper before breakfast."),
        ask("Nine.", images=(pictures[0],)),
        ask("Nine boats before breakfast", images=(pictures[0],)),
        ask("?", images=(pictures[1], pictures[2], pictures[0])),
    ]


def test_prompts_follow_the_processors_template(
    name: str, hub: Backbone, pictures: list[str]
) -> None:
    request = ask(images=() if name in TEXT_LAYOUTS else (pictures[0], pictures[1]))
    [prompt] = encode(hub, [request])
    grids = prompt.vision["image_grid_thw"].tolist() if prompt.vision else []
    images = "".join(
        f"<|vision_start|>{'<|image_pad|>' * (t * h * w // 4)}<|vision_end|>" for t, h, w in grids
    )
    head = f"<|im_start|>system\n{get_task('hieval-qs').instruction('plain/all')}<|im_end|>\n"
    expected = (
        f"{head}<|im_start|>user\n{images}Question: How many apples are left?<|im_end|>\n"
        "<|im_start|>user\nGround truth: 19<|im_end|>\n"
        "<|im_start|>user\nResponse: Nineteen apples.<|im_end|>\n<|im_start|>assistant\n"
        f"{THOUGHT if name in ('Qwen3.5-9B', 'Qwen3-4B') else ''}"
    )

    def tokens(text: str) -> tuple[int, ...]:
        return tuple(hub.tokenizer.encode(text, add_special_tokens=False))

    assert prompt.prefix_ids == tokens(head)
    assert prompt.prefix_ids + prompt.suffix_ids == tokens(expected)
    encoder = Encoder(hub, shows_all_pictures=True)
    [size] = encoder.measure([(get_task("hieval-qs"), request)])
    assert size.prefix_tokens == len(prompt.prefix_ids)
    assert size.suffix_tokens == len(prompt.suffix_ids)


@pytest.mark.parametrize("few_pairs", [FEW_PAIRS, 0])
def test_scores_equal_plain_passes_of_the_library(
    name: str,
    hub: Backbone,
    hub_folders: HubFolders,
    pictures: list[str],
    few_pairs: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Text, one picture, several pictures, with masks as for short and as for long rows.

    The library computes its own positions.
    """
    monkeypatch.setattr(attention, "FEW_PAIRS", few_pairs)
    reference = reference_model(hub_folders(name))
    prompts, tree = encode(hub, _requests(name, pictures)), varied_tree(hub)
    with torch.inference_mode():
        expected = torch.tensor(
            [
                [_plain(reference, prompt, [t for _, t in path]) for path in tree.paths]
                for prompt in prompts
            ]
        )
    assert expected.std(0).min() > 0.02, "prompts must matter, or the comparison shows nothing"
    for token_budget in (1, 4096):
        scores = torch.tensor(engine_of(hub, token_budget).score(prompts, tree))
        torch.testing.assert_close(scores, expected, **TOLERANCE)


def _plain(model: Any, prompt: EncodedPrompt, label: list[int]) -> float:
    return brute_force(model, prompt.prefix_ids + prompt.suffix_ids, label, prompt.vision)


def test_texts_are_greedy_whatever_generation_config_says(
    name: str, hub: Backbone, hub_folders: HubFolders, pictures: list[str]
) -> None:
    """Several prompts at once; labels are read after each text as after a plain prompt."""
    encoder, engine = Encoder(hub, shows_all_pictures=True), engine_of(hub)
    prompts = encode(hub, _requests(name, pictures)[1:4])
    tree = encoder.tree(("A", "B"))
    sampling = Sampling(max_new_tokens=5, temperature=0.0)
    reference = reference_model(hub_folders(name))
    texts: dict[int, tuple[int, ...]] = {}
    for batch in engine.generate(prompts, encoder, "</never>", [0, 1, 2], sampling):
        for i, text in zip(batch.indices, batch.texts, strict=True):
            assert isinstance(text, GeneratedText)
            texts[i] = text.tokens
        longer = [prompts[i].extended([*texts[i], 300]) for i in batch.indices]
        torch.testing.assert_close(
            torch.tensor(batch.score(longer, tree)),
            torch.tensor(engine.score(longer, tree)),
            **TOLERANCE,
        )
    assert len(texts) == len(prompts)
    for index, tokens in texts.items():
        prompt = prompts[index]
        for position, token in enumerate(tokens):
            assert token == _most_likely(reference, prompt.extended(tokens[:position]))


@torch.inference_mode()
def _most_likely(model: Any, prompt: EncodedPrompt) -> int:
    row = torch.tensor([[*prompt.prefix_ids, *prompt.suffix_ids]])
    vision = dict(prompt.vision)
    if vision:
        vision["mm_token_type_ids"] = (row == model.config.image_token_id).int()
    return int(model(input_ids=row, use_cache=False, **vision).logits[0, -1].argmax())


@pytest.mark.parametrize("name", LAYOUTS)
def test_adapters_change_the_text_towers_projections_only(
    name: str, hub_folders: HubFolders, tmp_path: Path
) -> None:
    backbone = load_backbone(hub_folders(name), dtype="float32", device="cpu")
    adapted = add_adapter(backbone.model, r=2, alpha=4)
    layers = {
        key.rsplit(".lora_", 1)[0].rsplit(".", 1)[1]
        for key, parameter in adapted.named_parameters()
        if parameter.requires_grad
    }
    expected = {f"{module}_proj" for module in ("q", "k", "v", "o", "gate", "up", "down")}
    if "A3B" in name:  # experts and router stay as they are
        expected -= {"gate_proj", "up_proj", "down_proj"}
    if name == "Qwen3.5-9B":
        expected |= {"in_proj_qkv", "out_proj"}
    assert layers == expected
    with torch.no_grad():
        for key, parameter in adapted.named_parameters():
            assert parameter.requires_grad == ("lora_" in key and "language_model" in key), key
            if parameter.requires_grad:
                parameter += 0.05 * torch.randn_like(parameter)
    save_adapter(adapted, tmp_path)
    prompts, tree = encode(backbone, [ask(), ask("It is 18.")]), varied_tree(backbone)
    trained = engine_of(backbone.with_model(adapted.eval())).score(prompts, tree)
    fresh = load_backbone(hub_folders(name), dtype="float32", device="cpu")
    before = engine_of(fresh).score(prompts, tree)
    merged = load_backbone(hub_folders(name), dtype="float32", device="cpu", adapter=tmp_path)
    after = torch.tensor(engine_of(merged).score(prompts, tree))
    torch.testing.assert_close(after, torch.tensor(trained), **TOLERANCE)
    assert (after - torch.tensor(before)).abs().max() > 0.01


@pytest.fixture(scope="module", params=TEXT_LAYOUTS)
def text(request: pytest.FixtureRequest, hub_folders: HubFolders) -> Backbone:
    return load_backbone(hub_folders(request.param), dtype="float32", device="cpu")


def test_pictures_are_refused_where_they_would_be_seen(text: Backbone, pictures: list[str]) -> None:
    task, request = get_task("hieval-ea"), ask(task="hieval-ea", images=(pictures[0],))
    if not task.reads_pictures:
        pytest.fail("the task must read pictures")
    for refuse in (Encoder(text).encode, lambda rows: list(Encoder(text).measure(rows))):
        with pytest.raises(FieldError) as caught:
            refuse([(task, request)])
        assert caught.value.field == "images"
        assert "Qwen2.5-VL" in str(caught.value)


@pytest.mark.parametrize("window", [4, 10**6])
def test_layers_that_see_less_than_the_prompt_are_refused(
    window: int, hub_folders: HubFolders, tmp_path: Path
) -> None:
    folder = Path(shutil.copytree(hub_folders("Qwen2.5-0.5B-Instruct"), tmp_path / "windowed"))
    windowed = {"use_sliding_window": True, "sliding_window": window, "max_window_layers": 0}
    edit(folder / "config.json", lambda config: config.update(windowed))
    if window == 4:
        assert "sliding_window" in error_in(folder)
    else:
        load_backbone(str(folder), weights=False)


def test_every_projection_of_the_layers_is_adapted(text: Backbone) -> None:
    shell = load_backbone(text.name, weights=False)
    assert describe_attention(text.model) == "text custos_grouped"
    assert len(list(quantized_layers(shell.model))) == 2 * 7
    adapted = add_adapter(shell.model, r=2, alpha=4)
    assert sum("lora_A" in name for name, _ in adapted.named_parameters()) == 2 * 7
    with pytest.raises(CustosError, match=r"adapter\.merger"):
        add_adapter(load_backbone(text.name, weights=False).model, r=2, alpha=4, merger=True)
