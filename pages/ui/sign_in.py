"""What a browser sees before somebody signs in: nothing of the collections."""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st
from streamlit.errors import StreamlitAuthError

from pages.ui import draw, people
from pages.ui.plain import plain

_DEFAULT = ""


def sign_in(reason: str) -> None:
    """Why nothing is shown, and a button for each provider."""
    with st.container(key="empty_state"):
        draw.text("Sign in", "rs-empty-title")
        draw.text(reason, "rs-text")
        if st.query_params:
            draw.text("A link that you followed is lost by that: open it again afterwards.", "rs-quiet")
        with st.container(horizontal=True):
            for name in _providers():
                label = f"Sign in with {plain(name)}" if name else "Sign in"
                if st.button(label, key=f"sign_in_{name}", type="primary", icon=":material/login:"):
                    _ask(name)
            if st.user.get("is_logged_in"):
                st.button("Sign out", key="sign_out", icon=":material/logout:", on_click=st.logout)


def _providers() -> list[str]:
    """Names of the sections of [auth] that tell of a provider; blank: [auth] itself does."""
    try:
        auth = people.sign_in_settings()
    except people.NotSignedIn:
        return []  # the reason on the page says that they cannot be read
    named = [name for name, one in auth.items() if isinstance(one, Mapping) and "client_id" in one]
    return named if "client_id" not in auth and named else [_DEFAULT, *named]


def _ask(provider: str) -> None:
    try:
        st.login(provider or None)
    except StreamlitAuthError as error:
        draw.notice(f"Sign-in is not set up as it should be: {error}", "error")
