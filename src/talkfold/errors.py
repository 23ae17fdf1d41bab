"""Every error that talkfold raises on purpose.

Each says whose fault it is (``fault``), what was wrong (its text), and what to do next (``next_step``), and
carries a stable ``code`` for programs. ``exit_code`` is what the command line ends with, ``http_status`` what
a server answers. The sentence is made here from typed attributes; callers never format one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .log import LoggedAction
    from .store.lease import Lease

__all__ = (
    "AdapterBusy",
    "AmbiguousSession",
    "CallNotWaiting",
    "CursorAhead",
    "DamagedLine",
    "DatabaseNotFound",
    "DatabaseTooNew",
    "DatabaseTooOld",
    "Fault",
    "ForeignDatabase",
    "ForkedProcess",
    "InvalidAction",
    "InvalidArgument",
    "InvalidCursor",
    "InvalidJson",
    "KeyReused",
    "LeaseLost",
    "MetadataKeyNotAllowed",
    "MigrationChanged",
    "MigrationMissing",
    "NetworkFileSystem",
    "NotJsonValue",
    "NothingToRetry",
    "RedactionFailed",
    "RunInProgress",
    "SearchIsOff",
    "SessionErased",
    "SessionExists",
    "SessionNotFound",
    "StorageFull",
    "StoreBusy",
    "StoreClosed",
    "StoreDamaged",
    "StoreUnavailable",
    "TalkfoldError",
    "TokenNotFound",
    "TooDeep",
    "TooLarge",
    "VersionConflict",
)

Fault: TypeAlias = Literal["caller", "data", "environment"]


class TalkfoldError(Exception):
    """The root of all errors here; never raised itself."""

    code: ClassVar[str]
    fault: ClassVar[Fault]
    exit_code: ClassVar[int] = 70
    http_status: ClassVar[int] = 500
    next_step: str

    def __init__(self, what: str, next_step: str) -> None:
        if type(self) is TalkfoldError:
            raise TypeError("raise one of the named errors, not TalkfoldError itself")
        super().__init__(what)
        self.next_step = next_step

    def __reduce__(self) -> tuple[object, ...]:
        # Errors are made from typed attributes, not from their text: rebuild without calling __init__.
        return _rebuild, (type(self), self.args, self.__dict__)


def _rebuild(kind: type[TalkfoldError], args: tuple[object, ...], attributes: dict[str, object]) -> TalkfoldError:
    error = kind.__new__(kind, *args)
    error.args = args
    error.__dict__.update(attributes)
    return error


# ---- what came in is wrong ----------------------------------------------------------------------------


class InvalidJson(TalkfoldError):
    """The input is not JSON. ``position`` is a byte offset where it is known."""

    code = "invalid_json"
    fault: ClassVar[Fault] = "data"
    exit_code = 6
    http_status = 400

    def __init__(self, reason: str, position: int | None = None) -> None:
        where = "" if position is None else f" at byte {position}"
        super().__init__(
            f"not valid JSON{where}: {reason}",
            "Send one JSON document as UTF-8; NaN and Infinity are no JSON.",
        )
        self.reason = reason
        self.position = position


class InvalidAction(TalkfoldError):
    """The input is JSON but no action, state or message of the contract. ``path`` is a JSONPath (``$.part.type``)."""

    code = "invalid_action"
    fault: ClassVar[Fault] = "data"
    exit_code = 6
    http_status = 422

    def __init__(self, what: str, reason: str, path: str = "$") -> None:
        super().__init__(f"not a valid {what} at {path}: {reason}", f"Correct the value at {path}.")
        self.what = what
        self.reason = reason
        self.path = path


class NotJsonValue(TalkfoldError):
    """A Python value that JSON cannot hold exactly (NaN, a set, a tuple, a non-string key …)."""

    code = "not_json"
    fault: ClassVar[Fault] = "caller"
    exit_code = 6
    http_status = 422

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(
            f"{path} is no JSON value: {reason}",
            "Use only dict with str keys, list, str, int, finite float, bool and None.",
        )
        self.path = path
        self.reason = reason


class TooDeep(TalkfoldError):
    """The input is nested deeper than the limit, counted in brackets."""

    code = "too_deep"
    fault: ClassVar[Fault] = "data"
    exit_code = 6
    http_status = 422

    def __init__(self, what: str, limit: int) -> None:
        super().__init__(
            f"the {what} is nested deeper than {limit} levels",
            "Flatten the value, or send the deep part as a text.",
        )
        self.limit = limit


class TooLarge(TalkfoldError):
    """The input is larger than the limit, in bytes."""

    code = "too_large"
    fault: ClassVar[Fault] = "data"
    exit_code = 6
    http_status = 413

    def __init__(self, what: str, size: int, limit: int) -> None:
        super().__init__(
            f"the {what} has {size:,} bytes; the limit is {limit:,}",
            "Store large content elsewhere and log a reference to it, or raise the limit.",
        )
        self.size = size
        self.limit = limit


class DamagedLine(TalkfoldError):
    """A line in the middle of a JSONL file cannot be read. ``line`` counts from 1; ``reason`` is the error inside."""

    code = "damaged_line"
    fault: ClassVar[Fault] = "data"
    exit_code = 6
    http_status = 422

    def __init__(self, line: int, reason: TalkfoldError) -> None:
        super().__init__(
            f"line {line} cannot be read: {reason}",
            f"Nothing was taken from the file. Repair or remove line {line} and try again.",
        )
        self.line = line
        self.reason = reason


class InvalidArgument(TalkfoldError):
    """An argument of a call makes no sense (a negative number, an empty id, a limit of zero …)."""

    code = "invalid_argument"
    fault: ClassVar[Fault] = "caller"
    exit_code = 2
    http_status = 400

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(f"{name}: {reason}", f"Call again with a valid {name}.")
        self.name = name
        self.reason = reason


class RedactionFailed(TalkfoldError):
    """A rule of the store's redaction failed, so nothing was written. The text that it failed on is not told."""

    code = "redaction_failed"
    fault: ClassVar[Fault] = "caller"
    exit_code = 2

    def __init__(self, rule: str, reason: str) -> None:
        super().__init__(
            f"redaction: the {rule} failed, and nothing was written: {reason}",
            "Correct that rule of open_store(redact=…): it must give a text for every text.",
        )
        self.rule = rule
        self.reason = reason


