"""Mistakes in checkpoints, options of `load` and templates: each is one UserError that names the place."""

import json

import pytest
from tiny_models import edit

from stsbench.base.errors import UserError
from stsbench.encoders.load import load
from stsbench.encoders.plan import embed
from stsbench.encoders.template import read_template


def refused(action, *words):
    with pytest.raises(UserError) as error:
        action()
    message = str(error.value)
    assert "\n" not in message
    assert all(word in message for word in words), message
    return message


def encode(model, **options):
    return embed(load(model, **options), ["Nobody knows why the bridge is closed today"], use_cache=False)


def content(name, text):
    return lambda folder: (folder / name).write_text(text)


def without(*names):
    return lambda folder: [(folder / name).unlink() for name in names]


def entries(name, **values):
    return lambda folder: edit(folder / name, **values)


def marks_token_types(folder):
    import tokenizers

    stored = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    stored.post_processor = tokenizers.processors.TemplateProcessing(
        single="$A:0 [SEP]:0 [CLS]:2", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    stored.save(str(folder / "tokenizer.json"))
    names = ["input_ids", "token_type_ids", "attention_mask"]
    entries("tokenizer_config.json", model_input_names=names)(folder)


def nothing(_folder): ...


def no_pooler(folder):
    from safetensors.torch import load_file, save_file

    file = folder / "model.safetensors"
    kept = {name: tensor.clone() for name, tensor in load_file(file).items() if not name.startswith("pooler.")}
    save_file(kept, file, metadata={"format": "pt"})


AVG = {"pooling": "avg"}
PROMPTS = json.dumps({"prompts": {"query": "so she ", "passage": "the dog "}})
IN_FILES = [
    ("bert", without("model.safetensors"), AVG, ("no model weights",)),
    ("bert", entries("config.json", model_type="nonesuch", architectures=None), AVG, ("nonesuch",)),
    ("bert", entries("config.json", model_type="t5", is_encoder_decoder=True), {}, ("encoder-decoder",)),
    ("bert", without("tokenizer.json", "tokenizer_config.json"), AVG, ("tokenizer",)),
    ("gpt2", without("tokenizer.json", "tokenizer_config.json"), AVG, ("tokenizer",)),
    ("bert", content("tokenizer.json", "{}"), AVG, ("load the tokenizer",)),
    ("bert", marks_token_types, AVG, ("token types", "--vectors")),
    ("bert", no_pooler, {"pooling": "cls"}, ("pooling cls", "cls_before_pooler")),
    ("distilbert", nothing, {"pooling": "cls"}, ("ooling cls", "cls_before_pooler")),
    ("bert", nothing, {"pooling": "median"}, ("unknown pooling 'median'", "auto, cls")),
    ("bert", nothing, {"pooling": "lest@-2"}, ("unknown pooling 'lest@-2'", "last")),
    ("bert", nothing, {"pooling": "mask"}, ("mask", "--template")),
    ("bert", nothing, {"pooling": "avg@9"}, ("avg@9", "-3")),
    ("bert", nothing, {"precision": "int4"}, ("precision 'int4'",)),
    ("bert", nothing, {"precision": "int8"}, ("torch has no precision 'int8'", "bf16")),
    ("bert", nothing, {"backend": "opnvino", "precision": "int8"}, ("'opnvino'", "openvino")),
    ("bert", nothing, {"backend": "openvino", "precision": "fp16"}, ("openvino", "'fp16'", "int8")),
    ("bert", nothing, {"backend": "openvino", "device": "cuda"}, ("openvino", "--device cuda")),
    ("bert", nothing, {"attention": "flash"}, ("unknown --attention 'flash'",)),
    ("bert", nothing, {"attention_mask": "casual"}, ("unknown --attention-mask 'casual'", "causal")),
    ("bert", nothing, {"attention": "flash_attention_2"}, ("FlashAttention2", "cannot be used")),
    ("bert", nothing, {"attention": "eager", "backend": "openvino"}, ("--attention needs torch",)),
    ("bert", nothing, {"device": "tpu"}, ("device 'tpu'",)),
    ("bert", nothing, {"max_length": 49}, ("48", "--max-length 49")),
    ("bert", nothing, {"max_length": 2}, ("--max-length 2",)),
    ("bert", nothing, {"prompt": "half\udcff"}, ("UTF-8",)),
    ("gpt2", nothing, {"template": "promptbert"}, ("promptbert", "mask")),
    ("bert", nothing, {"template": "promptbert", "max_length": 8}, ("promptbert", "of 8 sub-words")),
    ("bert", nothing, {"template": "promptbert", "prompt": "query: "}, ("--prompt and --template",)),
    ("bert", nothing, {"template": "uae", "pooling": "mask2"}, ("mask2", "template")),
    ("bert", nothing, {"prompt": "a: ", "prompt_name": "query"}, ("--prompt and --prompt-name",)),
    ("bert", nothing, {"prompt_name": "query"}, ("'query'", "--prompt")),
    *(
        ("bert", content("config_sentence_transformers.json", PROMPTS), options, words)
        for options, words in (
            ({"prompt_name": "quary"}, ("'quary'", "query")),
            ({"prompts": "query,pasage"}, ("'pasage'", "passage")),
            ({"prompts": "a: ,b: ,c: "}, ("each side",)),
            ({"prompts": ("query",)}, ("each side",)),
            ({"prompts": "Instruct: find\nQuery: ,"}, ("each side",)),
            ({"prompts": "query,", "prompt_name": "query"}, ("--prompt-name and --prompts",)),
            ({"prompts": "query,", "template": "promptbert"}, ("--prompts and --template",)),
        )
    ),
]


@pytest.mark.parametrize(("kind", "change", "options", "words"), IN_FILES)
def test_a_mistake_in_a_checkpoint_or_an_option_is_one_sentence(kind, change, options, words, tiny):
    folder = tiny(kind)
    change(folder)
    refused(lambda: encode(folder, **options), *words)


@pytest.mark.parametrize(
    ("model", "word"),
    [("./nowhere", "nowhere"), ("", "no checkpoint"), ("notes.pdf", "unknown kind")],
)
def test_what_is_not_a_checkpoint_is_refused(model, word, tmp_path):
    (tmp_path / "notes.pdf").write_text("no")
    refused(lambda: load(model if model.startswith(".") else tmp_path / model), word)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("texts: It means {mask}.\npooling: mask\n", ("mine.yaml, line 1", "texts", "{sentence}")),
        ("texts: '{sentence}'\npooling: avg\npading: left\n", ("line 3", "'pading'", "padding")),
        ("texts: '{sentence}'\npooling: masc\n", ("line 2", "pooling", "mask")),
        ("texts: '{sentense}'\npooling: avg\n", ("line 1", "texts", "sentence")),
        ("texts: '{sentence}'\npooling: avg\nrules: [ful_stop]\n", ("'ful_stop'", "full_stop")),
        ("texts: '{begin}{sentence}'\npooling: avg\n", ("tokenize: apart",)),
        ("texts: '{sentence} {sentence}'\npooling: mask\nsubtract: template\n", ("subtract", "one place")),
        ("texts: '{sentence}'\npooling: mask\nsubtract: template\npadding: left\n", ("subtract", "padding right")),
        ("texts: '{sentence}'\npooling: avg\npositions: own\n", ("positions", "subtract")),
        ("texts: []\npooling: avg\n", ("line 1", "texts")),
        ("pooling: avg\n", ("'texts'",)),
    ],
)
def test_a_mistake_in_a_template_names_its_line(tmp_path, content, words):
    (tmp_path / "mine.yaml").write_text(content, encoding="utf-8")
    refused(lambda: read_template(tmp_path / "mine.yaml"), *words)


