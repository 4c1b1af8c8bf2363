"""What the supervisor says, and how it fails: one sentence with the remedy."""

import contextlib
import sys
import time
from collections.abc import Iterator


class Failure(Exception):
    """One sentence for the operator: what is wrong and what to do. Ends the command with code 1."""


def say(text: str) -> None:
    """Print one line of the supervisor's own."""
    print(f"slipway: {text}", flush=True)


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
    print(f"slipway: {text}", file=sys.stderr, flush=True)