class InvalidCursor(TalkfoldError):
    """A paging cursor that this store did not give out."""

    code = "invalid_cursor"
    fault: ClassVar[Fault] = "caller"
    exit_code = 2
    http_status = 400

    def __init__(self, cursor: str) -> None:
        super().__init__(f"{cursor!r} is no cursor of this list", "Start again without a cursor.")
        self.cursor = cursor


class MetadataKeyNotAllowed(TalkfoldError):
    """A list filter on a metadata key that the store was not opened for."""

    code = "metadata_key_not_allowed"
    fault: ClassVar[Fault] = "caller"
    exit_code = 2
    http_status = 400

    def __init__(self, key: str, allowed: Sequence[str]) -> None:
        names = ", ".join(sorted(allowed)) or "none"
        super().__init__(
            f"the metadata key {key!r} cannot be filtered by (allowed: {names})",
            "Name the key in metadata_keys when the store is opened.",
        )
        self.key = key


class AdapterBusy(TalkfoldError):
    """An adapter cannot change its model while a reply or a download goes on (``busy_with``)."""

    code = "adapter_busy"
    fault: ClassVar[Fault] = "caller"
    exit_code = 2
    http_status = 409

    def __init__(self, adapter_id: str, busy_with: str) -> None:
        super().__init__(
            f"the adapter {adapter_id!r} is busy with {busy_with}",
            "Wait until it is over, or stop it, and select the model again.",
        )
        self.adapter_id = adapter_id
        self.busy_with = busy_with


