"""A download arrives whole, goes on where it stopped, never mixes two versions, and fails with a reason."""

import hashlib
import random
import socket
from pathlib import Path

import pytest

from stsbench.data import download as module
from stsbench.data.download import CHUNK_BYTES, DownloadError, download

BODY = random.Random(1).randbytes(1_000_000)
SHA256 = hashlib.sha256(BODY).hexdigest()
CUT = 5 * CHUNK_BYTES

pytestmark = pytest.mark.usefixtures("no_pauses")


@pytest.fixture
def target(tmp_path):
    return tmp_path / "data" / "file.bin"


def left_over(target):
    return sorted(path.name for path in target.parent.iterdir())


def interrupt(site, page, target, **kinds):
    """Leave a download half done: the first attempt is cut after five chunks, the others at once."""
    url = site.put("/file.bin", page(BODY, cuts=[CUT, 0, 0, 0], **kinds))
    with pytest.raises(DownloadError, match="cut again and again"):
        download(url, target, SHA256)
    assert not target.exists()
    site.asked.clear()
    return url


def test_a_file_arrives_whole_and_leaves_nothing_beside_it(site, page, target):
    url = site.put("/file.bin", page(BODY))
    assert download(url, target, SHA256) == SHA256
    assert target.read_bytes() == BODY
    assert left_over(target) == ["file.bin"]


def test_progress_tells_bytes_done_and_in_all(site, page, target):
    told = []
    download(site.put("/file.bin", page(BODY)), target, SHA256, lambda *now: told.append(now))
    assert told[0] == ("downloading file.bin", 0, len(BODY))
    assert told[-1] == ("downloading file.bin", len(BODY), len(BODY))


def test_an_unknown_hash_is_computed(site, page, target):
    assert download(site.put("/file.bin", page(BODY)), target, None) == SHA256


def test_a_redirect_is_followed(site, page, target):
    site.put("/elsewhere.bin", page(BODY))
    url = site.put("/file.bin", page(location="/elsewhere.bin"))
    assert download(url, target, SHA256) == SHA256


def test_a_cut_connection_is_resumed_within_one_call(site, page, target):
    url = site.put("/file.bin", page(BODY, cuts=[CUT]))
    assert download(url, target, SHA256) == SHA256
    assert [wanted for _, wanted in site.asked] == [None, f"bytes={CUT}-"]


@pytest.mark.parametrize(
    "version", [{}, {"etag": None, "last_modified": "Wed, 21 Oct 2015 07:28:00 GMT"}], ids=["etag", "date"]
)
def test_an_interrupted_download_goes_on_in_the_next_call(site, page, target, version):
    url = interrupt(site, page, target, **version)
    told = []
    assert download(url, target, SHA256, lambda *now: told.append(now)) == SHA256
    assert [wanted for _, wanted in site.asked] == [f"bytes={CUT}-"]
    assert told[0] == ("downloading file.bin", CUT, len(BODY))
    assert left_over(target) == ["file.bin"]


def test_a_server_without_ranges_sends_all_again(site, page, target):
    url = interrupt(site, page, target, ranges=False)
    assert download(url, target, SHA256) == SHA256


@pytest.mark.parametrize("etag", [None, 'W/"weak"'], ids=["no version", "weak version"])
def test_a_partial_file_of_unknown_version_is_not_resumed(site, page, target, etag):
    url = interrupt(site, page, target, etag=etag)
    assert download(url, target, SHA256) == SHA256
    assert [wanted for _, wanted in site.asked] == [None]


def test_a_file_that_changed_between_attempts_is_not_spliced(site, page, target):
    url = interrupt(site, page, target)
    changed = BODY[::-1]
    site.put("/file.bin", page(changed, etag='"two"'))
    assert download(url, target, None) == hashlib.sha256(changed).hexdigest()
    assert target.read_bytes() == changed


def test_a_partial_file_that_was_complete_is_taken(site, page, target):
    url = interrupt(site, page, target)
    target.with_name("file.bin.part").write_bytes(BODY)
    assert download(url, target, SHA256) == SHA256
    assert [wanted for _, wanted in site.asked] == ["bytes=1000000-"]


def test_a_partial_file_longer_than_the_real_one_is_given_up(site, page, target):
    url = interrupt(site, page, target)
    target.with_name("file.bin.part").write_bytes(BODY + b"more")
    assert download(url, target, SHA256) == SHA256


def test_an_answer_for_another_range_is_not_appended(site, page, target):
    url = interrupt(site, page, target, wrong_range=True)
    assert download(url, target, SHA256) == SHA256


def test_a_corrupted_file_is_refused_and_removed(site, page, target):
    url = site.put("/file.bin", page(b"x" + BODY[1:]))
    with pytest.raises(DownloadError, match=f"not the catalogued file .SHA-256 {SHA256} expected"):
        download(url, target, SHA256)
    assert left_over(target) == []


def test_a_missing_file_is_asked_for_once(site, target):
    with pytest.raises(DownloadError, match=r"the server answered 404"):
        download(f"{site.base}/none.bin", target, SHA256)
    assert len(site.asked) == 1


def test_a_busy_server_is_asked_again(site, page, target):
    url = site.put("/file.bin", page(BODY, statuses=[503, 429]))
    assert download(url, target, SHA256) == SHA256
    assert len(site.asked) == 3


def test_a_slow_server_is_given_another_chance(site, page, target, monkeypatch):
    monkeypatch.setattr(module, "SILENT_SECONDS", 0.1)
    url = site.put("/file.bin", page(BODY, delays=[0.4]))
    assert download(url, target, SHA256) == SHA256


def test_a_server_that_stays_silent_is_given_up(site, page, target, monkeypatch):
    monkeypatch.setattr(module, "SILENT_SECONDS", 0.05)
    url = site.put("/file.bin", page(BODY, delays=[0.3] * 4))
    with pytest.raises(DownloadError, match="did not answer in time"):
        download(url, target, SHA256)


def test_being_offline_is_named(target):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        closed = taken.getsockname()[1]
    with pytest.raises(DownloadError, match=r"are you offline"):
        download(f"http://127.0.0.1:{closed}/file.bin", target, SHA256)


def test_a_name_that_does_not_resolve_is_named(target, monkeypatch):
    def fail(*_args, **_kwargs):
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", fail)
    with pytest.raises(DownloadError, match=r"are you offline"):
        download("http://mirror.invalid/file.bin", target, SHA256)


def test_an_address_that_is_none_is_not_tried_again(target):
    with pytest.raises(DownloadError, match="No connection adapters"):
        download("nowhere://file.bin", target, SHA256)


def test_a_full_disk_is_named(site, page, target, monkeypatch):
    def full(*_args, **_kwargs):
        raise OSError(28, "No space left on device")

    url = site.put("/file.bin", page(BODY))
    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(DownloadError, match="No space left on device"):
        download(url, target, SHA256)
