"""Sessions over HTTP: an ASGI application to be served or mounted. Needs the extra ``talkfold[server]``."""

from __future__ import annotations

from .access import ALL_SCOPES, TRUSTED, Authenticate, Caller, Scope
from .agents import Agent
from .application import Application, app
from .limits import Limits
from .refusals import NotAuthenticated

__all__ = (
    "ALL_SCOPES",
    "TRUSTED",
    "Agent",
    "Application",
    "Authenticate",
    "Caller",
    "Limits",
    "NotAuthenticated",
    "Scope",
    "app",
)