# ---- the session is not as the caller thinks --------------------------------------------------------------


class SessionNotFound(TalkfoldError):
    """No such session for this owner. A foreign session answers exactly like an unknown one."""

    code = "session_not_found"
    fault: ClassVar[Fault] = "caller"
    exit_code = 3
    http_status = 404

    def __init__(self, session_id: str) -> None:
        super().__init__(f"no session {session_id!r}", "List the sessions to see which ids there are.")
        self.session_id = session_id


class SessionErased(TalkfoldError):
    """The session was erased; only its tombstone is left. ``at`` is in milliseconds since 1970 (UTC)."""

    code = "session_erased"
    fault: ClassVar[Fault] = "caller"
    exit_code = 3
    http_status = 410

    def __init__(self, session_id: str, at: int, by: str | None) -> None:
        super().__init__(
            f"session {session_id!r} was erased" + (f" by {by}" if by else ""),
            "An erased id is never used again: create a session with another id.",
        )
        self.session_id = session_id
        self.at = at
        self.by = by


class SessionExists(TalkfoldError):
    """A session with this id is there already."""

    code = "session_exists"
    fault: ClassVar[Fault] = "caller"
    exit_code = 4
    http_status = 409

    def __init__(self, session_id: str) -> None:
        super().__init__(f"session {session_id!r} exists already", "Append to it, or choose another id.")
        self.session_id = session_id


class AmbiguousSession(TalkfoldError):
    """Several owners have a session with this id, and the call names no owner."""

    code = "ambiguous_session"
    fault: ClassVar[Fault] = "caller"
    exit_code = 3
    http_status = 409

    def __init__(self, session_id: str, owners: Sequence[str | None]) -> None:
        super().__init__(
            f"{len(owners)} owners have a session {session_id!r}", "Name the owner whose session is meant."
        )
        self.session_id = session_id
        self.owners: tuple[str | None, ...] = tuple(owners)


class VersionConflict(TalkfoldError):
    """The session is not at the number that the append expected.

    ``actual`` is the head's number (0: no action yet), ``missing`` the actions after ``expected`` that the
    caller has not seen (at most 1,000 of them).
    """

    code = "version_conflict"
    fault: ClassVar[Fault] = "caller"
    exit_code = 4
    http_status = 412

    def __init__(self, session_id: str, expected: object, actual: int, missing: Sequence[LoggedAction] = ()) -> None:
        super().__init__(
            f"session {session_id!r} is at {actual}, not at {expected}",
            "Fold the missing actions, decide again, and append with the actual number.",
        )
        self.session_id = session_id
        self.expected = expected
        self.actual = actual
        self.missing: tuple[LoggedAction, ...] = tuple(missing)


class KeyReused(TalkfoldError):
    """An idempotency key came a second time with other actions."""

    code = "key_reused"
    fault: ClassVar[Fault] = "caller"
    exit_code = 4
    http_status = 422

    def __init__(self, session_id: str, key: str) -> None:
        super().__init__(
            f"the idempotency key {key!r} was used in session {session_id!r} with other actions",
            "Use a new key for every new append; repeat a key only with the very same actions.",
        )
        self.session_id = session_id
        self.key = key


class CursorAhead(TalkfoldError):
    """A number beyond the end of the log."""

    code = "cursor_ahead"
    fault: ClassVar[Fault] = "caller"
    exit_code = 2
    http_status = 416

    def __init__(self, session_id: str, number: int, head: int) -> None:
        super().__init__(
            f"session {session_id!r} ends at {head}; there is no number {number}",
            f"Ask for a number from 0 to {head}.",
        )
        self.session_id = session_id
        self.number = number
        self.head = head


