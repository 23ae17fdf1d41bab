"""The command line: stdout is data, stderr is words. Needs the extra ``talkfold[cli]``."""

from __future__ import annotations

__all__ = ()
