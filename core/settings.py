"""The two settings: `IndexSettings` decides what a corpus is, `SearchSettings` what a trace is.

Frozen and checked when made. Each field carries its help text (the widget's tooltip, the README's
table), its limits, and how a recorded search can serve a change of it:
`replay` "always" (arithmetic on recorded rankings), "covered" (as far as the record reaches) or
"never" (the indexes must be asked again).
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from types import MappingProxyType
from typing import Any, Self
from urllib.parse import parse_qsl, urlencode

import tomli_w

from core.errors import SettingsError
from core.filters import Filter
from core.text import LANGUAGES, Analyzer
from core.types import encodable

DEFAULT_MODEL = "all-MiniLM-L6-v2"


def setting(
    default: Any,
    help: str,
    *,
    label: str = "",
    low: float | None = None,
    high: float | None = None,
    choices: tuple[str, ...] = (),
    others: bool = False,
    replay: str = "never",
) -> Any:
    """A dataclass field that says what it is for and which values it takes (`others`: more than `choices`)."""
    facts = {
        "label": label,
        "help": help,
        "low": low,
        "high": high,
        "choices": choices,
        "others": others,
        "replay": replay,
    }
    return field(default=default, metadata=facts)


class _Settings:
    """What all settings can do: check themselves, compare, travel as TOML, as a link and as a name."""

    def __post_init__(self) -> None:
        for spec in fields(self):  # type: ignore[arg-type]
            value = getattr(self, spec.name)
            if isinstance(value, str):  # neither a file nor a link holds a byte that is no UTF-8
                value = encodable(value)
                object.__setattr__(self, spec.name, value)
            _check_value(type(self).__name__, spec, value)

    def replace(self, **changes: Any) -> Self:
        """A copy with some fields changed, checked again."""
        return dataclasses.replace(self, **changes)  # type: ignore[type-var]

    def to_dict(self) -> dict[str, Any]:
        """Plain values, nested like the settings: what TOML and JSON hold."""
        return _plain(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """The settings of a nested mapping; fields not named keep their defaults.

        Raises SettingsError for a field that does not exist or a value outside its limits.
        """
        return _from_dict(cls, values, "")

    def to_toml(self) -> str:
        return tomli_w.dumps(self.to_dict())

    @classmethod
    def from_toml(cls, text: str) -> Self:
        try:
            return cls.from_dict(tomllib.loads(text))
        except tomllib.TOMLDecodeError as error:
            raise SettingsError(f"not TOML: {error}; export settings once to see the form") from None

    def changes(self, base: Self | None = None) -> dict[str, Any]:
        """Dotted field → value, where it differs from `base` (the defaults when None)."""
        mine = dict(_flatten(self.to_dict()))
        theirs = dict(_flatten((base or type(self)()).to_dict()))
        return {name: value for name, value in mine.items() if theirs.get(name, _MISSING) != value}

    def changed_tables(self) -> dict[str, Any]:
        """`changes` as the nested mapping that `from_dict` takes."""
        return _nested(type(self), self.changes().items())

    def to_link(self) -> str:
        """The changed fields as a query string, readable and editable by hand."""
        return urlencode({name: _as_text(value) for name, value in self.changes().items()})

    @classmethod
    def from_link(cls, query: str) -> Self:
        """The settings of a link. Raises SettingsError as `from_dict` does."""
        return _from_dict(cls, _nested(cls, parse_qsl(query, keep_blank_values=True)), "")

    def fingerprint(self) -> str:
        """Twelve hex digits: equal for equal settings, on every machine."""
        canonical = json.dumps(self.to_dict(), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(canonical.encode()).hexdigest()[:12]


_MISSING = object()


def _check_value(owner: str, spec: dataclasses.Field[Any], value: Any) -> None:
    facts = spec.metadata
    name = f"{owner}.{spec.name}"
    if of := facts.get("of"):
        uses = value.items() if isinstance(value, Mapping) else [(value, None)]
        if wrong := [key for key, use in uses if not (isinstance(key, str) and isinstance(use, of))]:
            raise SettingsError(f"{name} holds {wrong[0]!r}; give {of.__name__} values by name")
        return
    blank = _blank(spec)
    if isinstance(blank, bool):
        if not isinstance(value, bool):
            raise SettingsError(f"{name} is {value!r}; give true or false")
        return
    if (choices := facts.get("choices")) and not facts.get("others"):
        if value not in choices:
            raise SettingsError(f"{name} is {value!r}; choose one of {', '.join(choices)}")
        return
    if not isinstance(blank, int | float):
        if not isinstance(value, type(blank)):
            what = "a text" if isinstance(blank, str) else type(blank).__name__
            raise SettingsError(f"{name} is {value!r}; give {what}")
        return
    low, high = facts.get("low"), facts.get("high")
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value:
        raise SettingsError(f"{name} is {value!r}; give a number")
    if isinstance(blank, int) and not isinstance(value, int):
        raise SettingsError(f"{name} is {value!r}; give a whole number")
    if (low is not None and value < low) or (high is not None and value > high):
        limits = f"{low if low is not None else '…'} to {high if high is not None else '…'}"
        raise SettingsError(f"{name} is {value}; it takes {limits}")


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {spec.name: _plain(getattr(value, spec.name)) for spec in fields(value)}
    if isinstance(value, Mapping):
        return {key: _plain(value[key]) for key in sorted(value)}
    return value


def _flatten(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from _flatten(value, f"{prefix}{name}.")
        else:
            yield prefix + name, value


def _nested(cls: type, values: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """Dotted name → value, the later of two counting, as nested tables. Names of indexes may hold dots."""
    tables: dict[str, Any] = {}
    for name, value in values:
        *path, last = _path(cls, name)
        at = tables
        for part in path:
            at = at.setdefault(part, {})
            if not isinstance(at, dict):
                raise SettingsError(f"{name}: {part} is given twice, once as a value; give it once")
        at[last] = value
    return tables


def _blank(spec: dataclasses.Field[Any]) -> Any:
    """A field's default value."""
    made = spec.default_factory
    return spec.default if made is dataclasses.MISSING else made()