class RunInProgress(TalkfoldError):
    """A living run owns the session. ``lease`` says which run, in which process, and until when."""

    code = "run_in_progress"
    fault: ClassVar[Fault] = "caller"
    exit_code = 4
    http_status = 409

    def __init__(self, session_id: str, lease: Lease) -> None:
        super().__init__(
            f"run {lease.run!r} of {lease.holder} is in progress in session {session_id!r}",
            "Follow that run, or stop it and start again when it has ended.",
        )
        self.session_id = session_id
        self.lease = lease


class LeaseLost(TalkfoldError):
    """The run no longer owns its session: it was settled, or another run began, while this one stood still."""

    code = "lease_lost"
    fault: ClassVar[Fault] = "environment"
    exit_code = 4
    http_status = 409

    def __init__(self, session_id: str, run: str) -> None:
        super().__init__(
            f"run {run!r} does not own session {session_id!r} any more",
            "Nothing more of this run is stored: it has ended, or it was not heard of for longer than its lease and "
            "the session was settled. Open the session again and see what it holds now.",
        )
        self.session_id = session_id
        self.run = run


class CallNotWaiting(TalkfoldError):
    """No call waits for this answer: it was answered, or has ended, or its time is over, or it is another call."""

    code = "call_not_waiting"
    fault: ClassVar[Fault] = "caller"
    exit_code = 4
    http_status = 409

    def __init__(self, session_id: str, call: str, reason: str) -> None:
        super().__init__(
            f"{call} of session {session_id!r} does not wait for this answer: {reason}",
            "Read the session again: a living run shows the call that waits now. What a dead run left waiting is "
            "settled by `talkfold settle`, and Retry asks again.",
        )
        self.session_id = session_id
        self.call = call
        self.reason = reason


class NothingToRetry(TalkfoldError):
    """A retry of a session in which nobody has said anything yet."""

    code = "nothing_to_retry"
    fault: ClassVar[Fault] = "caller"
    exit_code = 4
    http_status = 409

    def __init__(self, session_id: str) -> None:
        super().__init__(f"session {session_id!r} has no user message to answer again", "Send one first.")
        self.session_id = session_id


# ---- the place where it is stored -------------------------------------------------------------------------


class StoreClosed(TalkfoldError):
    """The store was closed, or never opened."""

    code = "store_closed"
    fault: ClassVar[Fault] = "caller"
    http_status = 503

    def __init__(self) -> None:
        super().__init__("the store is closed", "Use it inside `async with open_store(…) as store:`.")


class ForkedProcess(TalkfoldError):
    """The store was opened in another process: no database connection may cross a fork."""

    code = "forked_process"
    fault: ClassVar[Fault] = "caller"

    def __init__(self, opened: int, here: int) -> None:
        super().__init__(
            f"the store was opened in process {opened} and used in process {here}",
            "Open a store of its own in every process, after the fork.",
        )


class StoreBusy(TalkfoldError):
    """Another process kept the database locked for longer than the timeout, in seconds."""

    code = "store_busy"
    fault: ClassVar[Fault] = "environment"
    http_status = 503

    def __init__(self, seconds: float) -> None:
        super().__init__(
            f"another process kept the database locked for {seconds:g} s",
            "Try again; if it stays so, look for a process that hangs inside a transaction.",
        )


class StorageFull(TalkfoldError):
    """No room left for the write. What was stored before is whole and readable."""

    code = "storage_full"
    fault: ClassVar[Fault] = "environment"
    http_status = 507

    def __init__(self, where: str) -> None:
        super().__init__(f"no room left in {where}", "Free some space; nothing of this write was stored.")


class SearchIsOff(TalkfoldError):
    """Search was switched off in this database: there is no index to search in."""

    code = "search_is_off"
    fault: ClassVar[Fault] = "caller"
    exit_code = 4
    http_status = 409

    def __init__(self) -> None:
        super().__init__(
            "search is switched off in this database",
            "Switch it on, which makes its index anew: `talkfold search --on`, or `store.set_search(True)`.",
        )


