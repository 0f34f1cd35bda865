"""The command ``suffice``: from a file to a fitted, inspected, shared model without writing code.

Starting is light: only typer is loaded before a command is known; the library is loaded by what the command needs.
"""

from __future__ import annotations

import os
import re
import sys

# Commands enter the application when their modules are loaded; the help lists them in this order.
from suffice.cli import learning, questions
from suffice.cli.application import app

__all__ = ["app", "learning", "main", "questions"]

#: Exit code of a mistake in what was asked; the same as that of the parser of options.
MISTAKE = 2
#: Most characters of a message that is not of this library.
LONGEST = 200
#: Exit codes of a process that ended by Ctrl-C and by a closed pipe, as shells give them.
INTERRUPTED, CLOSED_PIPE = 130, 141


def main() -> None:
    """Run the command; a mistake is one sentence on stderr and exit code 2, and `--debug` shows where it arose."""
    # Names may hold any letter, and a terminal may know few of them.
    sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    given = sys.argv[1:]
    last = given.index("--") if "--" in given else len(given)  # What stands behind it is no option.
    debug = "--debug" in given[:last]
    arguments = [argument for argument in given[:last] if argument != "--debug"] + given[last:] or ["--help"]
    try:
        code = _run(arguments)
        sys.stdout.flush()
    except BrokenPipeError:
        # Whoever read the output has left. Nothing more may be flushed into the pipe when the process ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = CLOSED_PIPE
    except KeyboardInterrupt:
        print("suffice: interrupted.", file=sys.stderr)
        code = INTERRUPTED
    except Exception as error:
        if debug:
            import traceback

            traceback.print_exc()
        print(_sentence(error), file=sys.stderr)
        code = MISTAKE
    raise SystemExit(code)


def _run(arguments: list[str]) -> int:
    """The exit code of the command, without the parser's own way of showing errors."""
    import warnings

    import typer

    command = typer.main.get_command(app)
    with warnings.catch_warnings():
        warnings.showwarning = _show_warning
        try:
            with command.make_context("suffice", arguments) as context:
                command.invoke(context)
        except typer.Exit as ended:
            return int(ended.exit_code)
    return 0


def _show_warning(message: Warning | str, *details: object, **more: object) -> None:
    print(f"suffice: warning: {_as_typed(' '.join(str(message).split()))}", file=sys.stderr)


def _sentence(error: Exception) -> str:
    """What went wrong, in one line."""
    from suffice.errors import SufficeError

    text = " ".join(str(error).split())
    if hasattr(error, "format_message"):
        context = getattr(error, "ctx", None)
        message = " ".join(error.format_message().split()).rstrip(".")
        end, command = "" if message.endswith("?") else ".", "suffice" if context is None else context.command_path
        text = f"{message}{end} See {command} --help."
    elif isinstance(error, OSError) and error.strerror:
        text = f"{error.strerror}: {error.filename}" if error.filename else error.strerror
    elif not isinstance(error, SufficeError):
        # Words of other packages, which may be long.
        text = f"{type(error).__name__}: {text[:LONGEST]} (--debug shows where.)"
    return f"suffice: {_as_typed(text)}"


def _as_typed(text: str) -> str:
    """A message of the library in which declarations are written as on the command line."""
    return re.sub(r"states=\{'([^']*)': '(discrete|real)'\}", r"--states \1=\2", text)
