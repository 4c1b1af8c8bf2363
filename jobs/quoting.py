"""Puts parameters into shell scripts as references to variables, never as text (pure).

A script says `{{ name }}`; the value travels in the environment as `SLIPWAY_PARAM_NAME`, and the
scanner writes a reference that is right for its place: bare, within double quotes, within single
quotes, or in a here-document whose delimiter is not quoted. Anywhere else it refuses, with the line
and the remedy. It follows POSIX.1-2024, Shell Command Language, sections 2.2 (quoting), 2.3 (token
recognition), 2.6 (expansions) and 2.7.4 (here-documents), and knows bash's `$'…'` and `<<<`.
"""

import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from enum import Enum, auto

PREFIX = "SLIPWAY_PARAM_"
SHELLS = frozenset({"sh", "bash", "dash", "ash", "ksh", "zsh"})
_PLACEHOLDER = re.compile(r"\{\{[ \t]*([A-Za-z_][A-Za-z0-9_]*)[ \t]*\}\}")
_HEREDOC = re.compile(r"<<(-?)[ \t]*")
_BLANK = " \t\n;&|()<>"


class Place(Enum):
    """Where in a script a character stands."""

    BARE = auto()
    DOUBLE = auto()
    SINGLE = auto()
    ANSI = auto()
    COMMENT = auto()
    BACKTICK = auto()
    BRACE = auto()
    ARITHMETIC = auto()
    HEREDOC = auto()
    QUOTED_HEREDOC = auto()


