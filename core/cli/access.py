"""Who may see which documents, from the command line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import typer

from core.cli.base import JsonOption, app, errors, opened, show
from core.errors import RankscopeError
from core.sample import SAMPLE

_SHOWN = 20  # names under one list of users and groups


@app.command()
def access(
    collection: Annotated[
        str, typer.Argument(metavar="COLLECTION", help="The collection; the sample when not given.")
    ] = SAMPLE,
    documents: Annotated[
        list[str] | None,
        typer.Argument(metavar="[DOCUMENT]...", help="Documents to set, by id, file name or title."),
    ] = None,
    readers: Annotated[
        str | None,
        typer.Option(
            "--set",
            metavar="WHO",
            help='Who may see them: everyone, nobody, or such as "anna@example.org, group:finance".',
        ),
    ] = None,
    field: Annotated[
        str | None,
        typer.Option(
            "--from-field", metavar="NAME", help="Set each document by its metadata field of this name."
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """List who may see which documents, or set it. Who may see all, such as you here, sees all still."""
    from core.access import parse_access, written_access

    if (readers is None) != (not documents):
        raise typer.BadParameter("--set WHO goes with one DOCUMENT or more, and they with --set WHO")
    if readers is not None and not readers.strip():  # such as a variable that is unset
        raise typer.BadParameter("--set is blank; write everyone, nobody, or users and groups")
    with errors():
        store = opened(collection)
        if readers is not None:
            ids = _named(store.documents(), documents or ())
            count = store.set_access(ids, parse_access(readers))
            typer.echo(f"note: {count} set for {written_access(parse_access(readers))}", err=True)
        if field is not None:
            count, problems = store.set_access_from_field(field)
            for problem in problems:
                typer.echo(f"note: {problem}", err=True)
            typer.echo(f"note: {count} set from {field}", err=True)
        kept = store.documents()
    rows = [
        {"id": one, "name": name, "title": title, "access": written_access(who)}
        for one, name, title, who in zip(kept.ids, kept.names, kept.titles, kept.access, strict=True)
    ]
    show(rows, as_json, _by_readers(rows))


def _named(documents: Any, wanted: Sequence[str]) -> list[str]:
    """Ids of the documents that have these ids, file names or titles; a file name may be that of many."""
    ids: dict[str, None] = {}
    for name in wanted:
        for among in (documents.ids, documents.names, documents.titles):
            found = [one for one, known in zip(documents.ids, among, strict=True) if known == name]
            if found:
                break
        else:
            raise RankscopeError(
                f"no document has the id, file name or title {name!r}; `rankscope access` lists them"
            )
        ids |= dict.fromkeys(found)
    return list(ids)


def _by_readers(rows: Sequence[dict[str, str]]) -> str:
    groups: dict[str, list[str]] = {}
    for row in rows:
        groups.setdefault(row["access"], []).append(row["title"] or row["name"])
    lines = []
    for who, names in groups.items():
        lines.append(f"{who}: {len(names):,} {'document' if len(names) == 1 else 'documents'}")
        lines += [f"  {name}" for name in names[:_SHOWN]]
        if len(names) > _SHOWN:
            lines.append(f"  … and {len(names) - _SHOWN:,} more: --json lists all")
    return "\n".join(lines)
