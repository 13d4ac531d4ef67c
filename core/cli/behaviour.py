"""The command that shows, imports, exports and erases what people did with a collection's results."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Annotated

import typer

from core.cli.base import JsonOption, app, errors, opened, show
from core.sample import SAMPLE


@app.command()
def behaviour(
    collection: Annotated[
        str, typer.Argument(metavar="COLLECTION", help="The collection; the sample when not given.")
    ] = SAMPLE,
    on: Annotated[
        bool | None, typer.Option("--on/--off", help="Record what people do with results, or no more.")
    ] = None,
    imported: Annotated[
        list[Path] | None,
        typer.Option(
            "--import",
            metavar="FILE",
            help="Add a click log: CSV, or UBI as JSON or JSONL; given again for a log in several files.",
        ),
    ] = None,
    export: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write all events: .csv a table, .jsonl or .json UBI events."),
    ] = None,
    erase: Annotated[
        str | None, typer.Option(metavar="USER", help="Delete all events of a user, for good.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """What people did with results: whether it is recorded, how much there is, and of whom."""
    from core.behaviour.forms import read_log, to_csv, to_ubi
    from core.behaviour.store import Behaviour

    with errors():
        store = opened(collection)
        kept = Behaviour(store)
        if on is not None:
            kept.switch(on)
        if imported:
            log = read_log({str(path): path.read_bytes() for path in imported}, store.documents())
            added = kept.add(log, store.documents())
            for problem in added.problems:
                typer.echo(f"note: {problem}", err=True)
            typer.echo(
                f"imported: {added.new:,} new, {added.same:,} here already, {added.strays:,} kept apart",
                err=True,
            )
        if erase is not None:
            typer.echo(f"erased of {erase!r}: {kept.erase(erase):,}", err=True)
        if export:
            events = [*kept.events(), *kept.strays()]
            table = export.suffix.lower() not in (".json", ".jsonl")
            text = to_csv(events, store.documents()) if table else to_ubi(events)
            export.write_text(text, encoding="utf-8", newline="")
            typer.echo(f"written to {export}: {len(events):,}", err=True)
        events, users = kept.events(), kept.users()
        kinds = Counter(one.kind for one in events)
        facts = {
            "recording": kept.on,
            "events": len(events),
            "kinds": dict(kinds.most_common()),
            "queries": len({one.query for one in events}),
            "documents": len({one.document_id for one in events}),
            "apart": len(kept.strays()),
            "users": users,
        }
    listed = ", ".join(f"{count:,} {kind}" for kind, count in kinds.most_common())
    lines = [
        f"recording: {'on' if facts['recording'] else 'off'}",
        f"events: {listed}; queries: {facts['queries']:,}; documents: {facts['documents']:,}"
        if listed
        else "events: none",
    ]
    if facts["apart"]:
        lines.append(f"kept apart, as their document is not here: {facts['apart']:,}")
    lines += [f"{user or 'nobody named'}: {count:,}" for user, count in users.items()]
    show(facts, as_json, "\n".join(lines))
