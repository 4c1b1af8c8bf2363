"""Tells whether a regular expression of a definition can take for ever (pure).

Python's `re` backtracks, so a pattern such as `(a+)+` holds a whole process of the portal. What is
accepted here repeats nothing within a repetition and has at most `MOST_WAYS` ways to match, and no
value that it meets is longer than `LONGEST`.
"""

import math
import re
from collections.abc import Iterator
from re import _constants, _parser  # type: ignore[attr-defined] # the only parser of Python's own
from typing import Any

LONGEST = 300
MOST_WAYS = 8 * LONGEST**2
_REPEATS = {_constants.MAX_REPEAT, _constants.MIN_REPEAT}
_ODD = {_constants.GROUPREF, _constants.GROUPREF_EXISTS, _constants.ASSERT, _constants.ASSERT_NOT}


def fault_of(pattern: str) -> str:
    """Return why the pattern is not taken, with the remedy; empty when it is."""
    try:
        tree = _parser.parse(pattern)
    except (re.error, RecursionError, OverflowError) as error:
        return f"The pattern cannot be read: {error}."
    found = list(_repeats(tree, within=False))
    if None in found:
        return (
            "The pattern could take for ever: it repeats what repeats or branches itself, looks "
            "around or back. Write it without, or use an enum."
        )
    if math.prod(ways for ways in found if ways) > MOST_WAYS:
        return "The pattern could take for ever: use * and + twice at most, and few of ? and {}."
    return ""


def _repeats(tree: Any, *, within: bool) -> Iterator[int | None]:
    """Yield in how many lengths each part can match; `None` for one that cannot be bounded."""
    for kind, value in tree:
        if kind in _ODD or (within and (kind in _REPEATS or kind is _constants.BRANCH)):
            yield None
        elif kind in _REPEATS:
            least, most, part = value
            yield min(int(most), LONGEST) - min(int(least), LONGEST) + 1
            yield from _repeats(part, within=most > 1)
        elif kind is _constants.SUBPATTERN:
            yield from _repeats(value[-1], within=within)
        elif kind is _constants.BRANCH:
            for part in value[1]:
                yield from _repeats(part, within=within)
        elif kind is _constants.ATOMIC_GROUP or kind is _constants.POSSESSIVE_REPEAT:
            yield None
