"""Migrations: whole or not at all, pinned, and refused with a next step where they do not fit."""

from __future__ import annotations

import sqlite3
import tomllib
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from write_schema import SNAPSHOT, migrated, schema

from talkfold.actions import Send
from talkfold.errors import DatabaseTooNew, DatabaseTooOld, MigrationChanged, MigrationMissing, TalkfoldError
from talkfold.store import ANY, open_store
from talkfold.store import migrate as migrate_module
from talkfold.store.migrate import Migration, apply_migrations, migration_scripts, pending_migrations, statements
from talkfold.store.sqlite.connection import APPLICATION_ID

SCRIPTS = migration_scripts()
ROOT = Path(__file__).parents[2]


@pytest.fixture
def connection() -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as made:
        yield made


def marks(connection: sqlite3.Connection) -> tuple[int, int]:
    return (
        connection.execute("PRAGMA user_version").fetchone()[0],
        connection.execute("PRAGMA application_id").fetchone()[0],
    )


def script(number: int, body: str) -> Migration:
    return Migration(number, f"{number:04}_test.sql", f"hash of {number}", f"BEGIN IMMEDIATE;\n{body}\nCOMMIT;\n")


# ---- applying --------------------------------------------------------------------------------------------


def test_a_new_database_gets_all_of_them(connection: sqlite3.Connection) -> None:
    assert [made.number for made in SCRIPTS] == list(range(1, len(SCRIPTS) + 1))
    assert apply_migrations(connection) == SCRIPTS
    assert marks(connection) == (len(SCRIPTS), APPLICATION_ID)
    recorded = connection.execute("SELECT number, name, sha256 FROM migration ORDER BY number").fetchall()
    assert recorded == [(made.number, made.name, made.sha256) for made in SCRIPTS]
    assert pending_migrations(connection) == ()
    assert apply_migrations(connection) == ()
    assert connection.execute("SELECT number, name, sha256 FROM migration ORDER BY number").fetchall() == recorded


def test_the_readable_schema_is_the_migrated_one() -> None:
    with closing(migrated()) as connection:
        written = SNAPSHOT.read_text(encoding="utf-8")
        assert schema(connection) == written, "run .venv/bin/python tests/migrations/write_schema.py"


@pytest.mark.parametrize("made", SCRIPTS, ids=lambda made: made.name)
def test_a_script_that_fails_anywhere_leaves_nothing(made: Migration) -> None:
    begin, *body, commit = statements(made.sql)
    for place in range(len(body) + 1):
        with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
            apply_migrations(connection, scripts=SCRIPTS[: made.number - 1])
            before = schema(connection)
            failing = "\n".join([begin, *body[:place], "SELECT x FROM nowhere;", *body[place:], commit])
            broken = Migration(made.number, made.name, made.sha256, failing)
            with pytest.raises(sqlite3.OperationalError, match="nowhere"):
                apply_migrations(connection, scripts=(*SCRIPTS[: made.number - 1], broken))
            assert not connection.in_transaction
            assert schema(connection) == before
            apply_migrations(connection, scripts=SCRIPTS[: made.number])  # and the right one still fits


def test_what_was_applied_before_a_failing_script_stays(connection: sqlite3.Connection) -> None:
    good = script(len(SCRIPTS) + 1, "CREATE TABLE good (x);")
    bad = script(len(SCRIPTS) + 2, "CREATE TABLE bad (x);\nINSERT INTO bad VALUES (1);\nCREATE TABLE good (x);")
    with pytest.raises(sqlite3.OperationalError):
        apply_migrations(connection, scripts=(*SCRIPTS, good, bad))
    assert marks(connection) == (good.number, APPLICATION_ID)
    assert connection.execute("SELECT name FROM sqlite_schema WHERE name IN ('good', 'bad')").fetchall() == [("good",)]
    assert pending_migrations(connection, (*SCRIPTS, good, bad)) == (bad,)


