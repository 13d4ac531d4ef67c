"""What the commands share: the app, their options, and how they speak."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, TypeVar
from urllib.parse import urlencode

import typer

from core.errors import RankscopeError, SettingsError
from core.sample import SAMPLE, ensure_sample
from core.settings import IndexSettings, SearchSettings, Settings
from core.types import encodable

T = TypeVar("T", SearchSettings, IndexSettings)

app = typer.Typer(
    help="Search your documents and see every stage: rankings, RRF arithmetic, merged passages.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

CollectionOption = Annotated[
    str, typer.Option("--collection", "-c", help="The collection; the sample when not given.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]
SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", "-s", help="A search setting, such as k_rrf=10 or indexes.bm25.weight=2."),
]
SettingsOption = Annotated[
    Path | None, typer.Option("--settings", help="Search settings from a TOML file exported before.")
]
ViewerOption = Annotated[
    str | None,
    typer.Option(
        "--as",
        metavar="WHO",
        help='As somebody who sees only what they may, such as "anna@example.org, group:finance"; "" is '
        "somebody in no group. If not given, all is seen.",
    ),
]
LimitOption = Annotated[
    int | None,
    typer.Option("--limit", min=1, help="Lines of each stage; if not given, five, and all in JSON."),
]


def opened(name: str) -> Any:
    from core.collection import open_collection

    sample_if_asked(name)
    return open_collection(name)


def sample_if_asked(name: str) -> None:
    if name == SAMPLE:
        ensure_sample()


def search_settings(store: Any, changes: list[str] | None, file: Path | None) -> SearchSettings:
    """The file's settings or else the collection's, with the changes of --set on top."""
    return _changed(_settings(store, file).search, changes)


def index_settings(store: Any, changes: list[str] | None, file: Path | None) -> IndexSettings:
    """The same of the settings that a collection is indexed with."""
    return _changed(_settings(store, file).index, changes)


def _settings(store: Any, file: Path | None) -> Settings:
    if file is None:
        return store.settings()
    try:
        return Settings.from_toml(file.read_text(encoding="utf-8"))
    except UnicodeDecodeError:
        raise SettingsError(
            f"{file} is not a text in UTF-8; export settings once to see the form"
        ) from None


def _changed(base: T, changes: list[str] | None) -> T:
    for change in changes or []:
        if "=" not in change:
            raise typer.BadParameter(f"--set {change!r}: write name=value")
    pairs = dict(encodable(change).split("=", 1) for change in changes or [])
    return type(base).from_link("&".join(part for part in (base.to_link(), urlencode(pairs)) if part))


def corpus_of(collection: str) -> Any:
    from core.corpus import build_corpus

    store = opened(collection)
    return build_corpus(store, store.settings().index, progress)


def viewer_of(text: str | None) -> Any:
    """The viewer of --as. Blank, such as from a variable that is unset, is not somebody who sees all."""
    from core.access import parse_viewer

    return None if text is None else parse_viewer(text)


def seen(corpus: Any, viewer: str | None) -> Any:
    """The corpus as the viewer of --as sees it."""
    return corpus.for_viewer(viewer_of(viewer))


def trace_of(
    query: str,
    collection: str,
    changes: list[str] | None,
    file: Path | None,
    viewer: str | None = None,
) -> Any:
    """A search. A reranker that is paid is asked, and what that costs said before and after."""
    from core.pipeline import search as run

    chosen = search_settings(opened(collection), changes, file)
    corpus = seen(corpus_of(collection), viewer)
    trace = run(corpus, query, chosen, pay=False)
    if (held := trace.record.reranked) and held.held:
        typer.echo(f"note: {held.failed}; asking now", err=True)
        trace = run(corpus, query, chosen)
        asked = trace.record.reranked or held
        typer.echo(f"note: reranked for ${asked.dollars:.6f}; {asked.failed or asked.note}", err=True)
    for note in corpus.notes:
        typer.echo(f"note: {note}", err=True)
    return trace


def progress(done: int, total: int) -> None:
    if sys.stderr.isatty():
        typer.echo(f"\rembedding {done}/{total}", err=True, nl=done == total)


def show(value: Any, as_json: bool, text: str) -> None:
    typer.echo(json.dumps(value, ensure_ascii=False, indent=2, default=str) if as_json else text)


@contextmanager
def errors() -> Iterator[None]:
    """One clear line on standard error instead of a stack of frames."""
    try:
        yield
    except (RankscopeError, OSError) as error:
        typer.echo(f"rankscope: {error}", err=True)
        raise typer.Exit(1) from None
