"""The commands that need no model's service."""

from __future__ import annotations

import os
import runpy
import sys
from collections.abc import Iterator
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from core.cli.base import (
    CollectionOption,
    JsonOption,
    LimitOption,
    SetOption,
    SettingsOption,
    ViewerOption,
    app,
    corpus_of,
    errors,
    opened,
    sample_if_asked,
    search_settings,
    show,
    trace_of,
)
from core.errors import LoadError, RankscopeError
from core.sample import SAMPLE
from core.settings import DEFAULT_MODEL, ChunkSettings

ROOT = Path(__file__).parents[2]
_CUT = ChunkSettings()  # shown as the app would cut, where nothing else is asked for


@app.command()
def ui(
    port: Annotated[int, typer.Option(help="The port to serve on.")] = 8501,
    host: Annotated[
        str, typer.Option(help="The address to serve on; localhost unless you mean it.")
    ] = "localhost",
    browser: Annotated[bool, typer.Option(help="Open the browser.")] = True,
) -> None:
    """Open the app."""
    sys.argv = ["streamlit", "run", str(ROOT / "app.py"), "--server.port", str(port)]
    sys.argv += ["--server.address", host, "--server.headless", "false" if browser else "true"]
    os.chdir(ROOT)  # Streamlit reads .streamlit/config.toml from the working folder
    # In this process, not a child: what stops `rankscope ui` stops the server.
    runpy.run_module("streamlit", run_name="__main__", alter_sys=True)


@app.command()
def collections(as_json: JsonOption = False) -> None:
    """List the collections."""
    from core.collection import list_collections, open_collection

    rows = []
    with errors():
        for info in list_collections():
            store = open_collection(info.name)
            rows.append(
                {"name": info.name, "files": len(store.files()), "documents": len(store.documents())}
            )
    show(
        rows,
        as_json,
        "\n".join(f"{r['name']}: {r['files']} files, {r['documents']} documents" for r in rows),
    )


@app.command()
def add(
    files: Annotated[list[Path], typer.Argument(help="Files, or folders with all that is in them.")],
    collection: CollectionOption = SAMPLE,
    records: Annotated[
        Literal["items", "table"],
        typer.Option(help="For CSV, TSV, JSON, JSONL: each record an item, or one table."),
    ] = "items",
    prechunked: Annotated[
        bool,
        typer.Option(help="JSONL holds chunks made elsewhere: document with start and end, or text."),
    ] = False,
    encoding: Annotated[str | None, typer.Option(help="Text encoding, when the guess is wrong.")] = None,
    replace: Annotated[
        bool, typer.Option(help="A file of the same name is replaced, not kept beside.")
    ] = False,
    access: Annotated[
        str | None,
        typer.Option(
            metavar="WHO",
            help='Who may see their documents, from the first moment: such as "group:legal"; else everyone, '
            "or those who saw what is replaced.",
        ),
    ] = None,
    index: Annotated[bool, typer.Option(help="Embed and index afterwards.")] = True,
    as_json: JsonOption = False,
) -> None:
    """Add files to a collection, made if it is new. A file that fails is named; the rest go on.

    The password of an encrypted PDF is read from RANKSCOPE_PDF_PASSWORD.
    """
    from core.access import Access, parse_access
    from core.collection import open_or_create
    from core.loading import LoadOptions, load

    if access is not None and not access.strip():  # such as a variable that is unset
        raise typer.BadParameter("--access is blank; write everyone, nobody, or users and groups")
    options = LoadOptions(
        password=os.environ.get("RANKSCOPE_PDF_PASSWORD"),
        encoding=encoding,
        records=records,
        prechunked=prechunked,
    )
    with errors():
        readers: Access | Literal["kept"] = "kept" if access is None else parse_access(access)
        sample_if_asked(collection)
        store = open_or_create(collection)
        rows = []
        for path, name in _walk(files):
            row: dict[str, Any] = {"file": name}
            try:
                data = path.read_bytes()
                loaded = load(data, name, options)
                old = store.find_by_name(name)
                if old and replace and old.file_hash != loaded.file_hash:
                    result = store.replace(old.file_hash, loaded, name, len(data), readers)
                else:
                    who = None if readers == "kept" else readers
                    result = store.add(loaded, name, len(data), who)
                row |= {
                    "status": result.status,
                    "documents": len(loaded.documents),
                    "warnings": list(loaded.warnings),
                    "pages": loaded.pages,
                    "characters": loaded.characters,
                    "headings": loaded.headings,
                }
                if result.note and (access is not None or result.file.name != name):
                    row["warnings"].append(result.note)
                if old and result.status == "added":
                    row["warnings"].append(
                        "another file of this name was kept beside it; --replace replaces it"
                    )
            except (LoadError, OSError) as error:
                row |= {"status": "failed", "error": str(error)}
            rows.append(row)
            if not as_json:
                _say_added(row)
        if index:
            corpus_of(collection)
    if as_json:
        show(rows, True, "")
    if any(row["status"] == "failed" for row in rows):
        raise typer.Exit(1)


