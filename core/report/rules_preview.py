"""What rules would do, before they are saved: to the items of one query, and to the golden evidence of many."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from core.access import Viewer
from core.corpus import Corpus
from core.errors import NeedsSearch, Stopped
from core.evaluation.golden import Golden, golden_chunks, ranks_in_chunks
from core.evaluation.judgements import GoldenQuery
from core.evaluation.runner import answerable
from core.pipeline import replay, search
from core.pipeline.items import RULES
from core.protocols import Progress
from core.rules import Rule, Rules
from core.settings import SearchSettings
from core.trace import Trace


@dataclass(frozen=True, eq=False)
class Touch:
    """What a rule is about: item positions (n,), None where the items' fields cannot tell. `rests` says why
    it does not hold for the query, blank where it does."""

    rule: Rule
    items: NDArray[np.int64] | None
    rests: str


@dataclass(frozen=True)
class Moved:
    """An item that rules touched: its ranks among all items without and with the rules (0: none), and a
    sentence for each rule."""

    item: int
    before: int
    after: int
    said: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Preview:
    """One query with rules and without. `moved` stand by the rank with the rules, those taken out last."""

    trace: Trace
    without: Trace
    touches: tuple[Touch, ...]
    moved: tuple[Moved, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Change:
    """What a rule alone does to one golden chunk, of the document of that file name: its rank among the
    first k (0: not there) and whether its item is sent on to the second stage, without the rule and with it."""

    query: GoldenQuery
    document: str
    before: int
    after: int
    sent_before: bool
    sent_after: bool

    @property
    def costs(self) -> bool:
        return bool((self.before and not self.after) or (self.sent_before and not self.sent_after))

    @property
    def lifts(self) -> bool:
        gained = (self.after and not self.before) or (self.sent_after and not self.sent_before)
        return bool(gained and not self.costs)


@dataclass(frozen=True)
class Effect:
    """What a rule alone does to the judged queries for which it holds, against no rule at all."""

    rule: Rule
    queries: tuple[GoldenQuery, ...]
    lifted: tuple[Change, ...]
    lost: tuple[Change, ...]


@dataclass(frozen=True)
class JudgedPreview:
    """recall@k at the stage "kept", the mean over `queries` judged queries with evidence, without rules and
    with all of them together; and what each rule does alone."""

    k: int
    queries: int
    without: float
    with_rules: float
    effects: tuple[Effect, ...]
    notes: tuple[str, ...] = ()


def preview(
    corpus: Corpus,
    rules: Rules,
    query: str,
    settings: SearchSettings | None = None,
    viewer: Viewer | None = None,
) -> Preview:
    """Search for a query as `viewer` would, with these rules in place of the corpus's own and without any."""
    desk = _Desk(corpus, rules, settings, viewer)
    trace = desk.search(query, rules)
    without = desk.without(trace)
    ruled = trace.record.ruled
    before, after = _item_ranks(without), _item_ranks(trace)
    rows = [
        Moved(item, before.get(item, 0), after.get(item, 0), said) for item, said in ruled.said.items()
    ]
    rows.sort(key=lambda row: (not row.after, row.after, row.before or np.inf, row.item))
    touches, notes = [], [*desk.notes]
    for rule in rules.rules:
        at, note = desk.about(rule)
        touches.append(Touch(rule, at, rule.rests(query, viewer, desk.today)))
        if note and not touches[-1].rests:  # a search as a viewer leaves it out
            notes.append(note)
    told = tuple(dict.fromkeys((*notes, *ruled.notes)))
    return Preview(trace, without, tuple(touches), tuple(rows), told)


