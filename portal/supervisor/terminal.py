"""What the supervisor says, and how it fails: one sentence with the remedy."""

import contextlib
import os
import sys
import time
from collections.abc import Iterator

_stream = sys.stdout


class Failure(Exception):
    """One sentence for the operator: what is wrong and what to do. Ends the command with code 1."""


def use_stderr() -> None:
    """Speak on standard error from now on: standard output belongs to the command that follows."""
    global _stream
    _stream = sys.stderr


def say(text: str) -> None:
    """Print one line of the supervisor's own."""
    line(f"slipway: {text}")


def line(text: str) -> None:
    """Print one line as it is; a reader that has gone away (a pipe, a terminal) stops nothing."""
    try:
        print(text, file=_stream, flush=True)
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), _stream.fileno())


@contextlib.contextmanager
def step(text: str) -> Iterator[None]:
    """Print what is being done, and the seconds it took when that was noticeable."""
    say(f"{text} …")
    begun = time.monotonic()
    yield
    seconds = time.monotonic() - begun
    if seconds >= 1:
        say(f"{text}: done in {seconds:.0f} s")


def fail(text: str) -> None:
    """Print one sentence to standard error."""
    sys.stdout.flush()
    print(f"slipway: {text}", file=sys.stderr, flush=True)
