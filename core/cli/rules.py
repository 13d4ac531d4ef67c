"""Business rules from the command line: print, check and save, try."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from core.cli.base import (
    JsonOption,
    ViewerOption,
    app,
    corpus_of,
    errors,
    opened,
    show,
    viewer_of,
)
from core.errors import RankscopeError
from core.sample import SAMPLE


@app.command()
def rules(
    collection: Annotated[str, typer.Argument(help="The collection.")] = SAMPLE,
    file: Annotated[
        Path | None, typer.Option("--set", help="Check the rules of a TOML file and save them.")
    ] = None,
    query: Annotated[
        str | None, typer.Option("--preview", help="What the rules do to a query's items.")
    ] = None,
    viewer: ViewerOption = None,
    as_json: JsonOption = False,
) -> None:
    """Print a collection's business rules as TOML; with --set, replace them by a file's.

    With --preview, --set saves nothing: the file's rules are tried. A file with a fault is told with every
    line and reason, and nothing is applied.
    """
    from core.rules import Rules

    if viewer is not None and query is None:
        raise typer.BadParameter("--as WHO goes with --preview QUERY: give that too, or leave --as out")
    with errors():
        store = opened(collection)
        text = store.rules_text() if file is None else _read(file)
        read = Rules.from_toml(text)
        if query is not None:
            _preview(collection, read, query, viewer, as_json)
            return
        if file is not None:
            store.save_rules(text)
    listed = [{"name": rule.name, "on": rule.on, "action": rule.action} for rule in read.rules]
    if as_json:
        show({"rules": listed, "toml": text, "saved": file is not None}, True, "")
    elif file is not None:
        on = sum(rule.on for rule in read.rules)
        typer.echo(f"saved {len(read)} {'rule' if len(read) == 1 else 'rules'} in {collection}, {on} on")
    else:
        typer.echo(text, nl=not text.endswith("\n"))


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise RankscopeError(f"{file} is not a text in UTF-8; save it as UTF-8") from None


def _preview(collection: str, read: Any, query: str, viewer: str | None, as_json: bool) -> None:
    from core.report.rules_preview import preview

    settings = opened(collection).settings().search
    corpus = corpus_of(collection)
    found = preview(corpus, read, query, settings, viewer_of(viewer))
    names = found.trace.corpus.item_names
    touches = [
        {
            "rule": touch.rule.name,
            "holds": not touch.rests,
            "why_not": touch.rests,
            "items": None if touch.items is None else len(touch.items),
        }
        for touch in found.touches
    ]
    moved: list[dict[str, Any]] = [
        {"document": names[row.item], "before": row.before, "after": row.after, "said": list(row.said)}
        for row in found.moved
    ]
    lines = [
        *(
            f"{touch['rule']}: {touch['why_not'] or 'holds'}; about "
            f"{'items that cannot be told' if touch['items'] is None else touch['items']}"
            for touch in touches
        ),
        "",
        *(
            f"{row['before'] or '–':>5} → {row['after'] or '–':>5}  {row['document']}  ({'; '.join(row['said'])})"
            for row in moved
        ),
        *(f"note: {note}" for note in found.notes),
    ]
    show({"rules": touches, "items": moved, "notes": list(found.notes)}, as_json, "\n".join(lines))
