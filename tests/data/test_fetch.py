"""Data gets into a folder complete, checked and once; failures name the remedy."""

import hashlib
import io
import tarfile
from concurrent.futures import ThreadPoolExecutor

import pytest

from stsbench.base.errors import UserError
from stsbench.data import fetch as module
from stsbench.data.catalogue import CatalogueFile, source
from stsbench.data.fetch import download, fetch, get, unpack

BODY = bytes(range(256)) * 4000
SHA256 = hashlib.sha256(BODY).hexdigest()
TEXTS = {"STS/one.txt": b"the kettle sings .\tthe kettle whistles .\n", "STS/two.txt": b"4.5\n"}


EXPECTED = [CatalogueFile(path=path, sha256=hashlib.sha256(data).hexdigest()) for path, data in TEXTS.items()]


def tar_of(texts, below=""):
    return archive_of(*((tarfile.TarInfo(below + path), data) for path, data in texts.items()))


def archive_of(*members, mode="w"):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode=mode) as tar:
        for member, data in members:
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    return buffer.getvalue()


@pytest.fixture
def target(tmp_path):
    return tmp_path / "data" / "file.bin"


def test_a_file_arrives_complete_after_a_redirect_refusals_and_a_delay(site, target, monkeypatch):
    monkeypatch.setattr(module, "TIMEOUT", (1, 0.2))
    site.put("/elsewhere.bin", BODY, statuses=[503, 429], delays=[0.5])
    calls = []
    url = site.put("/file.bin", location="/elsewhere.bin")
    download(url, target, SHA256, lambda *now: calls.append(now))
    assert target.read_bytes() == BODY
    assert [path.name for path in target.parent.iterdir()] == ["file.bin"]
    (target.parent / "plain").touch()
    assert target.stat().st_mode == (target.parent / "plain").stat().st_mode
    assert calls[-1] == ("downloading file.bin", len(BODY), len(BODY))


@pytest.mark.parametrize(
    ("path", "kinds", "sha", "message"),
    [
        ("/none.bin", None, None, "404"),
        ("nowhere://none.bin", None, None, "cannot download nowhere"),
        ("http://127.0.0.1:1/none.bin", None, None, "no connection"),
        ("/file.bin", {"cuts": [1000] * 9}, SHA256, "cannot download"),
        ("/file.bin", {"statuses": [500] * 9}, SHA256, "500"),
        ("/file.bin", {}, "0" * 64, "is not the catalogued file .expected SHA-256 0000"),
    ],
    ids=["missing", "no address", "no server", "cut", "broken", "other bytes"],
)
def test_a_failed_download_leaves_nothing(path, kinds, sha, message, site, target, monkeypatch):
    monkeypatch.setattr(module, "TIMEOUT", (1, 0.1))
    if kinds is not None:
        site.put(path, BODY, **kinds)
    with pytest.raises(UserError, match=message):
        download(path if "://" in path else site.base + path, target, sha)
    assert list(target.parent.iterdir()) == []


def a_link(name, target, kind=tarfile.SYMTYPE):
    member = tarfile.TarInfo(name)
    member.type, member.linkname = kind, target
    return member, b""


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:bz2", "w:xz"])
def test_files_and_inner_links_are_unpacked_and_a_truncated_archive_is_an_error(tmp_path, mode):
    members = (tarfile.TarInfo("STS/one.txt"), BODY), a_link("STS/same.txt", "../STS/one.txt")
    (tmp_path / "a.tar").write_bytes(whole := archive_of(*members, mode=mode))
    unpack(tmp_path / "a.tar", tmp_path / "in")
    assert (tmp_path / "in/STS/same.txt").read_bytes() == (tmp_path / "in/STS/one.txt").read_bytes() == BODY
    (tmp_path / "a.tar").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(UserError, match=r"a\.tar is damaged"):
        unpack(tmp_path / "a.tar", tmp_path / "cut")


@pytest.mark.parametrize(
    "members",
    [
        [(tarfile.TarInfo("../outside.txt"), b"x")],
        [a_link("link", "/etc/passwd")],
        [a_link("link", "../outside", tarfile.LNKTYPE)],
        [a_link("pipe", "", tarfile.FIFOTYPE)],
        [a_link("a/b/up", "../.."), a_link("out", "a/b/up/.."), (tarfile.TarInfo("out/outside.txt"), b"x")],
        [a_link("same.txt", "nowhere.txt", tarfile.LNKTYPE)],
    ],
    ids=["up", "link", "hard link", "pipe", "chain", "nowhere"],
)
def test_an_unsafe_archive_writes_nothing_outside_its_folder(tmp_path, members):
    (tmp_path / "bad.tar").write_bytes(archive_of(*members))
    with pytest.raises(UserError, match=r"bad\.tar is (unsafe|damaged)"):
        unpack(tmp_path / "bad.tar", tmp_path / "in" / "inner")
    assert {path.name for path in tmp_path.iterdir()} <= {"bad.tar", "in"}
    assert not list(tmp_path.rglob("outside*"))


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "cache" / "data"


@pytest.fixture
def archive(site):
    """Return a function that puts an archive on the server and describes it as a source."""

    def put(body, **changes):
        address = site.put("/senteval.tar", body)
        return source("senteval").model_copy(update={"address": address, **changes})

    return put


