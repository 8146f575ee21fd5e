"""YAML files that people write, read as plain data."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import yaml

from deployments import validation


class NotYaml(ValueError):
    """The file holds no YAML. The message quotes nothing of it.

    Attributes:
        detail: one line that may quote it.
    """

    def __init__(self, message: str, detail: str) -> None:
        super().__init__(message)
        self.detail = detail


def read(path: Path) -> Any:
    """What a file holds.

    Raises:
        OSError: it cannot be read.
        NotYaml: it is not UTF-8, not YAML, has a key twice, or a value that is not what it
            looks like.
    """
    try:
        return _load(path.read_text(encoding="utf-8"))
    except (OSError, NotYaml):
        raise
    except UnicodeDecodeError as error:
        raise NotYaml("is not UTF-8", error.reason) from error
    except RecursionError as error:
        raise NotYaml("is nested too deeply", "") from error
    except Exception as error:  # PyYAML's constructors raise whatever they meet: a wrong date
        line = getattr(getattr(error, "problem_mark", None), "line", None)
        where = "" if line is None else f" (line {line + 1})"
        reason = getattr(error, "problem", None) or getattr(error, "reason", None) or error
        raise NotYaml(f"is not YAML{where}", " ".join(str(reason).split())) from error


def sentence(error: Any) -> str:
    """What one of pydantic's errors says of a value of a file, without where it was."""
    said = validation.sentence(error)
    if error["type"] == "string_type" and isinstance(error["input"], bool | int | float | date):
        return f"{said}: write it in quotes"  # YAML takes 2026-11-30 for a date, 007 for a number
    return said


def _load(text: str) -> Any:
    loader = yaml.CSafeLoader(text)
    try:
        root = loader.get_single_node()
        if root is None:
            return None
        if (key := _repeated(root)) is not None:
            # PyYAML would keep the last one: of two lists of guards, say, the more lenient.
            line = key.start_mark.line + 1
            raise NotYaml(f"has the same key twice in one place (line {line})", key.value)
        return loader.construct_document(root)
    finally:
        loader.dispose()


def _repeated(root: yaml.Node) -> yaml.ScalarNode | None:
    """A key that stands in its mapping a second time, anywhere below a node."""
    waiting, seen = [root], {id(root)}  # a node may contain itself
    while waiting:
        node = waiting.pop()
        children: list[yaml.Node] = []
        if isinstance(node, yaml.MappingNode):
            keys = set()
            for key, value in node.value:
                children += (key, value)
                if isinstance(key, yaml.ScalarNode):
                    if (key.tag, key.value) in keys:
                        return key
                    keys.add((key.tag, key.value))
        elif isinstance(node, yaml.SequenceNode):
            children += node.value
        waiting += [child for child in children if id(child) not in seen]
        seen.update(map(id, children))
    return None