@app.command()
def chunks(
    file: Annotated[Path, typer.Argument(help="The file to cut; nothing is stored.")],
    strategy: Annotated[
        str, typer.Option(help="fixed, sentences, recursive, headings or semantic.")
    ] = _CUT.strategy,
    size: Annotated[int, typer.Option(help="The most a chunk may hold.")] = _CUT.size,
    overlap: Annotated[int, typer.Option(help="How much the next chunk repeats.")] = _CUT.overlap,
    unit: Annotated[str, typer.Option(help="characters or tokens")] = _CUT.unit,
    model: Annotated[
        str, typer.Option(help="The embedding model whose tokens are counted.")
    ] = DEFAULT_MODEL,
    as_json: JsonOption = False,
) -> None:
    """Show how a file would be cut, with characters and the model's own tokens."""
    from core.chunking import chunk_document
    from core.embedding import load_embedder
    from core.loading import load
    from core.vectors_cache import embed_checked

    with errors():
        settings = ChunkSettings(strategy=strategy, size=size, overlap=overlap, unit=unit)
        embedder = load_embedder(model)
        embed = partial(embed_checked, embedder)
        rows: list[dict[str, Any]] = []
        for document in load(file.read_bytes(), file.name).documents:
            cut = chunk_document(document, settings, embedder.count_tokens, embed)
            counts = embedder.count_tokens([chunk.indexed_text for chunk in cut])
            rows += [
                {
                    "id": c.id,
                    "start": c.start,
                    "end": c.end,
                    "characters": c.end - c.start,
                    "tokens": tokens,
                    "truncated": tokens > embedder.max_tokens,
                    "headings": list(c.heading_path),
                    "pages": list(c.pages),
                    "text": c.text,
                }
                for c, tokens in zip(cut, counts, strict=True)
            ]
    lines = [
        f"{r['start']:>8}–{r['end']:<8} {r['characters']:>6} characters {r['tokens']:>5} tokens"
        f"{' (cut off by the model)' if r['truncated'] else ''}  {' > '.join(r['headings'])}"
        for r in rows
    ]
    show(rows, as_json, "\n".join(lines))


@app.command()
def search(
    query: Annotated[str, typer.Argument(help="What to search for.")],
    collection: CollectionOption = SAMPLE,
    changes: SetOption = None,
    settings: SettingsOption = None,
    viewer: ViewerOption = None,
    limit: LimitOption = None,
    as_json: JsonOption = False,
) -> None:
    """Search, and print every stage: what each index found, the fusion, the merged passages."""
    from core.report.export import trace_to_dict

    with errors():
        trace = trace_of(query, collection, changes, settings, viewer)
        found = trace_to_dict(trace, limit)
    show(found, as_json, "" if as_json else _as_text(found, limit or 5))


@app.command()
def explain(
    query: Annotated[str, typer.Argument(help="What to search for.")],
    chunk: Annotated[str, typer.Argument(help="A chunk id, or the rank of a passage, such as 1.")],
    collection: CollectionOption = SAMPLE,
    changes: SetOption = None,
    settings: SettingsOption = None,
    viewer: ViewerOption = None,
    as_json: JsonOption = False,
) -> None:
    """Why a chunk is in the result, or where it was lost, with the arithmetic."""
    from core.explanation import explain as explain_chunk

    with errors():
        trace = trace_of(query, collection, changes, settings, viewer)
        if chunk.isdecimal():
            if not 1 <= int(chunk) <= len(trace.passages):
                raise RankscopeError(
                    f"there is no passage {chunk}; the result has {len(trace.passages)}"
                )
            position = trace.passages[int(chunk) - 1].best
        else:
            try:
                position = trace.corpus.position_of(chunk)
            except KeyError as error:
                raise RankscopeError(str(error.args[0])) from None
        story = explain_chunk(trace, position)
        terms = {name: [term._asdict() for term in listed] for name, listed in story.terms.items()}
        found = asdict(story) | {"terms": terms}
    lines = [found["sentence"], ""]
    for step in found["steps"]:
        place = (
            f"rank {step['rank']}, score {step['score']:.5g}"
            if step["rank"]
            else step["lost"] or step["note"]
        )
        lines.append(f"{step['title']:<16} {place}  {step['arithmetic']}")
    for name, terms in found["terms"].items():
        lines.append(f"\n{name}: term, tf, df, idf, contribution")
        lines += [
            f"  {t['term']:<20} {t['tf']:>4} {t['df']:>5} {t['idf']:.3f} {t['contribution']:.4f}"
            for t in terms
        ]
    show(found, as_json, "\n".join(lines))


