"""A job's life in people's words (pure): how it ended, what its phases took, what happened."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import chain, pairwise

from jobs.states import Phase

SIGNALS = {
    1: "its terminal hung up",
    2: "interrupted",
    3: "quit",
    4: "it ran an instruction that this processor does not have",
    6: "it aborted, often by a failed assertion",
    7: "bus error, often because shared memory or a file ran out",
    8: "arithmetic error",
    9: "killed, often because memory ran out",
    10: "its signal USR1, which it did not handle",
    11: "segmentation fault, a fault in native code",
    12: "its signal USR2, which it did not handle",
    13: "what it wrote to was closed",
    15: "asked to end",
    24: "its limit of CPU time was reached",
    25: "its limit of file size was reached",
}
EXITS = {
    1: "the command reported a failure",
    2: "the command was called in a wrong way",
    125: "its node could not prepare it, so the command was not tried",
    126: "the command could not be run: not executable, or not for this machine",
    127: "the command was not found",
}
TITLES = {
    Phase.QUEUED: "In line",
    Phase.ADMITTED: "Admitted",
    Phase.SUBMITTED: "Handed to the cluster",
    Phase.RUNNING: "Running",
    Phase.STOPPING: "Stopping",
    Phase.SUCCEEDED: "Succeeded",
    Phase.FAILED: "Failed",
    Phase.CANCELLED: "Cancelled",
}
TONES = {
    Phase.QUEUED: "wait",
    Phase.ADMITTED: "wait",
    Phase.SUBMITTED: "run",
    Phase.RUNNING: "run",
    Phase.STOPPING: "warn",
    Phase.SUCCEEDED: "ok",
    Phase.FAILED: "bad",
    Phase.CANCELLED: "mute",
}
BECAUSE = {
    "user": "Somebody asked to stop it.",
    "time_limit": "It ran for its whole time limit.",
    "out_of_memory": "It used more memory than it may.",
    "node_failure": "Its node failed.",
    "preempted": "The cluster gave its place to another job.",
    "lost": "The cluster does not know it any more.",
    "rejected": "The cluster did not take it.",
    "budget_exhausted": "The budget is used up.",
    "no_capacity": "No place came free in time.",
}
SPENT = {
    Phase.QUEUED: "Waited",
    Phase.ADMITTED: "Handed over",
    Phase.SUBMITTED: "Started",
    Phase.RUNNING: "Ran",
    Phase.STOPPING: "Stopped",
}
_UNITS = ((86400, "d"), (3600, "h"), (60, "min"), (1, "s"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Happening:
    """One line of a story, as it is stored."""

    at: datetime
    kind: str
    phase: str = ""
    reason: str = ""
    message: str = ""
    actor: str = ""
    attempt: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Saved:
    """A checkpoint that is complete."""

    at: datetime
    name: str
    attempt: int
    bytes: int
    seconds: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One line of a story, as it is read."""

    at: datetime
    title: str
    tone: str
    icon: str
    text: str = ""
    took: str = ""
    """How long after the line before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """One piece of the strip of phases; `x` and `width` in percent of the whole."""

    word: str
    tone: str
    icon: str
    took: str
    x: float
    width: float


def duration(seconds: float) -> str:
    """Write a span of time as people say it: `6 h 12 min`, `41 s`, `0.3 s`."""
    if 0.05 <= seconds < 0.95:
        return f"{seconds:.1f} s"
    left = max(0, int(seconds))
    for (size, word), (next_size, next_word) in pairwise(_UNITS):
        count, rest = divmod(left, size)
        if count:
            more = rest // next_size
            return f"{count} {word} {more} {next_word}" if more else f"{count} {word}"
    return f"{left} s"


def ending(exit_code: int | None, signal: int | None) -> str:
    """Say how the command ended; nothing when nobody knows.

    A shell reports a command that a signal ended as 128 and the signal's number.
    """
    number = signal or (exit_code - 128 if exit_code is not None and exit_code > 128 else 0)
    head = f"Exit code {exit_code}" if exit_code is not None else ""
    if number and (signal or number in SIGNALS):
        said = f"signal {number}: {SIGNALS.get(number, 'ended from outside')}"
        return f"{head}, {said}." if head else f"Ended by {said}."
    if exit_code is None:
        return ""
    meaning = EXITS.get(exit_code)
    return f"{head}: {meaning}." if meaning else f"{head}."


def because(reason: str) -> str:
    """Say why a job ended, or waits; nothing when its exit code says it."""
    if reason in ("", "exit_code", "completed"):
        return ""
    return BECAUSE.get(reason) or reason.replace("_", " ").capitalize() + "."


def story(events: Sequence[Happening], *, ending: str = "") -> list[Line]:
    """Return the lines of a story, newest first, from what happened, oldest first.

    `ending` says how the command ended, for a last line that says no more than that it did.
    """
    if events and events[-1].reason == "exit_code" and not events[-1].message:
        events = [*events[:-1], replace(events[-1], message=ending)]
    lines = []
    for number, event in enumerate(events):
        before = events[number - 1] if number else None
        seconds = (event.at - before.at).total_seconds() if before else 0
        lines.append(_line(event, is_first=before is None, seconds=seconds))
    return lines[::-1]


def saved(checkpoints: Sequence[Saved], *, most: int = 3) -> list[Line]:
    """Return the newest checkpoints as lines, newest first, and the others as one.

    Of what several nodes have seen, under one name in one attempt, the last counts.
    """
    by_name = {(found.attempt, found.name): found for found in checkpoints}
    newest = sorted(by_name.values(), key=lambda found: found.at, reverse=True)
    lines = [
        Line(at=found.at, title=_complete(found), tone="ok", icon="s-succeeded")
        for found in newest[:most]
    ]
    if folded := newest[most:]:
        title = f"{len(folded):,} more checkpoint{'s' if len(folded) > 1 else ''} before"
        text = f"The first was {folded[-1].name}." if len(folded) > 1 else folded[0].name
        lines.append(Line(at=folded[0].at, title=title, tone="ok", icon="s-succeeded", text=text))
    return lines


def merged(*stories: Iterable[Line]) -> list[Line]:
    """Return the lines of several stories as one, newest first."""
    return sorted(chain(*stories), key=lambda line: line.at, reverse=True)


def _complete(found: Saved) -> str:
    took = f" in {took_words(found.seconds)}" if found.seconds is not None else ""
    return f"Checkpoint {found.name} complete, {size(found.bytes)}{took}"


def took_words(seconds: float) -> str:
    """Write a short span with its tenths: `1.2 s`; a long one as `duration` does."""
    return f"{seconds:.1f} s" if seconds < 10 else duration(seconds)


def size(count: int) -> str:
    """Write a number of bytes as people say it: `12 MB`, `3.4 GB`, `512 B`."""
    for unit, word in ((10**12, "TB"), (10**9, "GB"), (10**6, "MB"), (10**3, "kB")):
        if count >= unit:
            value = count / unit
            return f"{value:.0f} {word}" if value >= 10 else f"{value:.1f} {word}"
    return f"{count} B"


def _line(event: Happening, *, is_first: bool, seconds: float) -> Line:
    took = f"after {duration(seconds)}" if seconds >= 0.05 else ""
    by = f" by {event.actor}" if event.actor else ""
    if not event.phase:
        title = event.message.rstrip(".") if event.message else event.kind.capitalize()
        icon = {"wish": "user", "waits": "s-queued"}.get(event.kind, "s-info")
        tone = "wait" if event.kind == "waits" else "mute"
        return Line(at=event.at, title=title + by, tone=tone, icon=icon, took=took)
    phase = Phase(event.phase)
    title, icon = TITLES[phase] + by, f"s-{phase.lower()}"
    if is_first:
        title, icon = f"Launched{by}", "user"
    elif event.attempt > 1 and phase is Phase.QUEUED:
        title = f"In line again, as attempt {event.attempt}"
    text = event.message or because(event.reason)
    return Line(at=event.at, title=title, tone=TONES[phase], icon=icon, text=text, took=took)


def spans(events: Iterable[Happening], *, now: datetime) -> list[Span]:
    """Return what each phase took, in order; a phase that lasts ends now."""
    phases = [(Phase(event.phase), event.at) for event in events if event.phase]
    if not phases:
        return []
    ends = [at for _, at in phases[1:]] + [max(now, phases[-1][1])]
    lasted = [
        (phase, (end - at).total_seconds())
        for (phase, at), end in zip(phases, ends, strict=True)
        if not phase.is_final
    ]
    whole = sum(seconds for _, seconds in lasted) or 1
    found, x = [], 0.0
    for phase, seconds in lasted:
        width = 100 * seconds / whole
        found.append(
            Span(
                word=SPENT[phase],
                tone="ok" if phase is Phase.RUNNING else TONES[phase],
                icon=f"s-{phase.lower()}",
                took=duration(seconds),
                x=round(x, 3),
                width=round(width, 3),
            )
        )
        x += width
    return found
