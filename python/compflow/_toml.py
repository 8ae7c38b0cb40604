"""Pipelines as TOML: Python reads that format and does not write it."""

from __future__ import annotations

import json


def dumps(pipeline: dict) -> str:
    """The text of a pipeline file."""
    plain = {name: value for name, value in pipeline.items() if not is_tables(value) and name != "composer"}
    lines = [f"{key(name)} = {inline(value)}" for name, value in plain.items()]
    if "composer" in pipeline:
        lines += ["", "[composer]", *entries(pipeline["composer"])]
    for name, tables in pipeline.items():
        for table in tables if is_tables(tables) else []:
            lines += ["", f"[[{name}]]", *entries(table)]
    return "\n".join(lines) + "\n"


def is_tables(value) -> bool:
    """Whether this is a list of tables."""
    return isinstance(value, list) and bool(value) and all(isinstance(item, dict) for item in value)


def entries(table: dict) -> list[str]:
    """A line for each."""
    return [f"{key(name)} = {inline(value)}" for name, value in table.items()]


def key(name: str) -> str:
    """A name, in quotes where it needs them."""
    return name if name and all(c.isascii() and (c.isalnum() or c in "-_") for c in name) else json.dumps(name)


def inline(value) -> str:
    """A value on one line."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key(name)} = {inline(inner)}" for name, inner in value.items()) + " }"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(inline(inner) for inner in value) + "]"
    if isinstance(value, float):
        return repr(value)
    return json.dumps(value, ensure_ascii=False)
