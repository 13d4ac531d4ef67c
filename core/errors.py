"""Errors that a person can act on: each message names the value, the limit and the remedy."""


class RankscopeError(Exception):
    """Base of all errors whose text is meant to be read by the user of Rankscope."""


class LoadError(RankscopeError):
    """A file could not be turned into documents; the other files of an upload go on."""


class LimitError(LoadError):
    """A file or an upload is past a stated limit."""


class PasswordNeeded(LoadError):
    """The file is encrypted and opens only with a password (or with another one)."""


class SettingsError(RankscopeError, ValueError):
    """A setting is unknown or out of its range."""


class CollectionError(RankscopeError):
    """A collection cannot be opened, created or changed."""


class EmbeddingError(RankscopeError):
    """An embedding model cannot be loaded or gave vectors of another width than declared."""


class NeedsSearch(RankscopeError):
    """Replaying a trace cannot give these settings: `reasons` names the fields that need a search."""

    def __init__(self, reasons: tuple[str, ...]) -> None:
        super().__init__("these settings need a new search: " + "; ".join(reasons))
        self.reasons = reasons


class Stopped(RankscopeError):
    """The person pressed stop; what was finished before is kept."""


class LlmError(RankscopeError):
    """A language model's answer could not be had. `kind` says for which reason, in one word; `again`
    whether the same question may succeed later."""

    def __init__(self, message: str, kind: str = "other", again: bool = False) -> None:
        super().__init__(message)
        self.kind = kind
        self.again = again


class ContextError(RankscopeError):
    """Contexts cannot be written or read."""


class RerankError(RankscopeError):
    """A reranker cannot score: the fused order stays."""
