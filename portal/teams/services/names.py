"""Names as people give them, to teams and to themselves."""

import unicodedata

from portal.core.errors import Invalid

MOST = 250


def check_name(name: str, *, least: int = 1) -> str:
    """Return the name without surrounding or doubled space, of `least` to 250 characters.

    Raises `Invalid` for another length, for control characters, which a terminal would obey, and
    for a name of which nothing can be seen.
    """
    name = " ".join(name.split())
    message = ""
    if not least <= len(name) <= MOST:
        message = f"Give a name of {least} to {MOST} characters."
    elif any(unicodedata.category(c) == "Cc" for c in name):
        message = "A name has no control characters."
    elif name and all(unicodedata.category(c)[0] in "CZ" for c in name):
        message = "Give a name that can be seen."
    if message:
        raise Invalid.at("name", message)
    return name
