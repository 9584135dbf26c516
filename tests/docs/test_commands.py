"""Files, modules, commands, options and keys of recipes that the pages name are there."""

import ast
import contextlib
import io
import json
import re
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from itertools import takewhile
from pathlib import Path
from typing import Any

import pytest

from docs.hooks.commands import commands, option_names
from experiments.__main__ import PROGRAMS, main
from judging.tasks import get_task
from judging.types import JudgeRequest
from serve.chat.contract import CHAT_CONTRACTS
from tests.docs.markdown_pages import PAGES, ROOT, blocks, commands_in, commands_of, name_of, spans
from tests.test_imports import TOOLS
from train.methods import method_of, methods
from train.setup.recipe import find_recipe, parse_recipe, read_values, recipe_names

COMMANDS = dict(commands())
ROOMS = sorted(
    path.name
    for path in ROOT.iterdir()
    if path.is_dir() and path.name.isidentifier() and path.name != "custos"
)
REPOSITORY_PATH = re.compile(rf"(?<![\w./-])((?:{'|'.join(ROOMS)}|\.ci)/[\w./*@-]+)")
MADE_HERE = ("data/", "runs/", "build/", "gpu_hour/")
"""Folders that the commands of a page write."""
MODEL_NAME = re.compile(r"\bcustos/(?!custos/|integrations/)([a-z-]+)")
SCORER_OF_INSPECT = "judged"
"""Our scorer as inspect_ai names it."""
FOREIGN_OPTIONS = {
    *("--judge-base-url", "--model_id", "--num_processes"),
    *("--tensor-parallel-size", "--data-parallel-size", "--max-loras", "--max-num-batched-tokens"),
    *("--logprobs-mode", "--dtype", "--max-model-len", "--lora-modules", "--generation-config"),
    *("--work", "--no-cache"),
}
"""Options of vLLM, accelerate, benchmark scripts and experiments that sentences name."""


@pytest.fixture(params=PAGES, ids=name_of)
def page(request: pytest.FixtureRequest) -> Path:
    path: Path = request.param
    return path


def test_commands_are_found_in_text() -> None:
    text = "A=1 B=2 custos prep x \\\n  --out y | head  # no\nmake demo && custos --version"
    assert list(commands_in(text)) == [
        ["custos", "prep", "x", "--out", "y"],
        ["make", "demo"],
        ["custos", "--version"],
    ]


def test_files_exist(page: Path) -> None:
    shell = "\n".join(block.text for block in blocks(page) if block.language == "sh")
    named = REPOSITORY_PATH.findall("\n".join([shell, *spans(page)]))
    titles = {block.title for block in blocks(page)}
    missing = {
        path
        for path in named
        if not path.startswith(MADE_HERE)
        and path not in titles
        and not any(ROOT.glob(path.rstrip("/.")))
    }
    assert missing == set()


def test_commands_of_custos(page: Path) -> None:
    for words in commands_of(page):
        if words[0] == "custos" and len(words) > 1:
            check_custos(words)


def check_custos(words: list[str]) -> None:
    name, rest = "custos", words[1:]
    while rest and f"{name} {rest[0]}" in COMMANDS:
        name, rest = f"{name} {rest[0]}", rest[1:]
    is_group = any(other.startswith(f"{name} ") for other in COMMANDS)
    first = rest[0] if rest else ""
    assert not is_group or not first or first.startswith("-"), f"no command: {' '.join(words)}"
    options = {word.partition("=")[0] for word in rest if word.startswith("--")}
    assert options <= option_names(COMMANDS[name]), " ".join(words)


@pytest.mark.parametrize("name", recipe_names())
def test_commands_at_the_head_of_a_recipe(name: str) -> None:
    """Check the head of a recipe: its first command trains, the others make what it needs."""
    path = find_recipe(name)
    lines = path.read_text(encoding="utf-8").splitlines()
    head = "\n".join(line[1:] for line in takewhile(lambda line: line.startswith("#"), lines))
    first, *others = commands_in(head)
    method = method_of(path, read_values(path))
    script = method.script
    assert f"train/{script}.py" in first
    recipe = first[first.index("--config") + 1] if "--config" in first else f"recipes/{script}.yaml"
    assert ROOT / recipe == path
    parse_recipe(method.recipe_class, path)
    for words in others:
        if words[0] == "custos":
            check_custos(words)


