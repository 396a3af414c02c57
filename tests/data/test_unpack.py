"""An archive is unpacked inside its folder, or not at all."""

import io
import tarfile

import pytest

from stsbench.data.fetch import UnpackError, unpack


def archive_of(path, *members, mode="w"):
    with tarfile.open(path, mode) as tar:
        for member, data in members:
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    return path


def a_file(name, data=b"the kettle sings\n"):
    return tarfile.TarInfo(name), data


def a_link(name, target, kind=tarfile.SYMTYPE):
    member = tarfile.TarInfo(name)
    member.type, member.linkname = kind, target
    return member, b""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "in").mkdir()
    return tmp_path / "in"


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:bz2", "w:xz"])
def test_files_and_inner_links_are_unpacked(tmp_path, folder, mode):
    archive = archive_of(
        tmp_path / "a.tar", a_file("STS/one.txt"), a_link("STS/same.txt", "../STS/one.txt"), mode=mode
    )
    told = []
    unpack(archive, folder, lambda *now: told.append(now))
    assert (folder / "STS" / "one.txt").read_bytes() == b"the kettle sings\n"
    assert (folder / "STS" / "same.txt").read_bytes() == b"the kettle sings\n"
    assert told[-1] == ("unpacking a.tar", 2, 2)


@pytest.mark.parametrize(
    ("member", "reason"),
    [
        (a_file("../outside.txt"), "lies outside"),
        (a_file("STS/../../outside.txt"), "lies outside"),
        (a_file("/tmp/outside.txt"), "lies outside"),
        (a_file("C:/outside.txt"), "lies outside"),
        (a_link("link", "/etc/passwd"), "links to a place outside"),
        (a_link("STS/link", "../../outside"), "links to a place outside"),
        (a_link("link", "../outside", tarfile.LNKTYPE), "links to a place outside"),
        (a_link("pipe", "", tarfile.FIFOTYPE), "is a device"),
        (a_link("disk", "", tarfile.BLKTYPE), "is a device"),
    ],
)
def test_nothing_of_an_unsafe_archive_is_unpacked(tmp_path, folder, member, reason):
    archive = archive_of(tmp_path / "bad.tar", a_file("harmless.txt"), member)
    with pytest.raises(UnpackError, match=rf"bad\.tar was not unpacked, because it is unsafe: .* {reason}"):
        unpack(archive, folder)
    assert list(folder.iterdir()) == []
    assert not (tmp_path / "outside.txt").exists()


def test_writing_through_a_chain_of_links_is_refused(tmp_path, folder):
    members = a_link("a/b/up", "../.."), a_link("out", "a/b/up/.."), a_file("out/outside.txt")
    archive = archive_of(tmp_path / "bad.tar", *members)
    with pytest.raises(UnpackError, match="unsafe"):
        unpack(archive, folder)
    assert not (tmp_path / "outside.txt").exists()


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:bz2", "w:xz"])
def test_a_truncated_archive_is_named_damaged(tmp_path, folder, mode):
    whole = archive_of(tmp_path / "a.tar", a_file("one.txt", bytes(range(256)) * 400), mode=mode).read_bytes()
    (tmp_path / "a.tar").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(UnpackError, match=r"a\.tar is damaged"):
        unpack(tmp_path / "a.tar", folder)


def test_what_is_no_archive_is_named_damaged(tmp_path, folder):
    (tmp_path / "a.tar").write_bytes(b"<html>not found</html>")
    with pytest.raises(UnpackError, match=r"a\.tar is damaged"):
        unpack(tmp_path / "a.tar", folder)


def test_an_archive_of_folders_in_folders_is_refused_before_anything_is_written(tmp_path, folder):
    archive = tmp_path / "deep.tar"
    with tarfile.open(archive, "w", format=tarfile.PAX_FORMAT) as tar:
        member = tarfile.TarInfo("a/" * 2000 + "file")
        tar.addfile(member, io.BytesIO())
    with pytest.raises(UnpackError, match="lies more than 100 folders deep"):
        unpack(archive, folder)
    assert not list(folder.iterdir())


@pytest.mark.parametrize("member", [a_link("same.txt", "nowhere.txt", tarfile.LNKTYPE), a_link(".", ".")])
def test_a_link_to_nothing_or_to_itself_is_named_damaged(tmp_path, folder, member):
    with pytest.raises(UnpackError, match=r"a\.tar is damaged or no tar archive"):
        unpack(archive_of(tmp_path / "a.tar", a_file("one.txt"), member), folder)