@pytest.mark.parametrize("below", ["", "./", "downstream/", "senteval/downstream/", "SentEval/data/downstream/"])
def test_an_archive_is_unpacked_whatever_its_top_folder_and_once(archive, folder, site, below):
    described = archive(tar_of(TEXTS, below))
    fetched = fetch(described, EXPECTED, folder)
    assert fetched.path == folder / "senteval" / "downstream"
    assert {path: (fetched.path / path).read_bytes() for path in TEXTS} == TEXTS
    assert (fetched.verified, fetched.fresh) == (True, True)
    assert {path.name for path in folder.iterdir()} - {".senteval.lock"} == {"senteval"}
    assert not fetch(described, EXPECTED, folder).fresh
    assert len(site.requests) == 1


@pytest.mark.parametrize(
    ("body", "changes", "message"),
    [
        (tar_of({**TEXTS, "STS/two.txt": b"4.6\n"}), {}, "1 of 2 files .*, the first is STS/two.txt"),
        (tar_of({"STS/one.txt": TEXTS["STS/one.txt"]}), {}, "1 of 2 files .*, the first is STS/two.txt"),
        (tar_of({"README": b"nothing else\n"}), {}, "2 of 2 files .*, the first is STS/one.txt"),
        (b"no archive", {}, r"senteval\.tar is damaged or not a tar archive"),
        (tar_of(TEXTS), {"sha256": "0" * 64}, "not the catalogued file"),
    ],
    ids=["changed", "missing", "something else", "damaged", "other hash"],
)
def test_a_wrong_archive_is_not_put_in_place(archive, folder, body, changes, message):
    with pytest.raises(UserError, match=message):
        fetch(archive(body, **changes), EXPECTED, folder)
    assert {path.name for path in folder.iterdir()} <= {".senteval.lock"}


def test_files_that_differ_are_never_replaced(archive, folder, site):
    own = folder / "senteval" / "downstream" / "STS" / "one.txt"
    own.parent.mkdir(parents=True)
    own.write_bytes(b"my own\n")
    with pytest.raises(UserError, match=r"2 of its 2 .* STS/one\.txt: move"):
        fetch(archive(tar_of(TEXTS)), EXPECTED, folder)
    assert own.read_bytes() == b"my own\n"
    assert site.requests == []


def test_a_killed_unpacking_leaves_nothing_in_place_and_the_next_one_succeeds(archive, folder, monkeypatch):
    described = archive(tar_of(TEXTS))

    def kill(_archive, folder):
        (folder / "STS").mkdir()
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(module, "unpack", kill)
        with pytest.raises(KeyboardInterrupt):
            fetch(described, EXPECTED, folder)
    assert not (folder / "senteval").exists()
    (folder / ".senteval.unpacking" / "STS").mkdir(parents=True)
    assert fetch(described, EXPECTED, folder).fresh


def test_of_two_at_once_one_downloads_and_the_other_waits(archive, folder, site):
    described = archive(tar_of(TEXTS))
    site.pages["/senteval.tar"].delays = [0.3]
    with ThreadPoolExecutor(2) as threads:
        results = list(threads.map(lambda _: fetch(described, EXPECTED, folder).fresh, range(2)))
    assert (sorted(results), len(site.requests)) == ([False, True], 1)


def test_several_files_are_fetched_below_one_address(site, folder):
    files = {"Track A/arq/arq.csv": b"one\n", "data/two.json": b"two\n"}
    for path, content in files.items():
        site.put(f"/semrel24/{path.replace(' ', '%20')}", content)
    described = source("semrel24").model_copy(update={"address": f"{site.base}/semrel24/"})
    expected = [CatalogueFile(path=path) for path in files]
    fetched = fetch(described, expected, folder)
    assert (fetched.path, fetched.fresh, fetched.verified) == (folder / "semrel24", True, False)
    assert {path: (fetched.path / path).read_bytes() for path in files} == files
    assert (fetch(described, expected, folder).fresh, len(site.requests)) == (False, 2)
    known = [CatalogueFile(path="data/two.json", sha256="0" * 64)]
    with pytest.raises(UserError, match=r"two\.json exists .*: move"):
        fetch(described, known, folder)
    with pytest.raises(UserError, match="not the catalogued file"):
        fetch(described, known, folder.parent / "other")


def test_a_text_file_comes_from_the_mirror_into_the_cache_or_a_folder(site, folder, tmp_path, monkeypatch):
    monkeypatch.setenv("HF_ENDPOINT", f"{site.base}/")
    (tmp_path / "by-hand").mkdir()
    (tmp_path / "by-hand" / "nli_for_simcse.csv").write_bytes(b"sent0,sent1,hard_neg\n")
    for what in ("sts-raw", "sample", "glue"):
        with pytest.raises(UserError, match=what):
            get(what)
    by_hand = get("nli", to=tmp_path / "by-hand")
    assert (by_hand.fresh, by_hand.verified, site.requests) == (False, False, [])
    place = "/datasets/princeton-nlp/datasets-for-simcse/resolve/main"
    site.put(f"{place}/wiki1m_for_simcse.txt", b"An owl naps.\n")
    for to, path in ((None, folder), (tmp_path / "mine", tmp_path / "mine")):
        fetched = get("wiki1m", to=to)
        assert fetched.path == path / "wiki1m_for_simcse.txt"
        assert (fetched.path.read_bytes(), fetched.verified, fetched.fresh) == (b"An owl naps.\n", False, True)
        assert not get("wiki1m", to=to).fresh
