"""Replies as of vLLM, from a plain forward of a tiny model per prompt: a second reference."""

import base64
import io
import json
from typing import Any

import torch
from PIL import Image

from judging.models.backbones import Backbone
from tests.clients.fake_server import Say, Seen
from tests.tiny import reference_model

END = "<|im_end|>"


class VllmReplies:
    """Answers ``/completions`` and ``/chat/completions`` as vLLM 0.32 does.

    Args:
        backbone: Its tokenizer and processor render the prompts; the library's own model answers.
        knows_token_ids: ``False`` for a server that ignores ``logprob_token_ids``.
    """

    def __init__(self, backbone: Backbone, knows_token_ids: bool = True) -> None:
        self.processor, self.tokenizer = backbone.processor, backbone.tokenizer
        self.model = reference_model(backbone.name, "sdpa")
        self.knows_token_ids = knows_token_ids

    def __call__(self, seen: Seen) -> Say:
        body = seen.body
        if seen.path == "/v1/completions":
            if not self.knows_token_ids:
                return Say(404, json.dumps({"error": {"message": "no such route"}}))
            prompts = body["prompt"]
            prompts = prompts if isinstance(prompts[0], list) else [prompts]
            steps = self._next(prompts) if body["max_tokens"] == 1 else [None] * len(prompts)
            choices = [
                {"index": place, **self._completion(ids, body, step)}
                for place, (ids, step) in enumerate(zip(prompts, steps, strict=True))
            ]
            return Say(body=json.dumps({"choices": choices}))
        assert seen.path == "/v1/chat/completions"
        ids, vision = self._render(body)
        drawn, steps, reason = self._draw(ids, body, vision)
        content = [
            {**self._shown(token, logprobs, body), "top_logprobs": self._near(logprobs, body)}
            for token, logprobs in zip(drawn, steps, strict=True)
        ]
        choice: dict[str, Any] = {
            "message": {"content": self._text(drawn, body)},
            "finish_reason": reason,
            "logprobs": {"content": content},
        }
        if not body.get("return_token_ids"):
            return Say(body=json.dumps({"choices": [choice]}))
        choice["token_ids"] = drawn
        return Say(body=json.dumps({"choices": [choice], "prompt_token_ids": ids}))

    def _next(self, prompts: list[list[int]]) -> list[torch.Tensor]:
        """Log-probabilities after each prompt: padding on the right is never seen."""
        found: list[torch.Tensor] = []
        for start in range(0, len(prompts), 8):
            part = prompts[start : start + 8]
            width = max(map(len, part))
            rows = torch.tensor([[*ids, *[0] * (width - len(ids))] for ids in part])
            ends = torch.tensor([[len(ids) - 1] for ids in part])
            with torch.inference_mode():
                states = self.model.model(input_ids=rows, use_cache=False).last_hidden_state
                logits = self.model.lm_head(states.take_along_dim(ends[..., None], 1))[:, 0]
            found += list(logits.double().log_softmax(-1))
        return found

    def _completion(
        self, ids: list[int], body: dict[str, Any], step: torch.Tensor | None
    ) -> dict[str, Any]:
        if step is None:
            drawn, steps, reason = self._draw(ids, body, {})
        else:
            drawn, steps, reason = [int(step.argmax())], [step], "length"
        given: dict[str, Any] = {"text": self._text(drawn, body), "finish_reason": reason}
        if body.get("echo"):
            given["text"] = self.tokenizer.decode(ids) + given["text"]
        if "logprobs" in body:
            tops = [
                {near["token"]: near["logprob"] for near in self._near(step, body)}
                for step in steps
            ]
            given["logprobs"] = {"top_logprobs": tops}
        return given | ({"token_ids": drawn} if body.get("return_token_ids") else {})

    def _draw(
        self, ids: list[int], body: dict[str, Any], vision: dict[str, Any]
    ) -> tuple[list[int], list[torch.Tensor], str]:
        """Greedy, with a full forward per token."""
        drawn: list[int] = []
        steps: list[torch.Tensor] = []
        while len(drawn) < body["max_tokens"]:
            row = torch.tensor([[*ids, *drawn]])
            if vision:
                types = (row == self.model.config.image_token_id).int()
                vision = {**vision, "mm_token_type_ids": types}
            with torch.inference_mode():
                logits = self.model(input_ids=row, use_cache=False, **vision).logits[0, -1]
            steps.append(logits.double().log_softmax(-1))
            drawn.append(int(steps[-1].argmax()))
            stopped = any(stop in self.tokenizer.decode(drawn) for stop in body.get("stop", []))
            if stopped or drawn[-1] == self.tokenizer.convert_tokens_to_ids(END):
                return drawn, steps, "stop"
        return drawn, steps, "length"

    def _text(self, drawn: list[int], body: dict[str, Any]) -> str:
        text = str(self.tokenizer.decode(drawn, skip_special_tokens=True))
        for stop in body.get("stop", []):
            text = text.partition(stop)[0]
        return text

    def _render(self, body: dict[str, Any]) -> tuple[list[int], dict[str, Any]]:
        turns, pictures = [], []
        for turn in body["messages"]:
            parts = turn["content"]
            parts = [{"type": "text", "text": parts}] if isinstance(parts, str) else list(parts)
            for place, part in enumerate(parts):
                if part["type"] == "image_url":
                    payload = part["image_url"]["url"].partition(",")[2]
                    picture = Image.open(io.BytesIO(base64.b64decode(payload))).convert("RGB")
                    parts[place] = {"type": "image", "image": picture}
                    pictures.append(picture)
            turns.append({"role": turn["role"], "content": parts})
        continued = body.get("continue_final_message", False)
        encoded = self.processor.apply_chat_template(
            [turns],
            tokenize=True,
            return_dict=True,
            add_generation_prompt=body.get("add_generation_prompt", True),
            continue_final_message=continued,
            processor_kwargs={} if pictures else {"return_tensors": None},
        )
        ids = [int(token) for token in encoded["input_ids"][0]]
        keys = ("pixel_values", "image_grid_thw") if pictures else ()
        return ids, {key: torch.as_tensor(encoded[key]) for key in keys}

    def _near(self, logprobs: torch.Tensor, body: dict[str, Any]) -> list[dict[str, Any]]:
        wanted = body.get("logprob_token_ids") if self.knows_token_ids else None
        tokens = wanted or logprobs.topk(body.get("top_logprobs", 1)).indices.tolist()
        return [self._shown(token, logprobs, body) for token in tokens]

    def _shown(self, token: int, logprobs: torch.Tensor, body: dict[str, Any]) -> dict[str, Any]:
        by_id = self.knows_token_ids and body.get("return_tokens_as_token_ids")
        name = f"token_id:{token}" if by_id else self.tokenizer.decode([token])
        return {"token": name, "logprob": float(logprobs[token])}
