"""Versions of backbones follow every file that could change a verdict."""

import shutil
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from judging.errors import FieldError
from judging.models.backbones import Backbone, load_backbone
from judging.scoring.prompts import Encoder
from judging.tasks import get_task
from tests.conftest import Folders, HubFolders
from tests.judging.made_up import ask
from tests.tiny import save_picture


@pytest.mark.parametrize("file", ["preprocessor_config.json", "chat_template.jinja"])
def test_a_backbones_version_follows_pixel_limits_and_template(
    tiny_folders: Folders, tmp_path: Path, file: str
) -> None:
    copied = shutil.copytree(tiny_folders("qwen2_5_vl"), tmp_path / "copied")
    before = load_backbone(str(copied), device="cpu", weights=False).version
    assert before == load_backbone(tiny_folders("qwen2_5_vl"), device="cpu", weights=False).version
    path = copied / file
    path.write_text(path.read_text(encoding="utf-8") + " ", encoding="utf-8")
    assert load_backbone(str(copied), device="cpu", weights=False).version != before


MAIN = ("Qwen2.5-VL-7B-Instruct", "Qwen3-VL-4B-Instruct")
TASK = get_task("hieval-qs")


@pytest.fixture(scope="module", params=MAIN)
def hub(request: pytest.FixtureRequest, hub_folders: HubFolders) -> Backbone:
    """A checkpoint with the published limits, of each main family."""
    return load_backbone(hub_folders(request.param), weights=False)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.differing_executors])
@given(
    sizes=st.lists(st.tuples(st.integers(1, 700), st.integers(1, 700)), min_size=1, max_size=2),
    most=st.integers(2_000, 120_000),
    least=st.integers(1_024, 2_000),
)
def test_measured_prompts_are_as_long_as_encoded_ones(
    hub: Backbone,
    tmp_path_factory: pytest.TempPathFactory,
    sizes: list[tuple[int, int]],
    most: int,
    least: int,
) -> None:
    folder = tmp_path_factory.mktemp("sizes")
    images = tuple(save_picture(folder / f"{i}.png", *size) for i, size in enumerate(sizes))
    encoder, request = (
        Encoder(hub.with_pixels(least, most), shows_all_pictures=True),
        ask(images=images),
    )
    if any(max(size) > 200 * min(size) for size in sizes):
        for read in (encoder.measure, encoder.encode):
            with pytest.raises(FieldError, match="field 'images': .* at most 200 times as long"):
                list(read([(TASK, request)]))
        return
    [size] = encoder.measure([(TASK, request)])
    [prompt] = encoder.encode([(TASK, request)])
    assert size.suffix_tokens == len(prompt.suffix_ids)
    assert size.prefix_tokens == len(prompt.prefix_ids)
    assert len(size.scaled_pictures) == prompt.scaled_pictures
    shutil.rmtree(folder)


def test_a_photograph_has_at_most_a_thousand_tokens_by_default(
    hub: Backbone, tmp_path: Path
) -> None:
    request = ask(images=(save_picture(tmp_path / "photograph.jpg", 4032, 3024),))
    [question] = Encoder(hub).measure([(TASK, ask())])
    text = question.suffix_tokens + 2  # start and end of the picture
    own, capped = (
        next(Encoder(backbone, shows_all_pictures=True).measure([(TASK, request)]))
        for backbone in (hub, hub.with_pixels())
    )
    factor = 28 if "Qwen2.5" in hub.name else 32
    assert own.suffix_tokens - text == {28: 15552, 32: 11844}[factor]
    assert capped.suffix_tokens - text == {28: 1302, 32: 972}[factor]
    assert (own.scaled_pictures, capped.scaled_pictures) == ((), request.images)


def test_limits_default_to_a_megapixel_or_the_checkpoints_own(
    hub: Backbone, embedded: Backbone
) -> None:
    least = {"Qwen2.5": 3136, "Qwen3-V": 65536}[Path(hub.name).name[:7]]
    assert hub.with_pixels().pixels == (least, 1024 * 1024)
    assert hub.with_pixels(max_pixels=2000).pixels == (2000, 2000), "no limit above the other"
    assert hub.with_pixels(1500, 3_000_000).pixels == (1500, 3_000_000)
    assert hub.changed_pixels is None and hub.pixels.max_pixels > 12_000_000, "still its own"
    assert embedded.with_pixels() is embedded
    with pytest.raises(FieldError, match="field 'min_pixels': 2,000,000 is more than max_pixels"):
        hub.with_pixels(min_pixels=2_000_000)
