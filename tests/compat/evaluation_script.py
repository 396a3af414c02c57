"""Evaluates a checkpoint as the scripts of SimCSE, ESimCSE, DiffCSE, PromptBERT and AnglE do, not knowing us.

Each family's part makes the calls that the family's own script makes; `docs/how-to/senteval.md` lists them. It is
run in a folder that looks like such a repository: a SentEval of its own, the data in it, a module beside it.
"""

import argparse
import json
import logging
import sys
from pathlib import Path

import torch
from beside import DIGITS
from transformers import AutoModel, AutoTokenizer

logging.basicConfig(format="%(asctime)s : %(message)s", level=logging.DEBUG)

PATH_TO_SENTEVAL = "./SentEval"
PATH_TO_DATA = "./SentEval/data"
sys.path.insert(0, PATH_TO_SENTEVAL)
import senteval  # noqa: E402

STS = ["STS12", "STS13", "STS14", "STS15", "STS16", "STSBenchmark", "SICKRelatedness"]
TRANSFER = ["MR", "CR", "SUBJ", "MPQA", "SST2", "TREC", "MRPC"]
TEMPLATE = '*cls*_This_sentence_:_"*sent_0*"_means*mask*.*sep+*'
PROMPT = 'Summarize sentence "{text}" in one word:"'
DEVICE = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--family", choices=list(BATCHERS))
    parser.add_argument("--model_name_or_path", type=str)
    parser.add_argument("--pooler", default="cls")
    parser.add_argument("--mode", choices=["dev", "test", "fasttest"], default="test")
    parser.add_argument("--tasks", type=str, nargs="+")
    parser.add_argument("--max_length", type=int)
    return parser.parse_args()


def classifier_params(mode):
    if mode == "test":
        classifier = {"nhid": 0, "optim": "adam", "batch_size": 64, "tenacity": 5, "epoch_size": 4}
        return {"task_path": PATH_TO_DATA, "usepytorch": True, "kfold": 10, "classifier": classifier}
    classifier = {"nhid": 0, "optim": "rmsprop", "batch_size": 128, "tenacity": 3, "epoch_size": 2}
    return {"task_path": PATH_TO_DATA, "usepytorch": True, "kfold": 5, "classifier": classifier}


def sentences_of(batch):
    if len(batch) >= 1 and len(batch[0]) >= 1 and isinstance(batch[0][0], bytes):
        batch = [[word.decode("utf-8") for word in words] for words in batch]
    return [" ".join(words) for words in batch]


def pooled(pooler, outputs, mask):
    """Return SimCSE's and DiffCSE's poolers."""
    if pooler == "cls":
        return outputs.pooler_output.cpu()
    if pooler == "cls_before_pooler":
        return outputs.last_hidden_state[:, 0].cpu()
    hidden = outputs.hidden_states
    states = {
        "avg": hidden[-1],
        "avg_first_last": (hidden[0] + hidden[-1]) / 2,
    }
    return ((states[pooler] * mask.unsqueeze(-1)).sum(1) / mask.sum(-1).unsqueeze(-1)).cpu()


def simcse(args):
    model = AutoModel.from_pretrained(args.model_name_or_path)
    tokenizer = AutoTokenizer.from_pretrained(args.model_name_or_path)
    model = model.to(DEVICE)

    def batcher(params, batch, max_length=args.max_length):
        sentences = sentences_of(batch)
        if max_length is not None:
            batch = tokenizer.batch_encode_plus(
                sentences, return_tensors="pt", padding=True, max_length=max_length, truncation=True
            )
        else:
            batch = tokenizer.batch_encode_plus(sentences, return_tensors="pt", padding=True)
        for key in batch:
            batch[key] = batch[key].to(DEVICE)
        with torch.no_grad():
            outputs = model(**batch, output_hidden_states=True, return_dict=True)
        return pooled(args.pooler, outputs, batch["attention_mask"])

    return batcher


def promptbert(args):
    """Read the mask's vector, less that of the template alone, with the words' vectors handed in."""
    model = AutoModel.from_pretrained(args.model_name_or_path)
    tokenizer = AutoTokenizer.from_pretrained(args.model_name_or_path, use_fast=True)
    model = model.to(DEVICE)
    model.eval()
    template = TEMPLATE.replace("*mask*", tokenizer.mask_token).replace("*sep+*", "").replace("*cls*", "")
    empty = template.replace("*sent_0*", " ").replace("_", " ").strip().replace("   ", " ")
    vocabulary = tokenizer.get_vocab()
    assert tokenizer.mask_token in vocabulary
    ids = tokenizer.encode(empty, add_special_tokens=False)
    assert tokenizer.mask_token in tokenizer.convert_ids_to_tokens(ids)

    batch = tokenizer([empty], return_tensors="pt")
    length = batch["input_ids"].shape[1]
    copies = model.config.max_position_embeddings - length
    batch["position_ids"] = torch.arange(length).to(DEVICE).unsqueeze(0)
    for key in batch:
        batch[key] = batch[key].repeat(copies, 1).to(DEVICE)
    batch["position_ids"][:, 5:] += torch.arange(copies).to(DEVICE).unsqueeze(-1)
    with torch.no_grad():
        outputs = model(**batch, output_hidden_states=True, return_dict=True)
        delta = outputs.hidden_states[-1][batch["input_ids"] == tokenizer.mask_token_id]
    delta.requires_grad = False

    def batcher(params, batch, max_length=None):
        sentences = sentences_of(batch)
        for number, sentence in enumerate(sentences):
            stop = "." if len(sentence) > 0 and sentence[-1] not in ".?\"'" else ""
            sentences[number] = template.replace("_", " ").replace("*sent 0*", sentence + stop).strip()
        batch = tokenizer.batch_encode_plus(sentences, return_tensors="pt", padding=True)
        for key in batch:
            batch[key] = batch[key].to(DEVICE) if batch[key] is not None else None
        ids = batch["input_ids"]
        with torch.no_grad():
            batch["input_ids"], batch["inputs_embeds"] = None, model.embeddings.word_embeddings(ids)
            outputs = model(**batch, output_hidden_states=True, return_dict=True)
            vectors = outputs.last_hidden_state[ids == tokenizer.mask_token_id]
            vectors -= delta[batch["attention_mask"].sum(-1) - length]
            vectors = model.pooler.activation(model.pooler.dense(vectors))
        return vectors.view(ids.shape[0], -1).cpu()

    return batcher


