"""What `load` chooses for you: the checkpoint of a published system, its template, prompt, pooling and length.

What neither you nor the checkpoint's files choose comes from the list of known checkpoints in `published`.
"""

from dataclasses import dataclass, replace
from pathlib import Path

from stsbench.base.errors import UserError
from stsbench.encoders.checkpoint import MINILM, PACKAGED, Checkpoint
from stsbench.encoders.poolers import AUTO, parse_pooling
from stsbench.encoders.prompts import own_prompt, prompts_as_texts
from stsbench.encoders.template import NO_TEMPLATE, Template, read_template
from stsbench.encoders.tokenizer import model_limit
from stsbench.encoders.transformer import TransformerSettings
from stsbench.encoders.use import FP32, PROMPTS, USUAL, Use, option_of
from stsbench.published.catalogue import (
    checkpoint_named_like,
    identified_checkpoint,
    known_checkpoint,
    row,
    system,
)
from stsbench.published.schema import KnownCheckpoint


@dataclass(frozen=True)
class Resolved:
    """The model to load for a name, how to use it, and notes on both."""

    name: str
    use: Use
    notes: tuple[str, ...] = ()


def resolve(name: str, use: Use = USUAL) -> Resolved:
    """Finds the checkpoint of a published system; a known Hub name stands for itself, used as published.

    A folder or file of that name takes precedence, then the packaged model; other names are returned unchanged.

    >>> resolved = resolve("esimcse-bert-base")
    >>> resolved.name, resolved.use.pooling, resolved.use.max_length
    ('ffgcc/esimcse-bert-base-uncased', 'cls_before_pooler', 512)
    """
    if name == PACKAGED or ":" in name or Path(name).expanduser().exists():
        return Resolved(name, use)
    known, is_hub_name = known_checkpoint(name), "/" in name
    if is_hub_name and (known is None or known.hub.casefold() != name.casefold()):
        return Resolved(name, use)
    if known is None or not known.hub:
        try:
            published = known.system if known else system(name).name
        except UserError:  # not a published system either
            return Resolved(name, use)
        raise UserError(
            f"{published} is a published system without a known checkpoint on the Hugging Face Hub. Give the "
            "folder of one."
        )
    # A template of the user's decides where it is read.
    as_published = use.pooling == AUTO and use.template in {None, NO_TEMPLATE}
    used = replace(
        use,
        pooling=known.pooling if as_published else use.pooling,
        max_length=known.max_length if use.max_length is None else use.max_length,
    )
    if is_hub_name:
        note = f"pooling {known.pooling} was chosen for {known.hub} (unverified). {known.note}".rstrip()
        is_unsure = use.pooling == AUTO and "pooling" in known.unverified
        return Resolved(name, used, (note,) if is_unsure else ())
    # By its short name, the packaged copy is found too.
    return Resolved(PACKAGED if known.hub == MINILM else known.hub, used, _introduction(known, use.pooling))


def _introduction(known: KnownCheckpoint, pooling: str) -> tuple[str, ...]:
    """Returns notes on a known checkpoint: its name on the Hub, its pooling, and the scores to expect."""
    note = f"{known.name} is {known.hub} ({known.hub_source}), pooling {known.pooling} ({known.pooling_source})"
    if pooling not in {AUTO, known.pooling}:
        note += f"; with pooling {pooling} instead, other scores are to be expected"
    notes = [f"{note}."]
    for name in known.expected:
        averages = [cell for cell in row(name).cells if cell.setting.task.startswith("Avg.")]
        scores = ", ".join([name, *(f"{cell.column} {cell.printed}" for cell in averages)])
        notes.append(f"{known.name} is expected to score as {scores}.")
    return (*notes, *([f"{known.name}: {known.note}"] if known.note else []))