def test_an_older_database_gets_what_it_lacks(connection: sqlite3.Connection) -> None:
    apply_migrations(connection)
    later = tuple(script(len(SCRIPTS) + step, f"CREATE TABLE later{step} (x);") for step in (1, 2))
    assert pending_migrations(connection, (*SCRIPTS, *later)) == later
    assert marks(connection) == (len(SCRIPTS), APPLICATION_ID)  # only looked
    with pytest.raises(DatabaseTooOld) as caught:
        apply_migrations(connection, migrate=False, scripts=(*SCRIPTS, *later))
    assert str(len(SCRIPTS)) in str(caught.value)
    assert "talkfold migrate" in caught.value.next_step
    assert apply_migrations(connection, scripts=(*SCRIPTS, *later)) == later
    assert marks(connection)[0] == len(SCRIPTS) + 2


def test_a_script_must_carry_its_own_transaction(connection: sqlite3.Connection) -> None:
    for sql in (
        "CREATE TABLE a (x);\nCREATE TABLE b (x);\nCREATE TABLE c (x);",
        "BEGIN;\nCREATE TABLE a (x);\nCOMMIT;",
        "BEGIN IMMEDIATE;\nCREATE TABLE a (x);",
        "BEGIN IMMEDIATE;\nCREATE TABLE a (x);\nROLLBACK;",
        "BEGIN IMMEDIATE;\nCREATE TABLE a (x);\nCOMMIT;\nCREATE TABLE b (x);",
    ):
        with pytest.raises(ValueError, match="BEGIN IMMEDIATE"):
            apply_migrations(connection, scripts=(Migration(1, "0001_test.sql", "", sql),))
        assert connection.execute("SELECT count(*) FROM sqlite_schema").fetchone() == (0,)


@pytest.mark.parametrize(
    ("sql", "count"),
    [
        ("", 0),
        ("-- only; a comment;\n", 0),
        ("SELECT 1;\nSELECT 2;\n", 2),
        ("SELECT 1;  -- said; so;\nSELECT\n  2\n;\n", 2),
        ("SELECT ';\n;';\nSELECT \";\";\n", 2),
        ("/* a;\n b; */ SELECT 1;\n", 1),
        (
            "CREATE TRIGGER t AFTER INSERT ON a BEGIN\n SELECT CASE 1 WHEN 1 THEN 2 END;\nEND;\nSELECT 3;\n",
            2,
        ),
    ],
)
def test_sqlite_says_where_a_statement_ends(sql: str, count: int) -> None:
    found = statements(sql)
    assert len(found) == count
    assert "".join("".join(found).split()) == "".join(sql.split()) or count == 0


def test_a_script_that_ends_inside_a_statement_is_refused() -> None:
    with pytest.raises(ValueError, match="SELECT 2"):
        statements("SELECT 1;\nSELECT 2\n")


# ---- refusing --------------------------------------------------------------------------------------------


async def make(path: Path) -> None:
    async with open_store(path) as store:
        await store.append("s", [Send("u", "kept")], expected=ANY)


def change(path: Path, sql: str) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute(sql)


def files(path: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in path.parent.iterdir()}


REFUSED = {
    "newer": (f"PRAGMA user_version = {len(SCRIPTS) + 1}", DatabaseTooNew, "Upgrade talkfold"),
    "much newer": ("PRAGMA user_version = 2000000000", DatabaseTooNew, "Upgrade talkfold"),
    "another script": ("UPDATE migration SET sha256 = 'f00' WHERE number = 1", MigrationChanged, "never edited"),
    "a gap": ("DELETE FROM migration WHERE number = 1", MigrationMissing, "Reinstall"),
}


@pytest.mark.parametrize("migrate", [True, False])
@pytest.mark.parametrize("what", REFUSED)
async def test_a_database_that_does_not_fit_is_refused_untouched(path: Path, what: str, migrate: bool) -> None:
    sql, kind, advice = REFUSED[what]
    await make(path)
    change(path, sql)
    before = files(path)
    for _ in range(2):
        with pytest.raises(kind) as caught:
            async with open_store(path, migrate=migrate):
                pytest.fail("this must not open")
        error: TalkfoldError = caught.value
        assert advice in error.next_step
        assert (error.exit_code, error.fault) == (5, "environment")
    assert files(path) == before


