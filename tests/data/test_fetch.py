"""Data gets into the cache whole, checked and once; what goes wrong is said with what to do."""

import hashlib
import io
import random
import tarfile
import threading

import pytest

from stsbench.base.errors import UserError
from stsbench.data import fetch as module
from stsbench.data.catalogue import CatalogueFile, source
from stsbench.data.download import DownloadError
from stsbench.data.fetch import UnpackError, address_of, catalogued_files, fetch, get

TEXTS = {
    "STS/one.txt": b"the kettle sings .\tthe kettle whistles .\n",
    "STS/two.txt": b"4.5\n",
}

pytestmark = pytest.mark.usefixtures("no_pauses")


def sha256(data):
    return hashlib.sha256(data).hexdigest()


EXPECTED = [CatalogueFile(path=path, lines=1, sha256=sha256(data)) for path, data in TEXTS.items()]


def tar_of(texts, below=""):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for path, data in texts.items():
            member = tarfile.TarInfo(below + path)
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    return buffer.getvalue()


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "cache" / "data"


@pytest.fixture
def archive(site, page):
    """Return a function that puts an archive on the server and describes it as a source."""

    def put(body, **changes):
        address = site.put("/senteval.tar", page(body))
        return source("senteval").model_copy(update={"address": address, **changes})

    return put


@pytest.mark.parametrize("below", ["", "./", "downstream/", "senteval/downstream/", "SentEval/data/downstream/"])
def test_an_archive_is_unpacked_into_the_layout_whatever_its_top_folder(archive, folder, below):
    body = tar_of(TEXTS, below)
    fetched = fetch(archive(body), EXPECTED, folder)
    assert fetched.path == folder / "senteval" / "downstream"
    assert {path: (fetched.path / path).read_bytes() for path in TEXTS} == TEXTS
    assert (fetched.sha256, fetched.verified, fetched.fresh) == (sha256(body), True, True)


def test_nothing_but_the_data_the_record_and_the_lock_stays(archive, folder):
    fetch(archive(tar_of(TEXTS)), EXPECTED, folder)
    assert {path.name for path in folder.iterdir()} - {".senteval.lock"} == {
        "senteval",
        "senteval.tar.sha256",
    }


def test_what_is_there_is_not_downloaded_again(archive, folder, site):
    described = archive(tar_of(TEXTS))
    first = fetch(described, EXPECTED, folder)
    again = fetch(described, EXPECTED, folder)
    assert (again.path, again.sha256, again.fresh) == (first.path, first.sha256, False)
    assert len(site.asked) == 1


def test_a_changed_file_in_the_cache_is_replaced(archive, folder):
    described = archive(tar_of(TEXTS))
    changed = fetch(described, EXPECTED, folder).path / "STS" / "two.txt"
    changed.write_bytes(b"0\n")
    assert fetch(described, EXPECTED, folder).fresh
    assert changed.read_bytes() == TEXTS["STS/two.txt"]


def test_an_archive_with_another_hash_than_the_known_one_is_refused(archive, folder):
    with pytest.raises(DownloadError, match="not the catalogued file"):
        fetch(archive(tar_of(TEXTS), sha256="0" * 64), EXPECTED, folder)
    assert not (folder / "senteval").exists()


@pytest.mark.parametrize(
    ("texts", "first"),
    [
        ({**TEXTS, "STS/two.txt": b"4.6\n"}, "1 of 2 files .*, the first is STS/two.txt"),
        ({"STS/one.txt": TEXTS["STS/one.txt"]}, "1 of 2 files .*, the first is STS/two.txt"),
        ({"README": b"nothing else\n"}, "2 of 2 files .*, the first is STS/one.txt"),
    ],
    ids=["changed", "missing", "something else"],
)
def test_an_archive_that_holds_something_else_is_not_put_in_place(archive, folder, texts, first):
    with pytest.raises(UnpackError, match=first):
        fetch(archive(tar_of(texts)), EXPECTED, folder)
    assert {path.name for path in folder.iterdir()} <= {".senteval.lock"}


