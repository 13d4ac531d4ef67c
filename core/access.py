"""Who may see a document, and who is asking."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass, field

from core.errors import RankscopeError

Access = frozenset[str] | None
"""Who may see a document: None is everyone, an empty set nobody but those who may see all, else
principals such as "user:anna@example.org" and "group:finance"."""

EVERYONE, NOBODY = "everyone", "nobody"
_KINDS = ("user", "group")
_WORD = re.compile(r'\s*("(?:[^"]|"")*"(?=\s*(?:[,;\n]|$))|[^,;\n]+)')


class AccessError(RankscopeError):
    """A list of users and groups that cannot be read."""


@dataclass(frozen=True)
class Viewer:
    """Somebody who sees what everyone may see, and what `user` or one of `groups` may.

    None in place of a viewer is somebody who may see all: the person of a local app, an administrator.
    """

    user: str = ""
    groups: frozenset[str] = field(default_factory=frozenset)

    def __post_init__(self) -> None:
        object.__setattr__(self, "user", even_name(self.user))
        object.__setattr__(self, "groups", frozenset(filter(None, map(even_name, self.groups))))

    @property
    def principals(self) -> frozenset[str]:
        """What this viewer is called in an `Access`."""
        mine = {f"group:{group}" for group in self.groups}
        return frozenset(mine | {f"user:{self.user}"} if self.user else mine)

    @property
    def label(self) -> str:
        groups = ", ".join(sorted(self.groups))
        named = ", ".join(filter(None, (self.user, groups and f"group {groups}")))
        return named or "anybody"

    def sees(self, access: Access) -> bool:
        return bool(visible((access,), self))


def parse_access(text: str) -> Access:
    """The access written as "everyone", "nobody", or "user:anna@example.org, group:finance".

    Commas, semicolons and line ends part names; a name that holds one stands between double quotes, a
    double quote in it twice. A bare word with an @ is a user, another a group. A blank text is everyone.
    Raises AccessError naming what cannot be read.
    """
    words = _words(text)
    if not words and text.strip():
        raise AccessError(f"{text!r} names nobody; write everyone, nobody, or users and groups")
    if not words or words == [EVERYONE]:
        return None
    if words == [NOBODY]:
        return frozenset()
    if alone := next((word for word in words if word in (EVERYONE, NOBODY)), ""):
        raise AccessError(f"{alone!r} stands alone; leave the other names out, or leave it out")
    return frozenset(map(_principal, words))


def parse_viewer(text: str) -> Viewer:
    """The viewer written as "anna@example.org, group:finance"; blank: somebody in no group.

    Raises AccessError as `parse_access` does, and where two users are named.
    """
    named = frozenset(map(_principal, _words(text)))
    users = sorted(one.removeprefix("user:") for one in named if one.startswith("user:"))
    if len(users) > 1:
        raise AccessError(f"a viewer is one user, not {' and '.join(users)}; name one, and any groups")
    groups = frozenset(one.removeprefix("group:") for one in named if one.startswith("group:"))
    return Viewer(users[0] if users else "", groups)


def written_access(access: Access) -> str:
    """What `parse_access` reads back."""
    if access is None:
        return EVERYONE
    return ", ".join(map(quoted, sorted(access))) or NOBODY


def quoted(name: str) -> str:
    """A name as it stands among others in what `parse_access` reads: one that holds a comma stays one."""
    return '"' + name.replace('"', '""') + '"' if re.search(r'[,;"\n]', name) else name


def visible(access: Iterable[Access], viewer: Viewer | None) -> list[int]:
    """The places, ascending, of those that the viewer may see."""
    if viewer is None:
        return list(range(len(list(access))))
    mine = viewer.principals
    return [at for at, one in enumerate(access) if one is None or not mine.isdisjoint(one)]


def _words(text: str) -> list[str]:
    return list(filter(None, (even_name(_unquoted(word.strip())) for word in _WORD.findall(text))))


def _unquoted(word: str) -> str:
    whole = len(word) > 1 and word[0] == word[-1] == '"'
    return word[1:-1].replace('""', '"') if whole else word


def _principal(word: str) -> str:
    kind, colon, name = word.partition(":")
    if not colon:
        return f"user:{word}" if "@" in word else f"group:{word}"
    if kind not in _KINDS or not name.strip():
        raise AccessError(
            f"{word!r} is neither a user nor a group; write user:anna@example.org or group:finance"
        )
    return f"{kind}:{name.strip()}"


def even_name(text: str) -> str:
    """The name of a user or group as it is compared: the same whatever its capitals and blanks, which a
    sign-in writes as it likes. Other signs do not become plain letters: with a long s, Sam is somebody else."""
    return " ".join("".join(map(_folded, unicodedata.normalize("NFC", text))).split())


def _folded(sign: str) -> str:
    folded = sign.casefold()
    return sign if folded.isascii() and not sign.isascii() else folded