class Choices:
    """Makes the open choices of a use for one checkpoint.

    Attributes:
        notes: on choices made for the user, and on mismatches.
    """

    def __init__(self, checkpoint: Checkpoint) -> None:
        self.notes: list[str] = []
        self._checkpoint, self._name = checkpoint, checkpoint.name
        self._known = checkpoint_named_like(self._name)
        # Otherwise only a folder's name is alike.
        self._is_certain = identified_checkpoint(self._name) is not None

    def texts(self, use: Use) -> Use:
        """Returns a use with the template, and the texts of prompts in place of their names."""
        use, notes = prompts_as_texts(self._checkpoint, replace(use, template=self._template(use)))
        self.notes += notes
        return use

    def settings(self, use: Use, saved: TransformerSettings | None) -> TransformerSettings:
        """Returns how a checkpoint that is read natively is used.

        Args:
            use: with the prompts' texts.
            saved: the checkpoint's own settings, None if they are not all read natively.
        """
        template = use.own_template
        own = saved or TransformerSettings(Use(max_length=model_limit(self._checkpoint)))
        if template is None:
            pooling = self._pooling(use.pooling, saved.use.pooling if saved else None)
        else:
            pooling = self._pooling_in(template, use.pooling)
        if saved is None and self._checkpoint.modules():
            self.notes.append(
                f"{self._name} has modules that are not read natively: --pooling {pooling} leaves them out."
            )
        length = own.use.max_length if use.max_length is None else use.max_length
        use = replace(use, pooling=pooling, max_length=length, prompt=self._prompt(use))
        if template is not None and template.precision and use.computed_in == FP32:
            use = replace(use, precision=template.precision)
            self.notes.append(f"template {template.name} uses {template.precision}.")
        return replace(own, use=use)

    def _template(self, use: Use) -> Template | None:
        if use.template == NO_TEMPLATE:
            return None
        if use.template is not None:
            template = read_template(use.template)
            if given := [option_of(field) for field in PROMPTS if getattr(use, field)]:
                raise UserError(
                    f"{given[0]} and --template both set the text before a sentence. Write the prompt into the "
                    "template."
                )
            return template
        known = self._known
        if known is None or not known.template or any(getattr(use, field) is not None for field in PROMPTS):
            return None
        self._note_likeness(f"template {known.template}", "--template", known)
        return read_template(known.template)

    def _prompt(self, use: Use) -> str:
        known, own = self._known, own_prompt(self._checkpoint)
        prompt = own if use.prompt is None else use.prompt
        if use.own_template is not None:
            if prompt:
                self.notes.append(
                    f"{self._name}: template {use.own_template.name} replaces the checkpoint's prompt {prompt!r}."
                )
            return ""
        if use.prompt is not None or own or known is None or not known.prompt:
            return prompt
        if self._is_certain:
            self.notes.append(f"{self._name}: {known.prompt!r} is put before every sentence ({known.usage}).")
        self._note_likeness(f"prompt {known.prompt!r}", "--prompt", known)
        return known.prompt

    def _pooling(self, asked: str, configured: str | None) -> str:
        """Returns the user's pooling, or else that of the checkpoint's configuration or of its paper."""
        known = self._known
        expected = configured or (known.pooling if known else None)
        if asked != AUTO:
            if parse_pooling(asked, also=(AUTO,)).is_of_template:
                raise UserError(
                    f"pooling {asked} is read in a template. Add --template, or choose another pooling."
                )
            if expected not in {None, asked}:
                source = f"its paper: {known.usage}" if known and not configured else "its own configuration"
                self.notes.append(f"pooling {asked} differs from {expected} for {self._name} ({source}).")
            return asked
        if expected is not None:
            if known and not configured:
                self._note_likeness(f"pooling {expected}", "--pooling", known)
            return expected
        architectures = self._checkpoint.json("config.json").get("architectures") or ()
        if any(str(name).endswith("ForCL") for name in architectures):
            self.notes.append(
                f"{self._name} is a SimCSE training checkpoint: pooling cls_before_pooler was chosen, as for "
                "unsupervised models. For a supervised one use --pooling cls."
            )
            return "cls_before_pooler"
        self.notes.append(
            f"{self._name} does not state its pooling: avg was chosen. Set --pooling if its paper used another."
        )
        return "avg"

    def _pooling_in(self, template: Template, asked: str) -> str:
        """Returns the user's pooling, or else that of the template."""
        if template.note:
            self.notes.append(f"template {template.name}: {template.note}")
        if asked in {AUTO, template.reading}:
            return template.reading
        parse_pooling(asked, also=(AUTO,))
        self.notes.append(
            f"pooling {asked} differs from {template.reading}, where template {template.name} is read."
        )
        return asked

    def _note_likeness(self, choice: str, option: str, known: KnownCheckpoint) -> None:
        if not self._is_certain:
            self.notes.append(
                f"{choice} was chosen because {self._name} is named like {known.hub}. Set {option} if it is "
                "another model."
            )
