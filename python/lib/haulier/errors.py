"""Errors: one class for each kind of haulier's list, the same in every language.

The sentence of an error is for a person, and may be reworded. A program asks for the class, or for `kind`.
"""

from __future__ import annotations

import builtins
from typing import ClassVar, Dict, Optional, Tuple, Type


class HaulierError(Exception):
    """What went wrong. Each kind has a class of its own."""

    kind: ClassVar[str] = "internal"
    """The kind, in the word that every language has for it."""

    code: Optional[int] = None
    """Why the peer or this end has closed the connection, as a number (`CloseCode`); None if nobody has."""

    name: Optional[str] = None
    """What that code is called, or why the server refused: "full", "token_expired"."""

    reason: str = ""
    """The peer's own words, to be shown and not to be trusted."""


class UsageError(HaulierError, ValueError):
    """The program asked for something that makes no sense: mend the program."""

    kind = "usage"


class CredentialsError(HaulierError, ValueError):
    """The text is no ticket and no connect token, or one that this version does not know: copy all of it."""

    kind = "credentials"


class UnreachableError(HaulierError, ConnectionError):
    """Nobody listens there, or there is no route: start the server, look at the address."""

    kind = "unreachable"


class NoAnswerError(HaulierError, ConnectionError):
    """No answer to the request, in the time for one: a firewall, or a wrong address."""

    kind = "no-answer"


class RefusedError(HaulierError, ConnectionError):
    """The server refused the request: `name` says why, such as "key" for another secret."""

    kind = "refused"


class TimeoutError(HaulierError, builtins.TimeoutError):
    """An open connection fell silent, or something was not done in its time."""

    kind = "timeout"


class ClosedError(HaulierError, ConnectionError):
    """This end or the peer closed the connection: `code`, `name` and `reason` say why."""

    kind = "closed"


class LostError(HaulierError, ConnectionError):
    """The server does not know the connection any more, for it was restarted: join again."""

    kind = "lost"


class NotOpenError(HaulierError, ConnectionError):
    """The connection is not open: not yet, or not any more."""

    kind = "not-open"


class FullError(HaulierError):
    """Too much is waiting to be sent: later there is room again."""

    kind = "full"


class IoError(HaulierError, OSError):
    """A socket, a file, a disk, the system."""

    kind = "io"


class InternalError(HaulierError):
    """A bug of haulier: report it."""

    kind = "internal"


_CLASSES: Dict[str, Type[HaulierError]] = {
    it.kind: it
    for it in (
        UsageError,
        CredentialsError,
        UnreachableError,
        NoAnswerError,
        RefusedError,
        TimeoutError,
        ClosedError,
        LostError,
        NotOpenError,
        FullError,
        IoError,
        InternalError,
    )
}


def _of_kind(
    kind: str, text: str, end: Tuple[Optional[int], Optional[str], str]
) -> HaulierError:
    """An error of this kind, with the code, its name and the peer's words."""
    error = _CLASSES.get(kind, HaulierError)(text)
    error.code, error.name, error.reason = end
    return error
