"""The published Qwen2.5-Coder-0.5B-Instruct, byte for byte and number for number."""

from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM, Qwen2ForCausalLM

from judging.fingerprint import file_sha256
from judging.models.backbones import Backbone, load_backbone
from judging.models.fetched import fetch
from judging.models.gguf_files import NAMED
from tests.real_weights.made_up import MARKS, NAME

pytestmark = MARKS


@pytest.fixture(scope="module")
def gguf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return fetch(NAMED[NAME].file, tmp_path_factory.mktemp("published"))


@pytest.fixture(scope="module")
def real() -> Backbone:
    return load_backbone(NAME, dtype="float32", device="cpu")


def test_the_file_has_the_publishers_hash(gguf: Path) -> None:
    published = "1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32"
    assert file_sha256(gguf) == published


def test_weights_and_logits_are_those_that_transformers_reads(gguf: Path, real: Backbone) -> None:
    own: Any = AutoModelForCausalLM.from_pretrained(
        gguf.parent, gguf_file=gguf.name, dtype=torch.bfloat16
    )
    stored = own.state_dict()
    for name, weight in real.model.state_dict().items():
        # The published model ties its two matrices; the output's is the finer one of the file.
        same = "lm_head.weight" if name == "model.embed_tokens.weight" else name
        assert torch.equal(weight, stored[same].float()), name
    plain = Qwen2ForCausalLM(own.config).float().eval()  # its numbers, in plain code
    plain.load_state_dict(stored | {"model.embed_tokens.weight": stored["lm_head.weight"]})
    ids = torch.tensor([real.tokenizer.encode("Which river runs past the old town?")])
    with torch.inference_mode():
        torch.testing.assert_close(real.model(ids).logits, plain(ids).logits, rtol=0, atol=1e-3)


def test_the_tokenizer_is_the_published_one(real: Backbone) -> None:
    """Ids of the published tokenizer of Qwen2 and Qwen2.5."""
    known = {
        "The capital of France is": [785, 6722, 315, 9625, 374],
        "<|im_start|>system\n": [151644, 8948, 198],
        "Hello, world!": [9707, 11, 1879, 0],
        "<|im_end|>\n<|endoftext|>": [151645, 198, 151643],
        "2026": [17, 15, 17, 21],
    }
    for text, ids in known.items():
        assert real.tokenizer.encode(text) == ids
        assert real.tokenizer.decode(ids) == text
    assert len(real.tokenizer) == 151_665


def test_it_knows_the_capital_of_france(real: Backbone) -> None:
    ids = torch.tensor([real.tokenizer.encode("The capital of France is")])
    with torch.inference_mode():
        assert real.tokenizer.decode(real.model(ids).logits[0, -1].argmax()) == " Paris"
