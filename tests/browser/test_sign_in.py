"""Signing in by OpenID Connect, in a browser, at a provider that runs here."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from core.access import parse_access
from core.collection import open_collection, remember
from tests.browser.conftest import ROOT, free_port, make_collection, wait_for

oidc_provider_mock = pytest.importorskip("oidc_provider_mock", reason="needs oidc-provider-mock")
pytest.importorskip("authlib", reason="needs Authlib, the extra signin")

TEXTS = {
    "pumps.md": "# Pumps\n\nA dry bearing makes the pump rattle. Grease the bearing.\n",
    "fans.md": "# Fans\n\nA bearing without grease squeaks.\n",
    "lamps.md": "# Lamps\n\nA lamp flickers, its bearing does not.\n",
}
PEOPLE = {
    "anna": {"email": "anna@example.org", "email_verified": True, "groups": ["sales"]},
    "bert": {"email": "bert@example.org", "email_verified": True, "groups": ["service"]},
    "root": {"email": "root@example.org", "email_verified": True, "groups": ["admins"]},
    "eve": {"email": "anna@example.org", "email_verified": False, "groups": []},
}
_SHORT = timedelta(seconds=6)  # a sign-in that is over while a test waits
_PROVIDER = """client_id = "rankscope"
client_secret = "of-this-test"
server_metadata_url = "http://localhost:{port}/.well-known/openid-configuration"
"""


@pytest.fixture(scope="module")
def app(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of an app in which people sign in, with one collection."""
    home = tmp_path_factory.mktemp("signing_in")
    port = free_port()
    with ExitStack() as stack:
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        patch.setenv("RANKSCOPE_HOME", str(home))
        remember("sample", "done")
        made = make_collection(home, "Machines", TEXTS)
        remember("last_collection", "Machines")
        ids = dict(zip(made.documents().names, made.documents().ids, strict=True))
        made.set_access([ids["pumps.md"]], parse_access("group:sales"))
        made.set_access([ids["fans.md"]], parse_access("bert@example.org"))
        users = [oidc_provider_mock.User(sub=sub, claims=claims) for sub, claims in PEOPLE.items()]
        server = oidc_provider_mock.run_server_in_thread
        whole = stack.enter_context(server(user_claims=users))
        short = stack.enter_context(server(user_claims=users, access_token_max_age=_SHORT))
        secrets = home / "secrets.toml"
        secrets.write_text(
            f'[auth]\nredirect_uri = "http://127.0.0.1:{port}/oauth2callback"\n'
            f'cookie_secret = "a-long-secret-of-this-test"\n{_PROVIDER.format(port=whole.server_port)}'
            f"[auth.short]\n{_PROVIDER.format(port=short.server_port)}"
            '[rankscope]\nadministrators = ["group:admins"]\n'
        )
        log = home.with_name("signing_in.log")
        out = stack.enter_context(log.open("wb"))
        command = [sys.executable, str(Path(__file__).with_name("serve.py")), str(port)]
        process = subprocess.Popen(
            [*command, "--secrets.files", str(secrets)], cwd=ROOT, stdout=out, stderr=subprocess.STDOUT
        )
        try:
            wait_for(f"http://127.0.0.1:{port}", process, log)
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()
            process.wait(timeout=20)


@pytest.fixture
def windows(browser: Browser) -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def window(browser: Browser, windows: ExitStack) -> Page:
    """A browser that nobody signed in with."""
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    windows.callback(context.close)
    context.set_default_timeout(30_000)
    return context.new_page()


def sign_in(page: Page, app: str, who: str, button: str = "Sign in") -> None:
    page.goto(app)
    page.get_by_role("button", name=button, exact=True).click()
    page.get_by_role("button", name=who, exact=True).first.click()
    page.wait_for_url(f"{app}/**")


def files(page: Page, app: str) -> None:
    page.goto(f"{app}/documents")
    expect(page.get_by_text("In the collection")).to_be_visible()


