"""The command line: the same collections, searches and exports as the app, in a terminal or a script.

Exit codes: 0 done; 1 something a person can mend (said on standard error); 2 the call's words are off;
3 measured, and a figure is on the wrong side of its --fail-under.
"""

from core.cli import access, behaviour, claude, commands, evaluate, rules
from core.cli.base import app


def main() -> None:
    app()


__all__ = ["access", "app", "behaviour", "claude", "commands", "evaluate", "main", "rules"]
