"""What the app is started with: nobody is asked or told anything on the way, nobody else can reach it."""

from __future__ import annotations

import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
CONFIG = tomllib.loads((ROOT / ".streamlit" / "config.toml").read_text(encoding="utf-8"))


def test_it_serves_this_machine_only_and_sends_nothing() -> None:
    assert CONFIG["server"]["address"] == "localhost"
    assert CONFIG["browser"]["gatherUsageStats"] is False
    assert CONFIG["server"].get("enableXsrfProtection", True) is True


def test_the_first_start_does_not_stop_at_a_prompt_for_an_address() -> None:
    assert CONFIG["server"]["showEmailPrompt"] is False


def test_fonts_come_from_the_machine() -> None:
    fonts = [CONFIG["theme"][name] for name in ("font", "headingFont", "codeFont")]
    assert set(fonts) <= {"sans-serif", "monospace"}