_REFUSED = {
    Place.ANSI: "within $'…'; close it and write the parameter in double quotes",
    Place.COMMENT: "in a comment, where it does nothing; remove it",
    Place.BACKTICK: "within backticks; write $(…) instead",
    Place.BRACE: "within ${…}; assign the parameter to a variable first",
    Place.ARITHMETIC: "within $((…)); assign the parameter to a variable first",
    Place.QUOTED_HEREDOC: "in a here-document with a quoted delimiter; write <<EOF without quotes",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """Why a script is refused; `line` counts from 1."""

    line: int
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Scanned:
    """A script with its parameters as references, or the faults that forbid it."""

    text: str
    used: frozenset[str]
    faults: tuple[Fault, ...]


@dataclass(slots=True)
class _Heredoc:
    delimiter: str
    is_quoted: bool
    strips_tabs: bool


@dataclass(slots=True)
class _Scan:
    source: str
    known: Collection[str]
    at: int = 0
    out: list[str] = field(default_factory=list)
    stack: list[Place] = field(default_factory=lambda: [Place.BARE])
    depths: list[int] = field(default_factory=lambda: [0])
    waiting: list[_Heredoc] = field(default_factory=list)
    used: set[str] = field(default_factory=set)
    faults: list[Fault] = field(default_factory=list)

    @property
    def place(self) -> Place:
        return self.stack[-1]

    def starts(self, text: str) -> bool:
        return self.source.startswith(text, self.at)

    def copy(self, count: int = 1) -> None:
        self.out.append(self.source[self.at : self.at + count])
        self.at += count

    def enter(self, place: Place, count: int) -> None:
        self.copy(count)
        self.stack.append(place)
        self.depths.append(0)

    def leave(self, count: int = 1) -> None:
        self.copy(count)
        self.stack.pop()
        self.depths.pop()

    def refuse(self, message: str, *, at: int | None = None) -> None:
        line = self.source.count("\n", 0, self.at if at is None else at) + 1
        self.faults.append(Fault(line=line, message=message))


Step = Callable[[_Scan], None]


def variable_of(name: str) -> str:
    """Return the environment variable that carries a parameter."""
    return PREFIX + name.upper()


def placeholders(text: str) -> Iterator[str]:
    """Yield the names of the placeholders in a text, with repetitions."""
    for found in _PLACEHOLDER.finditer(text):
        yield found.group(1)


def scan(script: str, *, known: Collection[str]) -> Scanned:
    """Replace each `{{ name }}` of a script by a reference fit for its place.

    `known` are the definition's parameters. A script with faults must not be saved.
    """
    state = _Scan(script, known)
    if "\0" in script:
        state.refuse("A script holds no NUL byte; remove it.", at=script.index("\0"))
    uses_any = _PLACEHOLDER.search(script) is not None
    interpreter = _interpreter(script)
    if uses_any and interpreter not in SHELLS:
        state.refuse(
            f"Parameters work in shell scripts, and this one is for {interpreter}; read the "
            f"variables {PREFIX}… from its environment instead.",
            at=0,
        )
        return Scanned(text=script, used=frozenset(), faults=tuple(state.faults))
    while state.at < len(script):
        _step(state)
    if uses_any and state.place not in (Place.BARE, Place.COMMENT):
        state.refuse("A quote or bracket is still open at the end of the script; close it.")
    return Scanned(text="".join(state.out), used=frozenset(state.used), faults=tuple(state.faults))


def _interpreter(script: str) -> str:
    """Return the program of the first line, `sh` without one."""
    if not script.startswith("#!"):
        return "sh"
    words = script[2:].split("\n", 1)[0].split()
    if not words:
        return "sh"
    program = words[0].rsplit("/", 1)[-1]
    if program == "env":
        rest = [word for word in words[1:] if not word.startswith("-") and "=" not in word]
        program = rest[0].rsplit("/", 1)[-1] if rest else "env"
    return program


def _step(state: _Scan) -> None:
    """Move over one character, one placeholder or one bracket."""
    found = _PLACEHOLDER.match(state.source, state.at)
    if found:
        _put(state, found)
    elif state.starts("$") and _PLACEHOLDER.match(state.source, state.at + 1):
        if state.place is not Place.SINGLE:
            state.refuse("A placeholder stands after a $; remove the $.")
        state.copy()
    elif state.starts("\\") and state.place not in (Place.SINGLE, Place.COMMENT):
        if _PLACEHOLDER.match(state.source, state.at + 1):
            state.refuse("A placeholder stands after a backslash; remove the backslash.")
        state.copy(2)
    else:
        _STEPS[state.place](state)


def _put(state: _Scan, found: "re.Match[str]") -> None:
    name, place = found.group(1), state.place
    if name not in state.known:
        state.refuse(f"There is no parameter {name}; declare it, or correct the name.")
    elif place in _REFUSED:
        state.refuse(f"The parameter {name} stands {_REFUSED[place]}.")
    else:
        state.used.add(name)
        reference = f"${{{variable_of(name)}}}"
        wrapped = {Place.BARE: f'"{reference}"', Place.SINGLE: f"'\"{reference}\"'"}
        state.out.append(wrapped.get(place, reference))
        state.at = found.end()
        return
    state.copy(found.end() - found.start())


def _bare(state: _Scan) -> None:
    character = state.source[state.at]
    if _expansion(state):
        return
    match character:
        case "'":
            state.enter(Place.SINGLE, 1)
        case '"':
            state.enter(Place.DOUBLE, 1)
        case "#" if state.at == 0 or state.source[state.at - 1] in _BLANK:
            state.enter(Place.COMMENT, 1)
        case "<" if state.starts("<<<"):
            state.copy(3)
        case "<" if state.starts("<<"):
            _open_heredoc(state)
        case "(":
            state.depths[-1] += 1
            state.copy()
        case ")" if state.depths[-1] == 0 and len(state.stack) > 1:
            state.leave()
        case ")":
            state.depths[-1] = max(0, state.depths[-1] - 1)
            state.copy()
        case "\n":
            state.copy()
            _read_heredocs(state)
        case _:
            state.copy()


def _expansion(state: _Scan) -> bool:
    """Enter `$((`, `$(`, `${`, `$'` or a backtick, and tell whether there was one."""
    if state.starts("$(("):
        state.enter(Place.ARITHMETIC, 3)
    elif state.starts("$("):
        state.enter(Place.BARE, 2)
    elif state.starts("${"):
        state.enter(Place.BRACE, 2)
    elif state.starts("$'") and state.place is Place.BARE:
        state.enter(Place.ANSI, 2)
    elif state.starts("`"):
        state.enter(Place.BACKTICK, 1)
    else:
        return False
    return True


def _double(state: _Scan) -> None:
    if _expansion(state):
        return
    if state.starts('"'):
        state.leave()
    else:
        state.copy()


def _until(end: str) -> Step:
    def step(state: _Scan) -> None:
        if state.starts(end):
            state.leave(len(end))
        else:
            state.copy()

    return step


def _comment(state: _Scan) -> None:
    if state.starts("\n"):
        state.stack.pop()
        state.depths.pop()
    else:
        state.copy()


def _brace(state: _Scan) -> None:
    if state.starts("${"):
        state.enter(Place.BRACE, 2)
    elif state.starts("}"):
        state.leave()
    elif state.starts("'"):
        end = state.source.find("'", state.at + 1)
        state.copy((end if end >= 0 else len(state.source)) - state.at + 1)
    else:
        state.copy()


def _open_heredoc(state: _Scan) -> None:
    """Remember a here-document whose text begins after this line."""
    opening = _HEREDOC.match(state.source, state.at)
    assert opening is not None  # noqa: S101 - the caller saw <<
    end = opening.end()
    if _PLACEHOLDER.match(state.source, end):
        state.refuse("A here-document's delimiter cannot be a parameter; write a plain word.")
    word, is_quoted = "", False
    while end < len(state.source) and state.source[end] not in _BLANK:
        character = state.source[end]
        if character in "'\"":
            is_quoted = True
            close = state.source.find(character, end + 1)
            close = close if close >= 0 else len(state.source)
            word += state.source[end + 1 : close]
            end = close + 1
        elif character == "\\":
            is_quoted = True
            word += state.source[end + 1 : end + 2]
            end += 2
        else:
            word += character
            end += 1
    state.copy(end - state.at)
    state.waiting.append(_Heredoc(word, is_quoted, bool(opening.group(1))))


def _read_heredocs(state: _Scan) -> None:
    """Move over the texts of the here-documents that the line before opened."""
    while state.waiting:
        heredoc = state.waiting.pop(0)
        place = Place.QUOTED_HEREDOC if heredoc.is_quoted else Place.HEREDOC
        state.stack.append(place)
        state.depths.append(0)
        while state.at < len(state.source):
            line_end = state.source.find("\n", state.at)
            line_end = line_end if line_end >= 0 else len(state.source)
            line = state.source[state.at : line_end]
            is_end = (line.lstrip("\t") if heredoc.strips_tabs else line) == heredoc.delimiter
            if is_end and state.place is place:
                state.copy(line_end - state.at + 1)
                break
            _heredoc_line(state, line_end)
        state.stack.pop()
        state.depths.pop()


def _heredoc_line(state: _Scan, line_end: int) -> None:
    quoted = state.place is Place.QUOTED_HEREDOC
    while state.at < min(line_end + 1, len(state.source)):
        if quoted and not _PLACEHOLDER.match(state.source, state.at):
            state.copy()
        else:
            _step(state)


def _heredoc(state: _Scan) -> None:
    if not _expansion(state):
        state.copy()


_STEPS = {
    Place.BARE: _bare,
    Place.DOUBLE: _double,
    Place.SINGLE: _until("'"),
    Place.ANSI: _until("'"),
    Place.COMMENT: _comment,
    Place.BACKTICK: _until("`"),
    Place.BRACE: _brace,
    Place.ARITHMETIC: _until("))"),
    Place.HEREDOC: _heredoc,
    Place.QUOTED_HEREDOC: _heredoc,
}
