"""YAML files that people write: mappings, recipes, rubrics."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import yaml


@contextmanager
def yaml_errors() -> Iterator[None]:
    """Raise every error of PyYAML as a ``YAMLError``.

    Deep nesting, numbers with thousands of digits, dates that no calendar has and other values that
    are not what their tag says end in other exceptions there.
    """
    try:
        yield
    except RecursionError:
        raise yaml.YAMLError("nested too deeply") from None
    except (ArithmeticError, AttributeError, LookupError, ValueError) as error:
        raise yaml.YAMLError(f"a value cannot be read: {error}") from None


def load_yaml(text: str, loader: type[yaml.SafeLoader | yaml.BaseLoader] = yaml.SafeLoader) -> Any:
    """Decode a YAML document in which no key occurs twice; YAML itself would take the last one.

    Raises ``yaml.YAMLError``. ``loader`` decides the types of values.
    """
    with yaml_errors():
        reader = loader(text)
        document = reader.get_single_node()
        if document is None:
            return None
        _check_keys(document, set())
        return reader.construct_document(document)


def _check_keys(node: yaml.Node, checked: set[int]) -> None:
    """Check a node and its parts, each once, as aliases may repeat a node many times."""
    if id(node) in checked:
        return
    checked.add(id(node))
    keys: set[tuple[str, Any]] = set()
    if isinstance(node, yaml.SequenceNode):
        for part in node.value:
            _check_keys(part, checked)
    elif isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if isinstance(key, yaml.ScalarNode):
                if (key.tag, key.value) in keys:
                    raise yaml.constructor.ConstructorError(
                        problem=f"the key '{key.value}' occurs twice", problem_mark=key.start_mark
                    )
                keys.add((key.tag, key.value))
            _check_keys(value, checked)