def function(sentences):
    return [[1.0] for _ in sentences]


SERVED = "http://127.0.0.1:9/v1#tiny"
DISOBEYED = {
    "words.txt": [
        ({"pooling": "max"}, ("--pooling", "averaged")),
        ({"max_length": 12}, ("--max-length", "averaged")),
    ],
    function: [
        (options, (option, "callable"))
        for options, option in (
            ({"pooling": "cls"}, "--pooling"),
            ({"max_length": 32}, "--max-length"),
            ({"prompt": "query: ", "precision": "bf16"}, "--prompt and --precision"),
            ({"revision": "main"}, "--revision"),
            ({"device": "cuda"}, "--device"),
            ({"template": "e5"}, "--template"),
            ({"prompt_name": "query"}, "--prompt-name"),
            ({"prompts": "a: ,b: "}, "--prompts"),
        )
    ],
    SERVED: [
        ({"pooling": "cls"}, ("--pooling",)),
        ({"precision": "bf16"}, ("--precision",)),
        ({"max_length": 64}, ("--max-length",)),
        ({"template": "e5"}, ("--template",)),
        ({"attention": "eager"}, ("--attention",)),
        ({"device": "cuda"}, ("--device",)),
        ({"prompt_name": "query"}, ("no prompt named 'query'",)),
        ({"prompts": "query,passage"}, ("no prompt named 'query'",)),
    ],
}


@pytest.mark.parametrize(
    ("model", "options", "words"),
    [(model, *mistake) for model, mistakes in DISOBEYED.items() for mistake in mistakes],
)
def test_an_option_that_a_model_does_not_obey_is_refused(model, options, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "words.txt").write_text("the 1 2\n")
    refused(lambda: load(model, **options), *words)