class TokenNotFound(TalkfoldError):
    """There is no token with this id; to an owner, other owners' tokens do not exist."""

    code = "token_not_found"
    fault: ClassVar[Fault] = "caller"
    exit_code = 3
    http_status = 404

    def __init__(self, token_id: str) -> None:
        super().__init__(f"there is no token {token_id!r}", "See `talkfold token list` for the ids.")
        self.token_id = token_id


class StoreDamaged(TalkfoldError):
    """The database file or the log in it is damaged."""

    code = "store_damaged"
    fault: ClassVar[Fault] = "environment"

    def __init__(self, reason: str) -> None:
        super().__init__(
            f"the database is damaged: {reason}",
            "Copy the file away before anything else, run `talkfold doctor` and `talkfold check --all` on it, "
            "and restore the last good backup.",
        )


class StoreUnavailable(TalkfoldError):
    """The database cannot be opened, read or written (permissions, a missing folder, an I/O error)."""

    code = "store_unavailable"
    fault: ClassVar[Fault] = "environment"
    http_status = 503

    def __init__(self, where: str, reason: str) -> None:
        super().__init__(f"{where}: {reason}", "Check that the path exists and may be read and written.")


class DatabaseNotFound(TalkfoldError):
    """There is no database at this path, and the call was not one that makes it."""

    code = "database_not_found"
    fault: ClassVar[Fault] = "caller"
    exit_code = 3
    http_status = 404

    def __init__(self, path: str) -> None:
        super().__init__(
            f"there is no database at {path}",
            "Name another with --db, or make this one: `talkfold import` a file, or `talkfold migrate`.",
        )
        self.path = path


class ForeignDatabase(TalkfoldError):
    """The file is a database of another program, or no database."""

    code = "foreign_database"
    fault: ClassVar[Fault] = "caller"
    exit_code = 6

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path} is not a talkfold database: {reason}", "Name another file; this one was not touched.")


class NetworkFileSystem(TalkfoldError):
    """The database lies on a network file system, where SQLite's locks cannot be trusted."""

    code = "network_file_system"
    fault: ClassVar[Fault] = "environment"
    exit_code = 6

    def __init__(self, path: str, kind: str) -> None:
        super().__init__(
            f"{path} is on a network file system ({kind}), where SQLite's locks cannot be trusted",
            "Use a local disk, or allow_network=True (--allow-network-file-system) if only one process ever opens it.",
        )


class DatabaseTooNew(TalkfoldError):
    """The database was written by a newer talkfold."""

    code = "database_too_new"
    fault: ClassVar[Fault] = "environment"
    exit_code = 5

    def __init__(self, found: int, known: int) -> None:
        super().__init__(
            f"the database is at migration {found}; this talkfold knows {known}",
            "Upgrade talkfold; nothing was changed.",
        )
        self.found = found
        self.known = known


class DatabaseTooOld(TalkfoldError):
    """The database lacks migrations and the store was opened with ``migrate=False``."""

    code = "database_too_old"
    fault: ClassVar[Fault] = "environment"
    exit_code = 5

    def __init__(self, found: int, known: int) -> None:
        super().__init__(
            f"the database is at migration {found}; this talkfold needs {known}", "Run `talkfold migrate`."
        )
        self.found = found
        self.known = known


class MigrationChanged(TalkfoldError):
    """A migration script differs from the one that was applied to this database."""

    code = "migration_changed"
    fault: ClassVar[Fault] = "environment"
    exit_code = 5

    def __init__(self, name: str) -> None:
        super().__init__(
            f"the migration {name} is not the one that this database was made with",
            "Reinstall talkfold from its release; a script that has been applied is never edited.",
        )


class MigrationMissing(TalkfoldError):
    """The row of migration scripts, or of the applied ones, has a gap."""

    code = "migration_missing"
    fault: ClassVar[Fault] = "environment"
    exit_code = 5

    def __init__(self, number: int) -> None:
        super().__init__(f"migration {number} is missing", "Reinstall talkfold from its release; nothing was changed.")