def _path(cls: type, name: str) -> list[str]:
    head, dot, rest = name.partition(".")
    spec = next((one for one in fields(cls) if one.name == head), None)
    if not dot or spec is None:
        return [name]
    if spec.metadata.get("of"):
        index, inner, last = rest.rpartition(".")
        return [head, index, last] if inner else [head, rest]
    blank = _blank(spec)
    return [head, *_path(type(blank), rest)] if dataclasses.is_dataclass(blank) else [head, rest]


def _as_text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _from_dict(cls: type, values: Mapping[str, Any], prefix: str) -> Any:
    known = {spec.name: spec for spec in fields(cls)}
    unknown = sorted(set(values) - set(known))
    if unknown:
        raise SettingsError(
            f"no setting {prefix}{unknown[0]}; {prefix or 'the settings'} has {', '.join(known)}"
        )
    blank = cls()
    made = {}
    for name, value in values.items():
        old = getattr(blank, name)
        made[name] = _convert(old, value, prefix + name, known[name].metadata.get("of"))
    try:
        return cls(**made)
    except SettingsError:
        raise
    except (TypeError, ValueError) as error:
        raise SettingsError(f"{prefix or 'settings: '}{error}") from None


def _convert(old: Any, value: Any, name: str, of: type | None) -> Any:
    """`value` in the type of the field's default; text (from a link) is read as that type."""
    if of is not None:
        if not isinstance(value, Mapping):
            raise SettingsError(f"{name} is {value!r}; give a table of names")
        uses = {}
        for key, part in value.items():
            if not isinstance(part, Mapping):
                raise SettingsError(f"{name}.{key} is {part!r}; give a table of fields")
            uses[str(key)] = _from_dict(of, part, f"{name}.{key}.")
        return uses
    if dataclasses.is_dataclass(old):
        if not isinstance(value, Mapping):
            raise SettingsError(f"{name} is {value!r}; give a table of fields")
        return _from_dict(type(old), value, name + ".")
    try:
        if isinstance(old, bool):
            if isinstance(value, bool):
                return value
            return {"true": True, "false": False}[str(value).lower()]
        if isinstance(old, int):
            if isinstance(value, float) and value != int(value):
                raise ValueError
            return int(value)
        if isinstance(old, float):
            return float(value)
    except (KeyError, ValueError, TypeError, OverflowError):
        kind = {bool: "true or false", int: "a whole number", float: "a number"}[type(old)]
        raise SettingsError(f"{name} is {value!r}; give {kind}") from None
    if not isinstance(value, str):
        raise SettingsError(f"{name} is {value!r}; give a text")
    return value


