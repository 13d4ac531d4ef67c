"""The layering that core/README.md states, read from the real imports."""

from __future__ import annotations

import ast
import sys
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[2]
LAYERS = [
    {"errors", "types", "text", "stopwords", "settings", "passages", "trace", "protocols", "sealed"}
    | {"access", "filters"},
    {"fusion", "explanation", "chunking", "prompts", "fields", "rules", "signals"},
    {"loading", "vectors_cache", "indexes", "collection", "documents", "home", "database"}
    | {"torch_models", "embedding", "hosted", "hosted_embedding", "small_embedders", "llm", "prices"}
    | {"contextualizing", "reranking", "behaviour"},
    {"corpus", "chunk_table", "extras", "sample"},
    {"pipeline"},
    {"evaluation", "answering"},
    {"report"},
    {"cli"},
]
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}
ONE_FILE_FREE = {"numpy", "pydantic", "core", "typer", "tomli_w"}


def imports_of(path: Path) -> list[tuple[str, int]]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [(alias.name, node.lineno) for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.append((node.module, node.lineno))
    return found


def part_of(path: Path) -> str:
    return path.relative_to(ROOT / "core").parts[0].removesuffix(".py")


SOURCES = [
    path
    for path in sorted((ROOT / "core").rglob("*.py"))
    if path.parent != ROOT / "core" or path.stem != "__init__"
]


def test_every_part_has_a_layer() -> None:
    assert {part_of(path) for path in SOURCES} == set(LEVEL)


def test_imports_go_downward_only() -> None:
    upward = [
        f"{path.relative_to(ROOT)}:{line} imports {name}"
        for path in SOURCES
        for name, line in imports_of(path)
        if name.startswith("core.") and LEVEL[name.split(".")[1]] > LEVEL[part_of(path)]
    ]
    assert upward == []


def test_core_never_imports_streamlit_or_pages() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line}"
        for path in SOURCES
        for name, line in imports_of(path)
        if name.split(".")[0] in ("streamlit", "pages", "app")
    ]
    assert found == []


def test_a_third_party_library_is_imported_in_one_file() -> None:
    files: dict[str, set[str]] = defaultdict(set)
    for path in SOURCES:
        for name, _ in imports_of(path):
            top = name.split(".")[0]
            if top not in sys.stdlib_module_names and top not in ONE_FILE_FREE:
                files[top].add(str(path.relative_to(ROOT)))
    assert {library: sorted(where) for library, where in files.items() if len(where) > 1} == {}