async def test_a_newer_database_names_both_numbers(path: Path) -> None:
    await make(path)
    change(path, "PRAGMA user_version = 77")
    with pytest.raises(DatabaseTooNew, match=rf"77.*{len(SCRIPTS)}"):
        async with open_store(path):
            pytest.fail("this must not open")
    change(path, f"PRAGMA user_version = {len(SCRIPTS)}")  # nothing was lost on the way
    async with open_store(path) as store:
        assert (await store.check("s")).problems == ()


async def test_without_migrating_an_old_database_is_left_alone(path: Path) -> None:
    with pytest.raises(DatabaseTooOld):
        async with open_store(path, migrate=False):
            pytest.fail("this must not open")
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT count(*) FROM sqlite_schema").fetchone() == (0,)
        assert marks(connection) == (0, 0)
    await make(path)
    async with open_store(path, migrate=False) as store:
        assert (await store.get("s")).number == 1


# ---- finding the scripts ---------------------------------------------------------------------------------


def lay(folder: Path, *names: str) -> None:
    folder.mkdir(parents=True)
    for name in names:
        (folder / name).write_text("BEGIN IMMEDIATE;\nCOMMIT;\n")


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in which the package seems to lie: `src/talkfold` of a checkout, or of `site-packages`."""
    package = tmp_path / "src" / "talkfold"
    monkeypatch.setattr(migrate_module, "__file__", str(package / "store" / "migrate.py"))
    return package


def test_in_a_wheel_the_scripts_lie_in_the_package(package: Path, tmp_path: Path) -> None:
    lay(package / "_migrations" / "sqlite", "0001_first.sql", "0002_second.sql", "README.md", "notes.sql")
    lay(tmp_path / "migrations" / "sqlite", "0001_of_somebody_else.sql")
    assert [made.name for made in migration_scripts()] == ["0001_first.sql", "0002_second.sql"]


def test_in_a_checkout_they_lie_at_its_top(package: Path, tmp_path: Path) -> None:
    lay(tmp_path / "migrations" / "sqlite", "0001_first.sql")
    assert [made.name for made in migration_scripts()] == ["0001_first.sql"]


@pytest.mark.parametrize(
    ("names", "missing"),
    [((), 1), (("0002_second.sql",), 1), (("0001_a.sql", "0003_c.sql"), 2), (("0001_a.sql", "0001_b.sql"), 2)],
)
def test_a_gap_in_the_scripts_is_refused(package: Path, tmp_path: Path, names: tuple[str, ...], missing: int) -> None:
    lay(tmp_path / "migrations" / "sqlite", *names)
    with pytest.raises(MigrationMissing, match=f"migration {missing} "):
        migration_scripts()


def test_no_scripts_at_all_is_said(package: Path) -> None:
    with pytest.raises(MigrationMissing, match="migration 1 "):
        migration_scripts()


def test_line_ends_do_not_change_a_script(package: Path, tmp_path: Path) -> None:
    folder = tmp_path / "migrations" / "sqlite"
    folder.mkdir(parents=True)
    digests = set[str]()
    for ends in (b"\n", b"\r\n"):
        (folder / "0001_first.sql").write_bytes(b"BEGIN IMMEDIATE;\nSELECT 1;\nCOMMIT;\n".replace(b"\n", ends))
        digests.add(migration_scripts()[0].sha256)
    assert len(digests) == 1
    (folder / "0001_first.sql").write_bytes(b"BEGIN IMMEDIATE;\nSELECT 2;\nCOMMIT;\n")
    assert migration_scripts()[0].sha256 not in digests


def test_the_wheel_takes_them_along() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    wheel = project["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert wheel["force-include"]["migrations"] == "talkfold/_migrations"
    assert [made.name for made in SCRIPTS] == sorted(
        file.name for file in (ROOT / "migrations" / "sqlite").glob("*.sql")
    )