def preview_judged(
    corpus: Corpus,
    rules: Rules,
    queries: Sequence[GoldenQuery],
    settings: SearchSettings | None = None,
    progress: Progress | None = None,
    viewer: Viewer | None = None,
) -> JudgedPreview:
    """What each rule lifts and costs over the judged queries that have evidence.

    A reranker that costs is not asked. `progress(done, total)` hears of queries and may raise Stopped: the
    queries until then are told of, and a note says so; where there are none, it is raised on.
    Raises EvaluationError where no query has evidence.
    """
    desk = _Desk(corpus, rules, settings, viewer)
    asked = answerable(queries)
    gathered = [_Gathered(rule) for rule in rules.rules]
    recalls: list[tuple[float, float]] = []
    stopped = ""
    for number, query in enumerate(asked):
        try:
            if progress:
                progress(number, len(asked))
        except Stopped:
            if not recalls:
                raise
            stopped = f"stopped after {number:,} of {len(asked):,} queries: these figures are of those"
            break
        golden = golden_chunks(desk.corpus, query)
        trace = desk.search(query.text, rules)
        without = desk.without(trace)
        recalls.append((_recall(_kept(golden, without)), _recall(_kept(golden, trace))))
        fired = [one for one in gathered if not one.rule.rests(query.text, viewer, desk.today)]
        for one in fired:
            alone = trace if len(fired) == 1 else desk.alone(trace, one.rule)
            one.queries.append(query)
            one.changes += _changes(query, golden, without, alone)
    mean_without, mean_with = np.mean(recalls, axis=0).tolist()
    notes = [*filter(None, [stopped]), *desk.notes]
    if viewer is None and any(rule.on and rule.groups for rule in rules.rules):
        notes.append("rules for groups hold for nobody here: choose a viewer who is in one")
    effects = tuple(one.effect() for one in gathered)
    return JudgedPreview(desk.on.k, len(recalls), mean_without, mean_with, effects, tuple(notes))


class _Desk:
    """A corpus as a viewer sees it, to be searched under several rules."""

    def __init__(
        self, corpus: Corpus, rules: Rules, settings: SearchSettings | None, viewer: Viewer | None
    ) -> None:
        self.corpus, self.viewer, self._rules = corpus.for_viewer(viewer), viewer, rules
        self.today = corpus.first_stage.today
        chosen = settings or SearchSettings()
        self.on = chosen.with_signal(RULES, on=True)
        self._off = chosen.with_signal(RULES, on=False)
        self.notes = [] if chosen.two_stage else ["two stages are off: rules do nothing to the search"]

    def search(self, query: str, rules: Rules) -> Trace:
        stage = replace(self.corpus.first_stage, rules=rules)
        return search(self.corpus.with_first_stage(stage), query, self.on, pay=False)

    def without(self, trace: Trace) -> Trace:
        """The trace with no rule."""
        try:
            return replay(trace, self._off)
        except NeedsSearch:
            return self.search(trace.query, Rules.empty)

    def alone(self, trace: Trace, rule: Rule) -> Trace:
        """The trace with one rule only."""
        only, seen, record = Rules((rule,)), self.corpus, trace.record
        ruled = only.ruled(
            trace.query,
            self.viewer,
            self.today,
            seen.fields,
            seen.item_ids,
            seen.item_names,
            record.passing,
        )
        # Where not all is scored, what was hidden decided which items were.
        if record.covered is None or ruled.hidden.keys() == record.ruled.hidden.keys():
            with suppress(NeedsSearch):
                return replay(replace(trace, record=replace(record, ruled=ruled)), self.on)
        return self.search(trace.query, only)

    def about(self, rule: Rule) -> tuple[NDArray[np.int64] | None, str]:
        seen = self.corpus
        return self._rules.about(rule, seen.fields, seen.item_ids, seen.item_names)


@dataclass
class _Gathered:
    rule: Rule
    queries: list[GoldenQuery] = field(default_factory=list)
    changes: list[Change] = field(default_factory=list)

    def effect(self) -> Effect:
        lifted = tuple(one for one in self.changes if one.lifts)
        return Effect(
            self.rule, tuple(self.queries), lifted, tuple(one for one in self.changes if one.costs)
        )


def _item_ranks(trace: Trace) -> dict[int, int]:
    """The rank of each item before the cut to those sent on."""
    stage = trace.stage("items")
    order = stage.before if len(stage.before) else stage.ranking
    return {item: rank for rank, item in enumerate(order.positions.tolist(), 1)}


def _kept(golden: Golden, trace: Trace) -> NDArray[np.int64]:
    return ranks_in_chunks(golden, trace.stage("kept").ranking)


def _recall(ranks: NDArray[np.int64]) -> float:
    return float((ranks > 0).mean())


def _changes(query: GoldenQuery, golden: Golden, without: Trace, alone: Trace) -> Iterator[Change]:
    ranks = [_kept(golden, trace).tolist() for trace in (without, alone)]
    sent = [set(trace.stage("items").ranking.positions.tolist()) for trace in (without, alone)]
    for place, position in enumerate(golden.positions.tolist()):
        items = {int(alone.corpus.item_of[one]) for one in golden.any_of(place)}
        before, after = (not items.isdisjoint(one) for one in sent)
        name = alone.corpus.item_names[alone.corpus.item_of[position]]
        change = Change(query, name, ranks[0][place], ranks[1][place], before, after)
        if change.costs or change.lifts:
            yield change