def test_what_was_in_place_survives_a_bad_archive(archive, folder):
    held = fetch(archive(tar_of(TEXTS)), EXPECTED, folder).path
    (held / "STS" / "two.txt").unlink()
    with pytest.raises(UnpackError):
        fetch(archive(b"no archive"), EXPECTED, folder)
    assert (held / "STS" / "one.txt").is_file()


def test_a_killed_unpacking_leaves_nothing_in_place_and_the_next_one_succeeds(archive, folder, monkeypatch):
    described = archive(tar_of(TEXTS))

    def kill(archive, folder, progress):
        (folder / "STS").mkdir()
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(module, "unpack", kill)
        with pytest.raises(KeyboardInterrupt):
            fetch(described, EXPECTED, folder)
    assert not (folder / "senteval").exists()
    (folder / ".senteval.unpacking" / "new" / "STS").mkdir(parents=True)
    assert fetch(described, EXPECTED, folder).fresh


def test_of_two_at_once_one_downloads_and_the_other_waits(archive, folder, site):
    described = archive(tar_of(TEXTS))
    site.pages["/senteval.tar"].delays = [0.3]
    results, told = [], []

    def work():
        results.append(fetch(described, EXPECTED, folder, lambda stage, *_: told.append(stage)).fresh)

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(results) == [False, True]
    assert len(site.asked) == 1
    assert "waiting for another process that downloads the same" in told


def test_a_folder_that_cannot_be_written_is_named(archive, tmp_path):
    (tmp_path / "cache").write_text("a file where a folder should be")
    with pytest.raises(UserError, match=r"cannot write .*cache.*set STSBENCH_CACHE"):
        fetch(archive(tar_of(TEXTS)), EXPECTED, tmp_path / "cache" / "data")


@pytest.fixture
def mirror(site, monkeypatch):
    monkeypatch.setenv("HF_ENDPOINT", f"{site.base}/")
    return "/datasets/princeton-nlp/datasets-for-simcse/resolve/main"


def test_a_text_file_comes_from_the_mirror_and_its_hash_is_recorded(site, page, mirror, folder):
    site.put(f"{mirror}/wiki1m_for_simcse.txt", page(b"An owl naps.\n"))
    fetched = get("wiki1m")
    assert fetched.path == folder / "wiki1m_for_simcse.txt"
    assert (fetched.sha256, fetched.verified, fetched.fresh) == (sha256(b"An owl naps.\n"), False, True)
    record = folder / "wiki1m_for_simcse.txt.sha256"
    assert record.read_text() == f"{sha256(b'An owl naps.' + bytes([10]))}  wiki1m_for_simcse.txt\n"
    assert not get("wiki1m").fresh


def test_a_text_file_that_was_changed_since_is_downloaded_again(site, page, mirror):
    site.put(f"{mirror}/wiki1m_for_simcse.txt", page(b"An owl naps.\n"))
    held = get("wiki1m").path
    held.write_bytes(b"An owl\n")
    assert get("wiki1m").fresh
    assert held.read_bytes() == b"An owl naps.\n"


def test_a_text_file_put_there_by_hand_is_taken(site, folder):
    folder.mkdir(parents=True)
    (folder / "nli_for_simcse.csv").write_bytes(b"sent0,sent1,hard_neg\n")
    fetched = get("nli")
    assert (fetched.fresh, fetched.verified) == (False, False)
    assert site.asked == []


def test_a_missing_file_says_how_to_get_it_by_hand(site, mirror, folder):
    with pytest.raises(UserError) as failure:
        get("wiki1m")
    address = f"{site.base}{mirror}/wiki1m_for_simcse.txt"
    assert str(failure.value) == (
        f"cannot download {address}: the server answered 404 (Not Found); try again, or download {address} "
        f"by hand to {folder / 'wiki1m_for_simcse.txt'}."
    )


def test_a_damaged_archive_says_how_to_get_it_by_hand_and_is_not_kept(site, page, mirror, folder):
    site.put(f"{mirror}/senteval.tar", page(b"no archive"))
    with pytest.raises(
        UserError, match=r"senteval\.tar is damaged or no tar archive; .* by hand, unpack it and set STSBENCH_DATA"
    ):
        get()
    assert not (folder / "senteval.tar").exists()


