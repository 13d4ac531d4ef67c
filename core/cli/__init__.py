"""The command line: the same collections, searches and exports as the app, in a terminal or a script.

Exit codes: 0 done; 1 something a person can mend (said on standard error); 2 the call's words are off.
"""

from core.cli import claude, commands
from core.cli.base import app


def main() -> None:
    app()


__all__ = ["app", "claude", "commands", "main"]
