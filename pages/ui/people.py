"""Who uses the app, and whom its pages show: the one person of a local app, somebody who signed in, or
somebody whom an administrator views the app as.

Sign-in is Streamlit's own (OpenID Connect), on where its secrets have a section [auth]. Of who signed in,
groups included, is known what the identity token said; when that expires, so does the sign-in.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import streamlit as st
from streamlit.errors import StreamlitSecretNotFoundError

from core.access import AccessError, Viewer, parse_access
from core.errors import RankscopeError

LOCAL = "local"
_VIEW_AS = "rs_view_as"


class NotSignedIn(RankscopeError):
    """Nobody is signed in here, or the sign-in is over or cannot be used."""


@dataclass(frozen=True)
class Person:
    """`user` is for whom things are recorded; `viewer` what of the documents is theirs to see, unless they
    manage: then they see all."""

    user: str
    viewer: Viewer
    manages: bool


def sign_in_needed() -> bool:
    """Whether pages are only for those who sign in. Raises NotSignedIn where the secrets cannot be read:
    nobody is let in who might have to sign in."""
    return "auth" in _secrets()


def sign_in_settings() -> Mapping[str, Any]:
    """The section [auth]. Raises NotSignedIn as `sign_in_needed`."""
    found = _secrets().get("auth")
    return found if isinstance(found, Mapping) else {}


def person() -> Person:
    """Who uses this window. Raises NotSignedIn."""
    if not sign_in_needed():
        return Person(LOCAL, Viewer(), True)
    claims: Mapping[str, Any] = st.user.to_dict()
    if claims.get("is_logged_in") is not True:
        raise NotSignedIn("Sign in to see documents.")
    until = claims.get("exp")
    if not isinstance(until, int | float) or not time.time() < until < math.inf:
        raise NotSignedIn("Your sign-in is over. Sign in again.")
    viewer = _viewer(claims)
    return Person(viewer.user, viewer, viewer.sees(_administrators()))


def _viewer(claims: Mapping[str, Any]) -> Viewer:
    email = str(claims.get("email") or "")
    if email and str(claims.get("email_verified", True)).lower() != "true":
        raise NotSignedIn(
            f"The address {email} is not verified by those who signed you in. Verify it there, then sign in again."
        )
    user = email or str(claims.get("sub") or "")
    if not user.strip():
        raise NotSignedIn(
            "The sign-in names neither an email address nor an account; ask who set it up."
        )
    groups = claims.get(str(_own("groups_claim", "groups")))
    named = [groups] if isinstance(groups, str) else groups if isinstance(groups, list | tuple) else []
    return Viewer(user, frozenset(map(str, named)))


def _administrators() -> frozenset[str]:
    """Those who manage. "everyone" names nobody: a slip must not hand the collections to all.

    Raises AccessError where that cannot be read: nobody manages, and nobody is let in.
    """
    listed = _own("administrators", [])
    if isinstance(listed, str):
        return parse_access(listed) or frozenset()
    if not isinstance(listed, list | tuple) or not all(isinstance(one, str) for one in listed):
        raise AccessError(
            f"administrators in the app's secrets is {listed!r}, which names nobody; write a list of names, "
            'as in administrators = ["user:you@example.org", "group:admins"]'
        )
    quoted = (
        '"' + one.replace('"', '""') + '"' for one in listed if one.strip()
    )  # a name may hold commas
    return frozenset().union(*(parse_access(one) or () for one in quoted))


def administrators_named() -> bool:
    """Whether the secrets name somebody who manages."""
    return bool(_administrators())


def _own(name: str, default: object) -> Any:
    section = _secrets().get("rankscope", {})
    if not isinstance(section, Mapping):
        raise AccessError(
            "rankscope in the app's secrets is one value; write a section [rankscope] with lines below it, as in "
            'administrators = ["user:you@example.org", "group:admins"]'
        )
    return section.get(name, default)


def _secrets() -> Mapping[str, Any]:
    try:
        return st.secrets.to_dict()
    except StreamlitSecretNotFoundError:
        if any(Path(place).exists() for place in st.get_option("secrets.files")):
            raise NotSignedIn(
                "The app's secrets cannot be read, so nobody is let in; the server's log says why."
            ) from None
        return {}


# Whom the pages show


def viewing_as() -> Viewer | None:
    """Whom somebody who manages has chosen to view the app as."""
    return st.session_state.get(_VIEW_AS) if person().manages else None


def view_as(chosen: Viewer | None) -> None:
    """View the app as somebody from now on; None ends it."""
    st.session_state[_VIEW_AS] = chosen


def viewer() -> Viewer | None:
    """Whom the pages show; None is somebody who sees all. Raises NotSignedIn."""
    me = person()
    return st.session_state.get(_VIEW_AS) if me.manages else me.viewer


def whom() -> str:
    """A key for what is kept in this process of what a viewer sees; blank for who sees all."""
    shown = viewer()
    return "" if shown is None else "\0".join(("viewer", *sorted(shown.principals)))


def may_manage() -> bool:
    """Whether documents, rules, contexts, the index and kept settings may be changed in this window now."""
    try:
        return person().manages and viewing_as() is None
    except NotSignedIn:
        return False


def user() -> str:
    """For whom things are recorded; "local" where nobody signs in. Raises NotSignedIn."""
    return person().user
