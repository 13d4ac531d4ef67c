"""Rerankers by name: what scores the best chunks anew, reading query and text together.

Another one joins by a line in `_MAKERS`, or from outside by `register_reranker`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from importlib import import_module
from types import ModuleType

from core.errors import RankscopeError, RerankError, SettingsError
from core.protocols import Reranker
from core.reranking.cache import Cached, shared_scores
from core.settings import SearchSettings

_MAKERS = {
    "late": ("late", "LateInteraction"),
    "cross-encoder": ("cross_encoder", "CrossEncoder"),
    "claude": ("claude", "ClaudeReranker"),
    "cohere": ("hosted_cohere", "CohereReranker"),
    "voyage": ("hosted_voyage", "VoyageReranker"),
}  # name → module here, class made with a model id; blank is the class's own default

_registered: dict[str, Callable[[str], Reranker]] = {}
_loaded: dict[tuple[str, str], Reranker] = {}
_loading = threading.Lock()


def load_reranker(settings: SearchSettings) -> Cached | None:
    """The reranker that the settings name, None for "none". It is light until it is asked: a model is
    loaded, and where needed fetched, by the first `scores`.

    Raises SettingsError for a name that nobody registered, RerankError for a model it cannot have.
    """
    name, model = settings.rerank, settings.rerank_model
    if name == "none":
        return None
    with _loading:
        if (name, model) not in _loaded:
            _loaded[name, model] = _make(name, model)
        reranker = _loaded[name, model]
    # What somebody registers may give other scores tomorrow: it is kept only where it says its version.
    kept = name in _MAKERS or hasattr(reranker, "version")
    return Cached(reranker, shared_scores if kept else None)


def default_model(name: str) -> str:
    """The model that a reranker of ours takes where none is named; blank for one that is not ours."""
    return str(_module(name).DEFAULT_MODEL) if name in _MAKERS else ""


def register_reranker(name: str, make: Callable[[str], Reranker]) -> None:
    """Let `load_reranker` give `make(model id)` for a name; the id is blank where none is chosen.

    Its scores are kept on disk if it has a `version` (a string), and until that changes.
    Raises SettingsError for the name of one of ours.
    """
    if name in _MAKERS or name == "none" or not name:
        raise SettingsError(f"the reranker name {name!r} is taken; choose another one")
    unregister_reranker(name)
    _registered[name] = make


def unregister_reranker(name: str) -> None:
    """Take back `register_reranker`; an unknown name is passed over."""
    with _loading:
        _registered.pop(name, None)
        for key in [key for key in _loaded if key[0] == name]:
            del _loaded[key]


def reranker_names() -> tuple[str, ...]:
    """Those that can be chosen: ours, then those registered."""
    return (*_MAKERS, *_registered)


def _make(name: str, model: str) -> Reranker:
    if name in _registered:
        return _registered_one(name, model)
    if name not in _MAKERS:
        raise SettingsError(
            f"there is no reranker {name!r}; choose one of {', '.join(reranker_names())}"
        )
    made: Reranker = getattr(_module(name), _MAKERS[name][1])(model)
    return made


def _registered_one(name: str, model: str) -> Reranker:
    try:
        return _registered[name](model)
    except RankscopeError:
        raise
    except Exception as error:  # somebody's own code
        raise RerankError(
            f"the reranker {name} cannot be made: {error!r}; choose another one"
        ) from error


def _module(name: str) -> ModuleType:
    return import_module(f"{__name__}.{_MAKERS[name][0]}")


__all__ = [
    "Cached",
    "default_model",
    "load_reranker",
    "register_reranker",
    "reranker_names",
    "unregister_reranker",
]