@app.command()
def export(
    query: Annotated[str, typer.Argument(help="What to search for.")] = "",
    form: Annotated[
        str, typer.Option("--format", "-f", help="json, csv, trec, toml or python")
    ] = "json",
    stage: Annotated[str, typer.Option(help="trec: the stage whose ranking is written.")] = "kept",
    collection: CollectionOption = SAMPLE,
    changes: SetOption = None,
    settings: SettingsOption = None,
    viewer: ViewerOption = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="A file; standard output if not given.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Write a trace (json, csv, trec) or the settings (toml, python)."""
    from core.report import export as exporter

    form = "json" if as_json else form
    if form not in ("json", "csv", "trec", "toml", "python"):
        raise typer.BadParameter(f"format {form!r}; choose json, csv, trec, toml or python")
    with errors():
        if form in ("toml", "python"):
            store = opened(collection)
            both = store.settings().replace(search=search_settings(store, changes, settings))
            if form == "toml":
                text = both.to_toml()
            else:
                text = exporter.settings_to_python(both, collection, query)
        else:
            trace = trace_of(query, collection, changes, settings, viewer)
            if form == "trec":
                try:
                    text = exporter.trace_to_trec(trace, stage)
                except KeyError as error:
                    raise RankscopeError(str(error.args[0])) from None
            else:
                text = exporter.trace_to_json(trace) if form == "json" else exporter.trace_to_csv(trace)
        if output is None:
            typer.echo(text, nl=not text.endswith("\n"))
        else:
            output.write_text(text, encoding="utf-8")


def _walk(paths: list[Path]) -> Iterator[tuple[Path, str]]:
    """Files with the names to show: in a folder the way from it, or else files of one name in two of its
    folders would replace each other."""
    from core.loading import safe_name

    for path in paths:
        if path.is_dir():
            for file in sorted(p for p in path.rglob("*") if p.is_file()):
                yield file, safe_name(file.relative_to(path).as_posix())
        else:
            yield path, safe_name(path.name)


def _say_added(row: dict[str, Any]) -> None:
    if row["status"] == "failed":
        typer.echo(f"{row['file']}: {row['error']}", err=True)
        return
    typer.echo(
        f"{row['file']}: {row['status']}, {row['documents']} documents, {row['pages']} pages, "
        f"{row['characters']:,} characters, {row['headings']} headings"
    )
    for warning in row["warnings"]:
        typer.echo(f"  note: {warning}", err=True)


def _named(line: dict[str, Any]) -> str:
    """The file's name, and the item's title where that is another: a file may hold many items."""
    name, title = str(line["name"]), " ".join(line["title"].split())
    return name if title in ("", name, Path(name).stem) else f"{name} “{title}”"


def _as_text(found: dict[str, Any], lines_shown: int) -> str:
    lines = [f"note: {note}" for note in found["notes"]]
    for stage in found["stages"]:
        lines.append(
            f"\n{stage['name']} ({stage['kind']}): {stage['count']}{'' if stage['on'] else ', off: ' + stage['note']}"
        )
        lines += [
            f"  {r['rank']:>3}  {r['score']:.5g}  {r['id']}  {_named(r)}"
            for r in stage["ranking"][:lines_shown]
        ]
    lines.append("\nPassages")
    for passage in found["passages"]:
        lines.append(
            f"\n{passage['rank']}. {_named(passage)} {passage['start']}–{passage['end']}  {passage['score']:.5g}"
        )
        lines.append("   " + " ".join(passage["text"][:300].split()))
    return "\n".join(lines)
