"""What only HTTP can do wrong. Every other error is the library's own, and answered with its ``http_status``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from ..errors import Fault, TalkfoldError

__all__ = (
    "HostNotAllowed",
    "InvalidHeader",
    "MethodNotAllowed",
    "NoSuchAgent",
    "NoSuchPath",
    "NotAllowed",
    "NotAuthenticated",
    "OriginNotAllowed",
    "RequestTooSlow",
    "TooManyRequests",
    "TooManyStreams",
    "UnsupportedMedia",
)


class NotAuthenticated(TalkfoldError):
    """The request does not say who asks, or with a token that is not known (any more)."""

    code = "not_authenticated"
    fault: ClassVar[Fault] = "caller"
    http_status = 401

    def __init__(self, reason: str) -> None:
        super().__init__(reason, "Send `Authorization: Bearer TOKEN`; `talkfold token create` makes a token.")


class NotAllowed(TalkfoldError):
    """The token is good, but not for this."""

    code = "not_allowed"
    fault: ClassVar[Fault] = "caller"
    http_status = 403

    def __init__(self, what: str, scope: str) -> None:
        super().__init__(f"{what} needs the scope {scope!r}", f"Use a token that has the scope {scope!r}.")
        self.scope = scope


class NoSuchPath(TalkfoldError):
    """Nothing is served there."""

    code = "no_such_path"
    fault: ClassVar[Fault] = "caller"
    http_status = 404

    def __init__(self, path: str) -> None:
        super().__init__(f"nothing is served at {path[:200]!r}", "See /openapi.json for what there is.")


class MethodNotAllowed(TalkfoldError):
    """The path is served, but not with this method."""

    code = "method_not_allowed"
    fault: ClassVar[Fault] = "caller"
    http_status = 405

    def __init__(self, method: str, allowed: Sequence[str]) -> None:
        names = ", ".join(sorted(allowed))
        super().__init__(f"{method[:20]} is not served here", f"Use {names}.")
        self.allowed: tuple[str, ...] = tuple(sorted(allowed))


class UnsupportedMedia(TalkfoldError):
    """The body is of a kind, or packed in a way, that is not read here."""

    code = "unsupported_media"
    fault: ClassVar[Fault] = "caller"
    http_status = 415

    def __init__(self, given: str, taken: Sequence[str]) -> None:
        names = " or ".join(taken)
        super().__init__(f"a body of {given[:100]!r} is not read here", f"Send {names}, not compressed.")
        self.taken: tuple[str, ...] = tuple(taken)


class InvalidHeader(TalkfoldError):
    """A header that means nothing here."""

    code = "invalid_header"
    fault: ClassVar[Fault] = "caller"
    http_status = 400

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(f"{name}: {reason}", f"Correct {name}, or leave it out.")
        self.name = name
        self.reason = reason


class HostNotAllowed(TalkfoldError):
    """The request was meant for another host: what a page does that rebinds its name to this machine."""

    code = "host_not_allowed"
    fault: ClassVar[Fault] = "caller"
    http_status = 421

    def __init__(self, host: str) -> None:
        super().__init__(f"no host {host[:200]!r} is served here", "Name the host with --allow-host if it is yours.")


class OriginNotAllowed(TalkfoldError):
    """A page of another origin asks."""

    code = "origin_not_allowed"
    fault: ClassVar[Fault] = "caller"
    http_status = 403

    def __init__(self, origin: str) -> None:
        super().__init__(
            f"pages of {origin[:200]!r} may not ask here", "Name the origin with --allow-origin if it is yours."
        )


class TooManyRequests(TalkfoldError):
    """More requests than one caller may make. ``seconds`` until the next one is taken."""

    code = "too_many_requests"
    fault: ClassVar[Fault] = "caller"
    http_status = 429

    def __init__(self, seconds: float) -> None:
        super().__init__("too many requests", f"Try again in {seconds:.1f} s.")
        self.seconds = seconds


class TooManyStreams(TalkfoldError):
    """More open streams than one caller, or all of them together, may have."""

    code = "too_many_streams"
    fault: ClassVar[Fault] = "caller"
    http_status = 429

    def __init__(self, most: int) -> None:
        super().__init__(f"{most:,} streams are open already", "Close one of them first.")
        self.most = most
        self.seconds: float = 1.0


class RequestTooSlow(TalkfoldError):
    """The body did not arrive in time."""

    code = "request_too_slow"
    fault: ClassVar[Fault] = "caller"
    http_status = 408

    def __init__(self, seconds: float) -> None:
        super().__init__(f"the body did not arrive within {seconds:g} s", "Send it faster, or in smaller pieces.")


class NoSuchAgent(TalkfoldError):
    """The application registered no agent of this name."""

    code = "no_such_agent"
    fault: ClassVar[Fault] = "caller"
    http_status = 404

    def __init__(self, name: str, known: Sequence[str]) -> None:
        names = ", ".join(sorted(known)) or "none"
        super().__init__(f"there is no agent {name[:100]!r}", f"Registered are: {names}.")