def angle(args):
    """Encode with a model of its own, which returns NumPy; the later scripts'."""

    class Encoder:
        def __init__(self):
            self.backbone = AutoModel.from_pretrained(args.model_name_or_path, torch_dtype=torch.float32).to(
                DEVICE
            )

        def encode(self, sentences, to_numpy=True):
            tokens = tokenizer(
                sentences, padding=False, return_attention_mask=False, max_length=64, truncation=True
            )
            tokens = tokenizer.pad(tokens, padding=True, return_attention_mask=True, return_tensors="pt")
            for key, values in tokens.items():
                tokens[key] = values.to(self.backbone.device)
            with torch.no_grad():
                outputs = self.backbone(output_hidden_states=True, **tokens).last_hidden_state[:, 0]
            return outputs.float().detach().cpu().numpy()

    tokenizer = AutoTokenizer.from_pretrained(args.model_name_or_path)
    model = Encoder()

    def batcher(params, batch, max_length=500):
        sentences = sentences_of(batch)
        if max_length == 500:
            cut = [tokenizer.encode(sentence, add_special_tokens=False)[:max_length] for sentence in sentences]
            sentences = [tokenizer.decode(ids) for ids in cut]
        for number, sentence in enumerate(sentences):
            text = sentence[:-1] + "." if sentence.endswith("?") else sentence
            sentences[number] = PROMPT.format(text=text.replace('"', "'"))
        return model.encode(sentences, to_numpy=True)

    return batcher


def angle_early(args):
    """Read the last token's state; the first scripts'."""
    model = AutoModel.from_pretrained(args.model_name_or_path, output_hidden_states=True, load_in_8bit=False).to(
        DEVICE
    )
    tokenizer = AutoTokenizer.from_pretrained(args.model_name_or_path)

    def batcher(params, batch, max_length=None):
        batch = tokenizer.batch_encode_plus(
            sentences_of(batch),
            return_tensors="pt",
            padding=True,
            max_length=max_length,
            truncation=max_length is not None,
        )
        for key in batch:
            batch[key] = batch[key].to(DEVICE) if batch[key] is not None else None
        with torch.no_grad():
            states = model(output_hidden_states=True, return_dict=True, **batch).hidden_states[-1]
        last = torch.eq(batch["input_ids"], model.config.pad_token_id).long().argmax(-1) - 1
        return states[torch.arange(states.shape[0], device=states.device), last].cpu()

    return batcher


BATCHERS = {
    "simcse": simcse,
    "diffcse": simcse,
    "esimcse": simcse,
    "esimcse-trainer": simcse,
    "promptbert": promptbert,
    "angle": angle,
    "angle-early": angle_early,
}


def main():
    args = arguments()
    of_angle = args.family.startswith("angle")
    if of_angle and args.mode == "dev":
        args.tasks = ["STSBenchmark-dev"]
    params = classifier_params(args.mode)
    if of_angle:
        params["batch_size"] = 16

    def prepare(params, samples):
        return

    batcher = BATCHERS[args.family](args)
    results = {}
    if args.family == "esimcse-trainer":
        results = senteval.engine.SE(params, batcher, prepare).eval(args.tasks)
    else:
        for task in args.tasks:
            se = senteval.engine.SE(params, batcher, prepare)
            results[task] = se.eval(task)

    numbers = {}
    print(f"------ {args.mode} ------")
    if args.mode == "dev":
        for task in ["STSBenchmark-dev"] if of_angle else ["STSBenchmark", "SICKRelatedness"]:
            if task in results:
                numbers[task] = results[task]["dev"]["spearman"][0] * 100
        for task in TRANSFER:
            if task in results:
                numbers[task] = results[task]["devacc"]
    else:
        for task in STS:
            if task in results and task.startswith("STS1"):
                numbers[task] = results[task]["all"]["spearman"]["all"] * 100
            elif task in results:
                numbers[task] = results[task]["test"]["spearman"].correlation * 100
        for task in TRANSFER:
            if task in results:
                numbers[task] = results[task]["acc"]

    rounded = {task: round(score, DIGITS) for task, score in numbers.items()}
    Path("numbers.json").write_text(json.dumps(rounded), encoding="utf-8")


if __name__ == "__main__":
    main()
