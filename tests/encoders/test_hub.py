"""A Hub name: what is fetched, what is kept, and what is said when it cannot be had.

A local server stands for the Hub. huggingface_hub reads its address at import, so each check is a process.
"""

import hashlib
import json
import os
import subprocess
import sys
import textwrap
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote, urlsplit

import pytest
from tiny_models import vectors_of

from stsbench.encoders.checkpoint import needed_files
from stsbench.encoders.load import load

COMMIT = "0123456789abcdef0123456789abcdef01234567"
NAME = "someone/tiny-model"


class _Hub(BaseHTTPRequestHandler):
    def do_GET(self):
        status, content, headers = self.answer(unquote(urlsplit(self.path).path))
        self.send_response(status)
        for name, value in (headers | {"Content-Length": str(len(content))}).items():
            self.send_header(name, value)
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(content)

    do_HEAD = do_GET

    def log_message(self, *_): ...

    def answer(self, path):
        files, name = self.server.files, path.removeprefix(f"/{NAME}/resolve/").partition("/")[2]
        if self.server.status != 200:
            return self.server.status, b'{"error": "no"}', {"X-Error-Code": self.server.error_code}
        if path.startswith(f"/api/models/{NAME}/tree/"):
            entries = [
                {"type": "file", "path": name, "size": len(data), "oid": hashlib.sha1(data).hexdigest()}
                for name, data in files.items()
            ]
            return 200, json.dumps(entries).encode(), {}
        if path in {f"/api/models/{NAME}{end}" for end in ("", "/revision/main", f"/revision/{COMMIT}")}:
            siblings = [{"rfilename": name} for name in files]
            info = {"id": NAME, "modelId": NAME, "sha": COMMIT, "siblings": siblings, "tags": [], "downloads": 0}
            return 200, json.dumps(info).encode(), {}
        if name not in files:
            return 404, b"{}", {"X-Error-Code": "RevisionNotFound" if "/revision/" in path else "EntryNotFound"}
        if self.command == "GET":
            self.server.fetched.append(name)
        tag = hashlib.sha1(files[name]).hexdigest()
        return 200, files[name], {"ETag": f'"{tag}"', "X-Repo-Commit": COMMIT}


@pytest.fixture
def hub(tiny):
    """Serve a tiny checkpoint that has its weights in two formats and other things besides."""
    folder = tiny()
    files = {file.name: file.read_bytes() for file in folder.iterdir()}
    files |= {
        "pytorch_model.bin": b"the same weights once more",
        "onnx/model.onnx": b"and again",
        "openvino/openvino_model.bin": b"and again",
        "checkpoint-500/model.safetensors": b"older weights",
        "README.md": b"a card",
        "modeling_own.py": b"code",
    }
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Hub)
    server.files, server.fetched, server.status, server.error_code = files, [], 200, ""
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture
def ask(hub, tmp_path):
    """Return a function that runs a few lines in a process for which the server is the Hub."""

    def run(lines, **environment):
        env = {name: value for name, value in os.environ.items() if not name.startswith("HF_")}
        env |= {
            "HF_ENDPOINT": f"http://127.0.0.1:{hub.server_port}",
            "HF_HOME": str(tmp_path / "hf"),
            "HF_HUB_DISABLE_XET": "1",
            "NO_PROXY": "*",
            "OMP_NUM_THREADS": "1",
        }
        env |= environment
        prelude = """
            from stsbench.encoders.load import load
            from stsbench.base.errors import UserError
            def told(*args, **options):
                try:
                    load(*args, **options)
                except UserError as error:
                    print(error)
        """
        code = textwrap.dedent(prelude) + textwrap.dedent(lines)
        done = subprocess.run(
            [sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=100, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    return run


LOAD = f"""
    encoder = load("{NAME}", pooling="avg")
    print(encoder.identity.name, encoder.identity.use.revision, encoder.checkpoint.folder)
"""


def test_a_model_is_fetched_in_one_format_with_its_revision_and_read_offline_afterwards(hub, ask):
    said = ask(LOAD)
    name, revision, folder = said.split()
    assert (name, revision) == (NAME, COMMIT)
    assert sorted(hub.fetched) == ["config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"]
    assert vectors_of(load(folder, pooling="avg"), ["the dog ran"]).shape == (1, 32)

    hub.fetched.clear()
    assert ask(LOAD, HF_HUB_OFFLINE="1") == said
    assert ask(LOAD, HF_ENDPOINT="http://127.0.0.1:9") == said
    hub.status = 503
    assert ask(LOAD) == said
    assert hub.fetched == []


def test_what_the_hub_does_not_have_is_one_sentence(hub, ask, tmp_path):
    lines = f"""
        print(load("{NAME}", pooling="avg", revision="{COMMIT}").identity.use.revision)
        told("{NAME}", revision="no-such-branch")
        told("not a name")
        told("two//slashes")
        told("princeton-nlp/unsup-simcse-bert-bas-uncased")
    """
    revision, no_revision, *no_names, misspelt = ask(lines).splitlines()
    assert revision == COMMIT
    assert "no revision 'no-such-branch'" in no_revision
    assert len(no_names) == 2
    assert all(line.startswith("no such model: ") for line in no_names)
    assert misspelt.endswith("Did you mean princeton-nlp/unsup-simcse-bert-base-uncased?")
    hub.status, hub.error_code = 403, "GatedRepo"
    said = ask(f'told("{NAME}-other")')
    assert "hf auth login" in said
    assert "\n" not in said
    (tmp_path / "in-the-way").write_text("")
    for environment in (
        {"HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path / "empty")},
        {"HF_ENDPOINT": "http://127.0.0.1:9", "HF_HOME": str(tmp_path / "empty")},
        {"HF_HOME": str(tmp_path / "in-the-way")},
    ):
        said = ask(f'told("{NAME}")', **environment)
        assert NAME in said
        assert "\n" not in said


def test_the_code_of_a_model_is_fetched_only_if_it_is_trusted(hub, ask):
    ask(f'load("{NAME}", pooling="avg")')
    assert "modeling_own.py" not in hub.fetched
    ask(f'load("{NAME}", pooling="avg", trust_remote_code=True)')
    assert "modeling_own.py" in hub.fetched


def test_of_each_folder_one_format_of_weights_is_needed():
    sharded = ["model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"]
    needed = ["config.json", *sharded, "model.safetensors.index.json", "vocab.txt", "1_Pooling/config.json"]
    dense = ["2_Dense/pytorch_model.bin", "2_Dense/config.json", "3_Dense/model.safetensors"]
    other = ["model.fp16.safetensors", "pytorch_model-00001-of-00001.bin", "flax_model.msgpack"]
    other += ["training_args.bin", "3_Dense/pytorch_model.bin", "onnx/config.json", "own.py"]
    assert needed_files([*needed, *dense, *other]) == [*needed, *dense]
    assert needed_files([*needed, *dense, *other], with_code=True)[-1] == "own.py"
    assert needed_files(["pytorch_model.bin", "openvino/model.bin"]) == ["pytorch_model.bin"]
