"""How the client fails: one sentence with the remedy, and an exit code that scripts can rely on."""

REFUSED = 1
USAGE = 2
NOT_SIGNED_IN = 3
CANNOT_REACH = 4


class Failure(Exception):
    """One sentence for the person at the terminal; `exit_code` is one of this module's."""

    def __init__(self, message: str, *, exit_code: int = REFUSED) -> None:
        super().__init__(message)
        self.exit_code = exit_code
