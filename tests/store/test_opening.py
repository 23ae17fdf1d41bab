"""What `open_store` takes, and where it refuses to go."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from talkfold.actions import Send
from talkfold.errors import InvalidArgument, NetworkFileSystem, StoreUnavailable
from talkfold.store import ANY, open_store
from talkfold.store.sqlite import place
from talkfold.store.sqlite.place import network_file_system


@pytest.mark.parametrize("location", ["", "postgresql://localhost/chat", "sqlite:///chat.db", "http://example.org"])
async def test_what_is_no_location(location: str) -> None:
    with pytest.raises(InvalidArgument, match="location"):
        async with open_store(location):
            pytest.fail("this must not open")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("metadata_keys", ["a b"]),
        ("metadata_keys", [""]),
        ("metadata_keys", ["it's"]),
        ("metadata_keys", ['"']),
        ("metadata_keys", ["a]"]),
        ("metadata_keys", ["good", "é"]),
        ("synchronous", "OFF"),
        ("synchronous", "FULL; DROP TABLE session"),
        ("timeout", 0),
        ("timeout", -1),
        ("timeout", float("nan")),
    ],
)
@pytest.mark.parametrize("location", ["memory:", "file"])
async def test_what_is_no_option(path: Path, location: str, name: str, value: Any) -> None:
    options: dict[str, Any] = {name: value}
    with pytest.raises(InvalidArgument, match=name):
        async with open_store(path if location == "file" else location, **options):
            pytest.fail("this must not open")
    assert os.listdir(path.parent) == []


async def test_a_path_may_be_relative(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for location in ("chat.db", "./chat.db", Path("chat.db")):
        async with open_store(location) as store:
            monkeypatch.chdir("/")  # where it was opened counts, not where it is used
            await store.append("s", [Send("u", "hi")], expected=ANY)
            monkeypatch.chdir(tmp_path)
    assert (tmp_path / "chat.db").is_file()
    async with open_store(tmp_path / "chat.db") as store:
        assert (await store.get("s")).number == 3


async def test_ids_and_times_come_from_outside(path: Path) -> None:
    for location in ("memory:", path):
        names = iter(["first", "second", "third"])
        async with open_store(location, clock=lambda: 1_234, new_id=lambda: next(names)) as store:  # noqa: B023
            made = await store.create()
            await store.append("first", [Send("u", "hi")])
            forked = await store.fork("first")
            assert (made.id, made.created, forked.id) == ("first", 1_234, "second")
            assert (await store.read("first"))[0].time == 1_234
            assert (await store.erase("first")).at == 1_234


async def test_a_folder_without_permission(path: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("nothing is forbidden to root")
    path.parent.chmod(0o500)
    try:
        with pytest.raises(StoreUnavailable):
            async with open_store(path):
                pytest.fail("this must not open")
    finally:
        path.parent.chmod(0o700)


# ---- network file systems --------------------------------------------------------------------------------

MOUNTS = """\
22 1 254:1 / / rw,relatime shared:1 - ext4 /dev/vda rw
30 22 0:30 / /home rw shared:3 - nfs4 server:/home rw
31 30 254:2 / /home/ann/local rw - xfs /dev/vdb rw
32 22 0:31 / /mnt/with\\040blank rw - cifs //server/share rw
33 22 0:32 / /srv rw master:1 propagate_from:2 - ext4 /dev/vdc rw
34 33 0:33 / /srv rw - fuse.sshfs ann@server: rw
35 22 0:34 / /tmp rw - tmpfs tmpfs rw
36 22 0:35 / /scratch rw - fuse.mergerfs pool rw
a line that is no mount
"""


@pytest.mark.parametrize(
    ("where", "kind"),
    [
        ("/var/lib/chat.db", None),
        ("/tmp/chat.db", None),
        ("/home/ann/chat.db", "nfs4"),
        ("/home/ann/local/chat.db", None),
        ("/home/ann/locale/chat.db", "nfs4"),
        ("/homes/chat.db", None),
        ("/mnt/with blank/chat.db", "cifs"),
        ("/mnt/with/chat.db", None),
        ("/srv/chat.db", "fuse.sshfs"),  # the later mount lies over the earlier one
        ("/scratch/chat.db", None),
    ],
)
def test_the_longest_mount_point_decides(tmp_path: Path, where: str, kind: str | None) -> None:
    mounts = tmp_path / "mountinfo"
    mounts.write_text(MOUNTS)
    assert network_file_system(where, mounts) == kind


def test_where_nobody_can_tell_nothing_is_said(tmp_path: Path) -> None:
    assert network_file_system("/anywhere/chat.db", tmp_path / "no such file") is None


async def test_a_network_file_system_is_refused_without_a_flag(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(place, "network_file_system", lambda path: "nfs4")
    with pytest.raises(NetworkFileSystem, match="nfs4") as caught:
        async with open_store(path):
            pytest.fail("this must not open")
    assert "allow_network" in caught.value.next_step
    assert os.listdir(path.parent) == []
    async with open_store(path, allow_network=True) as store:
        await store.create("s")


@pytest.mark.parametrize("location", [":memory:", "a\0b", "\udcff", b"chat.db"])
async def test_what_would_be_a_strange_file(location: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidArgument, match="location"):
        async with open_store(location):
            pytest.fail("this must not open")
    assert list(tmp_path.iterdir()) == []


async def test_a_folder_is_refused_without_a_trace(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    with pytest.raises(StoreUnavailable, match="folder"):
        async with open_store(folder):
            pytest.fail("this must not open")
    assert list(tmp_path.iterdir()) == [folder]


async def test_one_file_has_one_lock_by_whatever_link_it_is_reached(tmp_path: Path) -> None:
    real, link = tmp_path / "chat.db", tmp_path / "link.db"
    link.symlink_to(real)
    async with open_store(link) as store, open_store(real) as same:
        await store.create("s")
        assert (await same.get("s")).number == 0
    assert [path.name for path in tmp_path.glob("*-lock")] == ["chat.db-lock"]


@pytest.mark.parametrize("made", ["", "a\n", 5, None])
async def test_an_id_maker_that_makes_no_ids_is_named(made: Any) -> None:
    async with open_store("memory:", new_id=lambda: made) as store:
        with pytest.raises(InvalidArgument, match="new_id"):
            await store.create()


@pytest.mark.parametrize("now", [1.5, "x", 10**20, -1])
async def test_a_clock_that_gives_no_time_is_named(now: Any, tmp_path: Path) -> None:
    async with open_store(tmp_path / "chat.db", clock=lambda: now) as store:
        with pytest.raises(InvalidArgument, match="time"):
            await store.create("s")


@pytest.mark.parametrize("name", ["\u00a0", "\u200b", "\u3000x", "\U0001f469\u200d\U0001f680", "\U0002ebf0"])
async def test_a_name_of_unusual_characters_is_a_name_on_every_python(name: str, tmp_path: Path) -> None:
    async with open_store(tmp_path / "chat.db") as store:
        assert (await store.create(name, owner=name)).id == name
        assert (await store.get(name, owner=name)).owner == name
