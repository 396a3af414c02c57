"""A Transformers model that another program computes: called as the model itself is, with the same states back.

Pooling, heads and tail stay torch's, and so do tokeniser and planner: a back end replaces the layers alone. All
hidden states are outputs, whatever is read of them, so that a vector does not depend on which poolings were asked
for beside it.
"""

import hashlib
import io
import json
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, replace
from importlib.metadata import version
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from stsbench.base.errors import UserError
from stsbench.base.files import atomic_folder, cache_dir
from stsbench.encoders.backends.program import Compute
from stsbench.encoders.checkpoint import quiet_transformers
from stsbench.encoders.network import Network
from stsbench.encoders.protocol import TokenSequence

if TYPE_CHECKING:
    from torch import Tensor, nn


@dataclass(frozen=True)
class CompiledModel:
    """What stands in a `Network` in place of the torch model.

    Attributes:
        name: the checkpoint's, for messages.
        compute: the compiled layers.
        known_tokens: how many the model has embeddings of.
        config: the torch model's.
        pooler: the torch model's; None for one without.
    """

    name: str
    compute: Compute
    known_tokens: int
    config: Any = None
    pooler: "Callable[[Tensor], Tensor] | None" = None

    def __call__(
        self, input_ids: "Tensor", attention_mask: "Tensor | None" = None, **others: Any
    ) -> SimpleNamespace:
        """Return the states as Transformers names them.

        Raises:
            UserError: if the model is asked with more than ids and mask, which the compiled one does not read.
        """
        import torch

        if more := sorted(name for name, value in others.items() if isinstance(value, torch.Tensor)):
            raise UserError(
                f"{self.name}: {', '.join(more)} cannot be given to another back end: leave out --backend."
            )
        mask = torch.ones_like(input_ids) if attention_mask is None else attention_mask
        states = tuple(torch.from_numpy(state) for state in self.compute(input_ids.numpy(), mask.numpy()))
        pooled = None if self.pooler is None else self.pooler(states[-1])
        return SimpleNamespace(last_hidden_state=states[-1], hidden_states=states, pooler_output=pooled)

    def forward(self, input_ids: "Tensor", attention_mask: "Tensor | None" = None) -> SimpleNamespace:
        """Return the states; here for its parameters, by which a network sees that it cannot be told positions."""
        return self(input_ids, attention_mask)

    def get_input_embeddings(self) -> SimpleNamespace:
        """Return how many tokens there are embeddings of, as Transformers does."""
        return SimpleNamespace(num_embeddings=self.known_tokens)


def compiled(
    network: Network,
    backend: str,
    precision: str,
    about: Sequence[str | None],
    *,
    samples: Sequence[TokenSequence] = (),
) -> Network:
    """Return a network whose layers a back end computes; what was compiled once is kept in the cache folder.

    Args:
        network: as torch loaded it, in fp32, on the CPU.
        backend: one of `BACKENDS`, which is installed.
        precision: one of those that the back end has.
        about: what the layers depend on: hashes of weights and configuration.
        samples: for int8: the token ids of the calibration sentences.

    Raises:
        UserError: if the back end cannot compile this model.
    """
    if backend == "openvino":
        from stsbench.encoders.backends import openvino as program
    else:
        from stsbench.encoders.backends import onnx as program  # type: ignore[no-redef]

    versions = [f"{package} {version(package)}" for package in program.PACKAGES]
    described = json.dumps([backend, precision, versions, list(about), list(samples)])
    folder = cache_dir() / "compiled" / hashlib.sha256(described.encode()).hexdigest()[:32]
    if not (folder / program.FILE).is_file():
        try:
            with atomic_folder(folder) as being_made, _quiet():
                program.export(_layers_of(network.model), being_made / program.FILE, precision, samples)
        except UserError:
            raise
        except Exception as error:  # whatever an exporter raises, it is about this architecture
            raise UserError(
                f"{backend} cannot compile {network.name} ({type(error).__name__}: {_first_line(error)}): "
                "leave out --backend."
            ) from error
    model = CompiledModel(
        name=network.name,
        compute=program.load(folder / program.FILE, precision),
        known_tokens=network.model.get_input_embeddings().num_embeddings,
        config=network.model.config,
        pooler=getattr(network.model, "pooler", None),
    )
    return replace(network, model=model)


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep exporters' remarks on how they read Python to themselves, and their progress off what programs read."""
    with warnings.catch_warnings(), redirect_stdout(io.StringIO()), quiet_transformers():
        warnings.simplefilter("ignore")
        yield


def _layers_of(model: Any) -> "nn.Module":
    """Return a module that gives plain tensors, as exporters want them."""
    from torch import nn

    class Layers(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, input_ids: "Tensor", attention_mask: "Tensor") -> "tuple[Tensor, ...]":
            states = self.model(
                input_ids=input_ids, attention_mask=attention_mask, output_hidden_states=True, return_dict=True
            )
            return tuple(states.hidden_states)

    return Layers().eval()


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or ["no reason given"])[0][:200]