def test_options_in_sentences(page: Path) -> None:
    known = set().union(*map(option_names, COMMANDS.values()), FOREIGN_OPTIONS)
    named = {span.partition(" ")[0].partition("=")[0] for span in spans(page) if span[:2] == "--"}
    assert named <= known


def test_model_names_are_chat_contracts(page: Path) -> None:
    for span in spans(page):
        for name in MODEL_NAME.findall(span):
            assert name in {*CHAT_CONTRACTS.names(), SCORER_OF_INSPECT}, span


def test_programs_of_python(page: Path) -> None:
    for words in commands_of(page):
        if words[0] != "python" or "-m" not in words:
            continue
        module, *rest = words[words.index("-m") + 1 :]
        assert find_spec(module), " ".join(words)
        if module == "experiments" and rest and rest[0].isidentifier() and not rest[0].isupper():
            assert rest[0] in PROGRAMS, " ".join(words)
            options = {word for word in rest if word.startswith("--")}
            assert options <= experiment_options(rest[0]) | {"--help"}, " ".join(words)


@cache
def experiment_options(name: str) -> frozenset[str]:
    text = io.StringIO()
    with contextlib.redirect_stdout(text), pytest.raises(SystemExit) as ended:
        main([name, "--help"])
    assert ended.value.code == 0
    return frozenset(re.findall(r"--[a-z][a-z-]*", text.getvalue()))


def test_training_commands(page: Path) -> None:
    models = {method.script: method.recipe_class for method in methods().values()}
    copied = {words[-1] for words in commands_of(page) if words[1:3] == ["recipe", "copy"]}
    for words in commands_of(page):
        if words[:2] != ["accelerate", "launch"] or len(words) == 2:
            continue
        script = words[words.index("-m") + 1] if "-m" in words else None
        script = script or next((word for word in words if word.startswith("train/")), "")
        name = re.sub(r"^train[./]|\.py$", "", script)
        assert name in {*models, "run"} or name.isupper(), " ".join(words)
        if "--config" in words:
            recipe = words[words.index("--config") + 1]
            is_named = recipe in recipe_names() or recipe in copied or recipe.isupper()
            assert is_named or (ROOT / recipe).is_file(), " ".join(words)
        for key in (word.partition("=")[0] for word in words if re.match(r"[a-z_.]+=", word)):
            assert has_key(models[name], key), f"{key}: {' '.join(words)}"


def has_key(model: Any, key: str) -> bool:
    first, _, rest = key.partition(".")
    if first not in model.model_fields:
        return False
    return not rest or has_key(model.model_fields[first].annotation, rest)


def test_targets_of_make(page: Path) -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for words in commands_of(page):
        if words[0] == "make":
            for target in words[1:]:
                is_variable = re.match(r"[A-Z]+=", target)
                assert is_variable or re.search(rf"^{target}:", makefile, re.M), " ".join(words)


def test_rows_are_requests(page: Path) -> None:
    decoder = json.JSONDecoder()
    for block in blocks(page):
        rest = block.text.strip() if block.language == "json" else ""
        while rest:
            value, end = decoder.raw_decode(rest)
            rest = rest[end:].strip()
            if "question" in value:
                request = JudgeRequest.model_validate(value)
                get_task(request.task).check(request)


def test_python_blocks_import_what_exists(page: Path) -> None:
    modules_of_the_page = {
        block.title.removesuffix(".py").replace("/", ".") for block in blocks(page) if block.title
    }
    for block in blocks(page):
        if block.language != "python":
            continue
        for node in ast.walk(ast.parse(block.text)):
            if isinstance(node, ast.ImportFrom) and node.module not in modules_of_the_page:
                assert node.module
                parts = node.module.split(".")
                if (TOOLS | {"openevals"}) & {parts[0], parts[-1]}:
                    continue  # these blocks run in the tools' environments: tests/harness
                module = import_module(node.module)
                for alias in node.names:  # a module is an attribute only once it is imported
                    name = f"{node.module}.{alias.name}"
                    assert hasattr(module, alias.name) or find_spec(name), name


def test_every_experiment_is_on_its_page() -> None:
    named = set(spans(ROOT / "docs" / "experiments.md"))
    assert set(PROGRAMS) <= named