def test_an_archive_fills_a_named_folder_and_is_found_there_again(archive, tmp_path, site):
    described, mine = archive(tar_of(TEXTS, "senteval/downstream/")), tmp_path / "data" / "senteval"
    fetched = fetch(described, EXPECTED, mine, cached=False)
    assert fetched.path == mine / "downstream"
    assert {path: (fetched.path / path).read_bytes() for path in TEXTS} == TEXTS
    assert {path.name for path in mine.iterdir()} == {"downstream", "senteval.tar.sha256", ".senteval.lock"}
    assert not fetch(described, EXPECTED, mine, cached=False).fresh
    assert len(site.asked) == 1


def test_a_download_into_a_named_folder_goes_on_where_it_stopped(site, page, tmp_path):
    body = tar_of({"STS/one.txt": random.Random(1).randbytes(1_000_000)})
    expected = [CatalogueFile(path="STS/one.txt", lines=1, sha256=sha256(body[512 : 512 + 1_000_000]))]
    described = source("senteval").model_copy(
        update={"address": site.put("/senteval.tar", page(body, cuts=[500_000, 0, 0, 0]))}
    )
    with pytest.raises(DownloadError, match="cut again and again"):
        fetch(described, expected, tmp_path / "mine", cached=False)
    assert not (tmp_path / "mine" / "downstream").exists()
    site.asked.clear()
    assert fetch(described, expected, tmp_path / "mine", cached=False).fresh
    ((_, asked),) = site.asked
    assert asked is not None
    assert asked != "bytes=0-"


def test_what_a_person_keeps_in_a_named_folder_is_not_replaced(archive, tmp_path, site):
    mine = tmp_path / "downstream" / "STS" / "one.txt"
    mine.parent.mkdir(parents=True)
    mine.write_bytes(b"my own\n")
    with pytest.raises(UserError, match=r"downstream is there, and 2 of its 2 .* first is STS/one\.txt: move"):
        fetch(archive(tar_of(TEXTS)), EXPECTED, tmp_path, cached=False)
    assert mine.read_bytes() == b"my own\n"
    assert site.asked == []


def test_a_text_file_goes_to_a_named_folder_and_replaces_none(site, page, mirror, tmp_path):
    site.put(f"{mirror}/wiki1m_for_simcse.txt", page(b"An owl naps.\n"))
    held = get("wiki1m", to=tmp_path / "mine").path
    assert held == tmp_path / "mine" / "wiki1m_for_simcse.txt"
    held.write_bytes(b"my own\n")
    with pytest.raises(UserError, match=r"wiki1m_for_simcse\.txt is there, and is another file: move it away"):
        get("wiki1m", to=tmp_path / "mine")
    assert held.read_bytes() == b"my own\n"


def test_a_named_folder_that_cannot_be_made_is_told(archive, tmp_path):
    (tmp_path / "file").write_text("a file where a folder should be")
    with pytest.raises(UserError, match=r"cannot write .*file.*or name another folder"):
        fetch(archive(tar_of(TEXTS)), EXPECTED, tmp_path / "file", cached=False)


def test_without_a_mirror_the_hub_is_asked():
    assert address_of(source("nli")).startswith("https://huggingface.co/datasets/princeton-nlp/")


@pytest.mark.parametrize(
    ("what", "message"),
    [
        (
            "sts-raw",
            r"sts-raw is to be had from http.*, not by download: choose one of senteval, wiki1m, nli, stsb",
        ),
        ("sample", r"sample comes with stsbench, not by download: choose one of senteval, wiki1m, nli, stsb"),
        ("glue", r"there is no data source 'glue': "),
    ],
)
def test_what_cannot_be_downloaded_is_named(what, message):
    with pytest.raises(UserError, match=message):
        get(what)


def test_files_that_two_tasks_share_are_expected_once():
    paths = [file.path for file in catalogued_files("senteval")]
    assert len(paths) == len(set(paths))
    assert "SICK/SICK_trial.txt" in paths
