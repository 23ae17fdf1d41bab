"""The schema that all migrations together make, as one readable file: `tests/snapshots/schema.sql`.

After a change of the migrations, write it anew:

    .venv/bin/python tests/migrations/write_schema.py
"""

from __future__ import annotations

import sqlite3
from pathlib import Path

from talkfold.store.migrate import apply_migrations, migration_scripts

SNAPSHOT = Path(__file__).parents[1] / "snapshots" / "schema.sql"


def migrated() -> sqlite3.Connection:
    """A database in memory with every migration."""
    connection = sqlite3.connect(":memory:", isolation_level=None)
    apply_migrations(connection)
    return connection


def schema(connection: sqlite3.Connection) -> str:
    """Everything that was created, in the order of its creation, with the database's marks."""
    statements = connection.execute("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY rowid").fetchall()
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    head = (
        "-- What the migrations make together. Never run; tests/migrations/write_schema.py writes it.\n\n"
        f"PRAGMA application_id = {application:#x};\nPRAGMA user_version = {version};\n\n"
    )
    return head + "".join(f"{sql};\n\n" for (sql,) in statements).rstrip() + "\n"


if __name__ == "__main__":
    SNAPSHOT.write_text(schema(migrated()), encoding="utf-8")
    last = migration_scripts()[-1]
    print(f"{SNAPSHOT}: as of {last.name}")  # noqa: T201