def test_an_unsigned_browser_sees_nothing(browser: Browser, windows: ExitStack, app: str) -> None:
    page = window(browser, windows)
    said: list[str] = []
    page.on(
        "websocket", lambda socket: socket.on("framereceived", lambda frame: said.append(str(frame)))
    )
    for path in ("", "documents", "chunks", "context", "answer", "evaluate", "rules"):
        page.goto(f"{app}/{path}?q=bearing&collection=Machines")
        expect(page.get_by_text("Sign in to see documents.")).to_be_visible()
        expect(page.get_by_role("button", name="Sign in", exact=True)).to_be_visible()
        expect(page.get_by_role("button", name="Sign in with short")).to_be_visible()
        assert page.get_by_role("combobox").count() == page.get_by_role("textbox").count() == 0
    # What is not drawn was not sent either.
    assert said
    for word in ("pumps", "Grease", "fans.md", "Lamps"):
        assert word not in "".join(said)


def test_two_users_see_different_results_and_an_administrator_manages(
    browser: Browser, windows: ExitStack, app: str
) -> None:
    root, anna, bert = (window(browser, windows) for _ in range(3))
    sign_in(root, app, "root")
    files(root, app)
    root.get_by_role("button", name="Index now").click()
    expect(root.get_by_text("Indexed: 3 chunks of 3 documents.")).to_be_visible()
    expect(root.get_by_text("3 of 3 files")).to_be_visible()

    for page, who, seen, hidden in (
        (anna, "anna", "Pumps", "Fans"),
        (bert, "bert", "Fans", "Pumps"),
    ):
        sign_in(page, app, who)
        expect(page.get_by_text(f"{who}@example.org")).to_be_visible()
        page.get_by_placeholder("Ask the documents something").fill("bearing grease")
        page.get_by_placeholder("Ask the documents something").press("Enter")
        expect(page.get_by_text(f"{seen}", exact=True).first).to_be_visible()
        expect(page.get_by_text("Searched 2 chunks")).to_be_visible()
        assert hidden not in page.locator("body").inner_text()
        files(page, app)
        expect(page.get_by_text("2 of 2 files")).to_be_visible()
        expect(
            page.get_by_text("Adding, removing and who may see what is for administrators.")
        ).to_be_visible()
        assert page.get_by_text("Add documents").count() == 0

    # What is taken back while it is on show is gone at the next click, which draws only a part of the page.
    bert.goto(f"{app}/?q=bearing")
    expect(bert.locator(".card", has_text="Fans").first).to_be_visible()
    machines = open_collection("Machines")
    fans = dict(zip(machines.documents().names, machines.documents().ids, strict=True))["fans.md"]
    machines.set_access([fans], frozenset())
    bert.locator(".card", has_text="Lamps").first.click()
    expect(bert.get_by_text("Searched 1 chunk ")).to_be_visible()
    assert "Fans" not in bert.locator("body").inner_text()
    machines.set_access([fans], parse_access("bert@example.org"))


def test_signing_out_ends_it(browser: Browser, windows: ExitStack, app: str) -> None:
    page = window(browser, windows)
    sign_in(page, app, "anna")
    page.get_by_role("button", name="anna@example.org").click()
    expect(page.get_by_text("anna@example.org, group sales")).to_be_visible()
    page.get_by_role("button", name="Sign out").click()
    page.get_by_role("button", name="End session").click()  # the provider asks too
    expect(page.get_by_text("Sign in to see documents.")).to_be_visible()
    page.goto(f"{app}/documents")
    expect(page.get_by_text("Sign in to see documents.")).to_be_visible()


def test_an_address_that_is_not_verified_is_refused(
    browser: Browser, windows: ExitStack, app: str
) -> None:
    page = window(browser, windows)
    sign_in(page, app, "eve")
    expect(page.get_by_text("The address anna@example.org is not verified")).to_be_visible()
    assert page.get_by_role("combobox").count() == 0


def test_a_sign_in_is_over_when_its_token_expires(
    browser: Browser, windows: ExitStack, app: str
) -> None:
    page = window(browser, windows)
    sign_in(page, app, "anna", "Sign in with short")
    expect(page.get_by_placeholder("Ask the documents something")).to_be_visible()
    page.wait_for_timeout(_SHORT.total_seconds() * 1000)
    page.get_by_placeholder("Ask the documents something").fill("bearing")
    page.get_by_placeholder("Ask the documents something").press("Enter")
    expect(page.get_by_text("Your sign-in is over. Sign in again.")).to_be_visible()
    page.reload()
    expect(page.get_by_text("Your sign-in is over. Sign in again.")).to_be_visible()