STRATEGIES: Mapping[str, str] = MappingProxyType(
    {
        "fixed": "windows of one size, cut wherever the size ends",
        "sentences": "whole sentences, packed up to the size",
        "recursive": "the largest unit that fits: paragraphs, then lines, sentences, words",
        "headings": "sections by their headings; a longer section is cut inside, tables between rows",
        "semantic": "breaks where neighbouring sentences differ most in meaning",
    }
)


@dataclass(frozen=True)
class ChunkSettings(_Settings):
    """How a document is cut."""

    strategy: str = setting(
        "headings",
        "How documents are cut: " + "; ".join(f"{k}: {v}" for k, v in STRATEGIES.items()) + ".",
        label="Strategy",
        choices=tuple(STRATEGIES),
    )
    unit: str = setting(
        "characters",
        "What size and overlap count: characters, or the embedding model's own tokens.",
        label="Unit",
        choices=("characters", "tokens"),
    )
    size: int = setting(800, "The most a chunk may hold.", label="Size", low=20, high=20_000)
    overlap: int = setting(
        0,
        "How much of a chunk's end the next one repeats: exact for fixed windows, an upper bound "
        "elsewhere, where overlap keeps to whole sentences or words.",
        label="Overlap",
        low=0,
        high=10_000,
    )
    breakpoint_percentile: int = setting(
        90,
        "Semantic only: cut where the distance between neighbouring sentences is above this percentile "
        "of the document's distances.",
        label="Breakpoint percentile",
        low=50,
        high=99,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.overlap >= self.size:
            raise SettingsError(
                f"ChunkSettings.overlap is {self.overlap} and size {self.size}; "
                "the overlap must be smaller than the size"
            )


CONTEXT_WRITERS: Mapping[str, str] = MappingProxyType(
    {
        "none": "chunks are indexed as they are",
        "headings": "title, heading path, page and the document's opening words; made here, free",
        "claude": "a sentence or two that Claude writes for each chunk; paid once, then kept",
        "endpoint": "the same from another server that speaks the Anthropic protocol",
    }
)
PAID_WRITERS = ("claude", "endpoint")


@dataclass(frozen=True)
class ContextSettings(_Settings):
    """What is put beside each chunk before it is indexed (contextual retrieval)."""

    writer: str = setting(
        "none",
        "Who writes the short text that situates a chunk in its document: "
        + "; ".join(f"{k}: {v}" for k, v in CONTEXT_WRITERS.items())
        + ".",
        label="Contexts",
        choices=tuple(CONTEXT_WRITERS),
    )
    opening: int = setting(
        150,
        "Headings only: so many characters of the document's opening are part of each context; 0 leaves "
        "them out.",
        label="Opening characters",
        low=0,
        high=2_000,
    )
    model: str = setting(
        "claude-haiku-5-5", "The model that writes the contexts.", label="Model of the writer"
    )
    base_url: str = setting(
        "",
        "Endpoint only: the server's address, such as http://127.0.0.1:8080. Documents are sent there.",
        label="Address",
    )
    prompt: str = setting(
        "",
        "What is asked for each chunk, in place of the built-in prompt: say what the documents are about, "
        "or add a glossary.",
        label="Prompt",
    )
    max_tokens: int = setting(
        300, "The longest context, in tokens of the writer.", label="Longest context", low=20, high=2_000
    )
    window: int = setting(
        90_000,
        "The longest part of a document, in tokens, that is sent with a chunk; a longer document is sent "
        "in overlapping parts. Not published; our default, below the size at which a request costs more.",
        label="Window",
        low=1_000,
        high=900_000,
    )
    place: str = setting(
        "before",
        "Whether the context stands before the chunk's text, as published, or after it.",
        label="Place",
        choices=("before", "after"),
    )
    in_vectors: bool = setting(
        True, "Contextual embeddings: the context is embedded with the chunk.", label="In vectors"
    )
    in_bm25: bool = setting(
        True, "Contextual BM25: the context's terms count for the chunk.", label="In BM25"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if "?" in self.base_url or "@" in self.base_url.partition("://")[2].partition("/")[0]:
            # Settings are saved, exported and shown.
            raise SettingsError(
                "ContextSettings.base_url holds more than a place; give the address without a name, password "
                "or query, and put a key into RANKSCOPE_ENDPOINT_KEY"
            )
        if self.writer == "endpoint" and not self.base_url.startswith(("http://", "https://")):
            raise SettingsError(
                f"ContextSettings.base_url is {self.base_url!r}; an endpoint needs an address that "
                "begins with http:// or https://"
            )

    @property
    def writer_key(self) -> str:
        """Sixteen hex digits: equal where the same chunk gets the same context."""
        facts: list[object] = [self.writer]
        if self.writer == "headings":
            facts += [self.opening]
        elif self.writer in PAID_WRITERS:
            address = self.base_url if self.writer == "endpoint" else ""
            facts += [self.model, address, self.prompt.strip(), self.max_tokens, self.window]
        return hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:16]


@dataclass(frozen=True)
class IndexSettings(_Settings):
    """What a corpus is: how documents are cut, given contexts, embedded and turned into terms."""

    chunking: ChunkSettings = field(default_factory=ChunkSettings)
    context: ContextSettings = field(default_factory=ContextSettings)
    model: str = setting(
        DEFAULT_MODEL,
        "The embedding model: the packaged one, any sentence-transformers model id or folder, "
        "multilingual-e5-small-q4 (an extra; many languages, a tenth of the speed), or a service, such as "
        "voyage:voyage-3.5 or gemini:gemini-embedding-001 (paid; checked against a scripted server, never "
        "run live).",
        label="Embedding model",
    )
    analyzer: Analyzer = field(default_factory=Analyzer)


@dataclass(frozen=True)
class IndexUse(_Settings):
    """One index in the fusion."""

    on: bool = setting(True, "Whether this index takes part.", label="On", replay="always")
    weight: float = setting(
        1.0, "Its weight in the fusion.", label="Weight", low=0.0, high=100.0, replay="always"
    )
    depth: int = setting(
        150,
        "How many of its best chunks enter the fusion.",
        label="Depth",
        low=1,
        high=10_000,
        replay="covered",
    )


@dataclass(frozen=True)
class SignalUse(_Settings):
    """One signal in the ranking of items."""

    on: bool = setting(True, "Whether this signal takes part.", label="On", replay="always")
    weight: float = setting(
        1.0, "Its weight in the ranking of items.", label="Weight", low=0.0, high=100.0, replay="always"
    )


_INDEX_USE = IndexUse()
_SIGNAL_USE = SignalUse()


def _uses(of: type, help: str, label: str) -> Any:
    return field(
        default_factory=lambda: MappingProxyType({}),
        metadata={"help": help, "label": label, "of": of, "replay": "always"},
    )


FUSIONS = ("rrf", "minmax", "zscore", "dbsf")
RERANKERS: Mapping[str, str] = MappingProxyType(
    {
        "none": "the order stays",
        "late": "the packaged model compares word by word (late interaction); free, best fused",
        "cross-encoder": "a sentence-transformers model reads both; free, its first use may download it",
        "claude": "Claude puts them in order; paid",
        "cohere": "Cohere's service; paid, checked against a scripted server, never run live",
        "voyage": "Voyage's service; paid, checked against a scripted server, never run live",
    }
)
PAID_RERANKERS = ("claude", "cohere", "voyage")
BM25_VARIANTS = ("lucene", "robertson", "atire", "bm25l", "bm25+")


@dataclass(frozen=True)
class SearchSettings(_Settings):
    """What a trace is: everything that happens after the query is typed, in pipeline order."""

    two_stage: bool = setting(
        True,
        "Rank items (documents) first and search chunks only inside the best ones; off searches all "
        "chunks at once.",
        label="Two stages",
        replay="covered",
    )
    filters: str = setting(
        "",
        "Which items take part at all: conditions on their fields, all of which must hold, such as "
        "year >= 2020; author = Ann, Ben; tags exists. Operators: = and != (one of several values), >= > "
        "<= < (numbers, dates), ~ (contains), exists, missing; values with such signs in double quotes.",
        label="Filters",
    )
    signals: Mapping[str, SignalUse] = _uses(
        SignalUse, "The signals that rank items, by name: on or off, and weight.", "Item signals"
    )
    recency_field: str = setting(
        "",
        "The date field that ranks items by how recent they are; blank: recency ranks nothing.",
        label="Recency field",
    )
    recency_half_life: float = setting(
        365.0,
        "In days: after so many an item's recency has halved; past seven half-lives it has no rank. Not "
        "published; our default.",
        label="Recency half-life, days",
        low=0.01,
        high=100_000.0,
    )
    popularity_field: str = setting(
        "",
        "The number field that ranks items, the highest first; blank: popularity ranks nothing.",
        label="Popularity field",
    )
    k_rrf_items: int = setting(
        10,
        "The RRF constant of the item stage: a larger one flattens the difference between ranks. "
        "Not published; our default.",
        label="k_rrf, items",
        low=0,
        high=100_000,
        replay="always",
    )
    items: int = setting(
        100,
        "How many of the best items go on to stage two. Not published; our default.",
        label="Items to stage two",
        low=1,
        high=1_000_000,
        replay="covered",
    )
    second_stage: str = setting(
        "hybrid",
        "Which indexes search inside the items: hybrid asks all that are on, semantic asks the vector "
        "index alone (as published).",
        label="Second stage",
        choices=("hybrid", "semantic"),
        replay="always",
    )
    indexes: Mapping[str, IndexUse] = _uses(
        IndexUse, "The indexes over chunks, by name: on or off, weight and depth.", "Indexes"
    )
    fusion: str = setting(
        "rrf",
        "How the indexes' lists become one: rrf adds weight/(k_rrf + rank); minmax, zscore and dbsf add "
        "weighted normalised scores (a convex combination).",
        label="Fusion",
        choices=FUSIONS,
        replay="always",
    )
    k_rrf: int = setting(
        60,
        "The constant in weight/(k_rrf + rank). Small: first places decide; large: agreement decides.",
        label="k_rrf",
        low=0,
        high=100_000,
        replay="always",
    )
    passage_weight: float = setting(
        1.0,
        "Score fusion: the weight of a chunk's own rank. Not published; our default.",
        label="Passage weight",
        low=0.0,
        high=100.0,
        replay="always",
    )
    item_weight: float = setting(
        1.0,
        "Score fusion: the weight of its item's rank; 0 leaves the chunks' order. Not published; our default.",
        label="Item weight",
        low=0.0,
        high=100.0,
        replay="always",
    )
    k_rrf_score: int = setting(
        10,
        "Score fusion: the RRF constant for chunk rank and item rank. Not published; our default.",
        label="k_rrf, score fusion",
        low=0,
        high=100_000,
        replay="always",
    )
    rerank: str = setting(
        "none",
        "What scores the best chunks anew, reading query and text together: "
        + "; ".join(f"{k}: {v}" for k, v in RERANKERS.items())
        + ".",
        label="Reranker",
        choices=tuple(RERANKERS),
        others=True,  # those that somebody registers
        replay="covered",
    )
    rerank_model: str = setting(
        "",
        "The reranker's model, an id or a folder; blank takes that reranker's own default.",
        label="Reranker's model",
        replay="covered",
    )
    rerank_depth: int = setting(
        150,
        "How many of the best chunks are reranked; only these go on. 150 as published; for late, 50 "
        "measured the same at a third of the time.",
        label="Rerank depth",
        low=1,
        high=1_000,
        replay="covered",
    )
    rerank_order: str = setting(
        "usual",
        "What becomes of the reranker's order: it replaces the order before, or is fused with it by rank; "
        "usual fuses late (replacing measured worse) and replaces with the others, as published.",
        label="Rerank order",
        choices=("usual", "replace", "fuse"),
        replay="always",
    )
    rerank_weight: float = setting(
        1.0,
        "Fuse only: the weight of the reranker's rank against 1 for the rank before. Not published; our "
        "default.",
        label="Reranker's weight",
        low=0.0,
        high=100.0,
        replay="always",
    )
    k_rrf_rerank: int = setting(
        60,
        "Fuse only: the RRF constant for the rank before and the reranker's. Not published; our default.",
        label="k_rrf, rerank",
        low=0,
        high=100_000,
        replay="always",
    )
    collapse_duplicates: bool = setting(
        False,
        "Keep only the best of chunks whose texts are the same but for blanks and letter case.",
        label="Collapse duplicates",
        replay="always",
    )
    per_item: int = setting(
        0,
        "At most this many chunks of one item; 0 sets no limit.",
        label="Chunks per item",
        low=0,
        high=1_000,
        replay="always",
    )
    k: int = setting(
        20, "How many chunks are kept before merging.", label="k", low=1, high=1_000, replay="always"
    )
    merge: bool = setting(
        True, "Join neighbouring chunks of an item into passages.", label="Merge", replay="always"
    )
    merge_gap: int = setting(
        100,
        "Chunks of one item at most this many characters apart are joined; 0 joins those that overlap or "
        "touch. Not published; our default.",
        label="Merge gap",
        low=0,
        high=100_000,
        replay="always",
    )
    merge_cap: int = setting(
        6_000,
        "Chunks are not joined into a passage longer than this many characters. Not published; our default.",
        label="Merge cap",
        low=1,
        high=1_000_000,
        replay="always",
    )
    bm25_variant: str = setting(
        "lucene",
        "The BM25 formula: how term frequency, length and rarity combine.",
        label="BM25 variant",
        choices=BM25_VARIANTS,
    )
    bm25_k1: float = setting(
        1.5,
        "How fast repeating a term stops counting: 0 counts presence only.",
        label="BM25 k1",
        low=0.0,
        high=10.0,
    )
    bm25_b: float = setting(
        0.75,
        "How much long texts are marked down: 0 not at all, 1 in full proportion.",
        label="BM25 b",
        low=0.0,
        high=1.0,
    )
    vector: str = setting(
        "exact",
        "How nearest vectors are found: exact compares all, hnsw walks a graph, faster on large "
        "collections, with a loss that is measured and shown.",
        label="Vector search",
        choices=("exact", "hnsw"),
    )
    hnsw_m: int = setting(
        16,
        "Links per node of the HNSW graph; more find better and cost memory.",
        label="HNSW M",
        low=2,
        high=100,
    )
    hnsw_ef_construction: int = setting(
        200, "Candidates kept while the graph is built.", label="HNSW ef at build", low=10, high=2_000
    )
    hnsw_ef: int = setting(
        300,
        "Candidates kept while searching; raised to the depth.",
        label="HNSW ef",
        low=10,
        high=10_000,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "filters", str(Filter.parse(self.filters)))
        # A use equal to the default says nothing: without it equal searches have equal fingerprints.
        for name, blank in (("signals", _SIGNAL_USE), ("indexes", _INDEX_USE)):
            named = {encodable(key): use for key, use in getattr(self, name).items()}
            uses = {key: use for key, use in sorted(named.items()) if use != blank}
            object.__setattr__(self, name, MappingProxyType(uses))

    @property
    def rerank_fuses(self) -> bool:
        """Whether the reranker's order is fused with the one before, not put in its place."""
        return self.rerank_order == "fuse" or (self.rerank_order, self.rerank) == ("usual", "late")

    def index(self, name: str) -> IndexUse:
        """How the index takes part; an index never mentioned takes part with the defaults."""
        return self.indexes.get(name, _INDEX_USE)

    def signal(self, name: str) -> SignalUse:
        """How the item signal takes part; one never mentioned takes part with the defaults."""
        return self.signals.get(name, _SIGNAL_USE)

    def with_index(self, name: str, **changes: Any) -> SearchSettings:
        """A copy in which one index's use is changed."""
        return self.replace(indexes={**self.indexes, name: self.index(name).replace(**changes)})

    def with_signal(self, name: str, **changes: Any) -> SearchSettings:
        """A copy in which one signal's use is changed."""
        return self.replace(signals={**self.signals, name: self.signal(name).replace(**changes)})


@dataclass(frozen=True)
class Settings(_Settings):
    """Both together: one file that says everything about how a collection is searched."""

    index: IndexSettings = field(default_factory=IndexSettings)
    search: SearchSettings = field(default_factory=SearchSettings)


def search_only_changes(old: SearchSettings, new: SearchSettings) -> tuple[str, ...]:
    """Labels of the changed fields that no recorded search can serve (`replay` "never")."""
    return tuple(
        spec.metadata["label"] or spec.name
        for spec in fields(SearchSettings)
        if spec.metadata.get("replay") == "never" and getattr(old, spec.name) != getattr(new, spec.name)
    )


__all__ = [
    "BM25_VARIANTS",
    "CONTEXT_WRITERS",
    "DEFAULT_MODEL",
    "FUSIONS",
    "LANGUAGES",
    "PAID_RERANKERS",
    "PAID_WRITERS",
    "RERANKERS",
    "STRATEGIES",
    "Analyzer",
    "ChunkSettings",
    "ContextSettings",
    "IndexSettings",
    "IndexUse",
    "SearchSettings",
    "Settings",
    "SignalUse",
    "search_only_changes",
]
