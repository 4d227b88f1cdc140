"""The two towers that are trained, for sound and for text, with one scale between their cosines and the losses."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from torch import Tensor, nn

from audio_compositionality.encoders.loading.names import hub_id_of, list_models, split_twin
from audio_compositionality.encoders.loading.twins import Twin
from audio_compositionality.support.discovery import Registry
from audio_compositionality.support.files import permit_as_new
from audio_compositionality.support.text import listed, nearest

from .batches import Tokeniser, Tokens
from .features import ClapFrontEnd, ClipFrontEnd
from .settings import FRESH, TINY, TrainingError, is_fresh

if TYPE_CHECKING:
    from transformers import ClapFeatureExtractor, PreTrainedModel

    from audio_compositionality.encoders.base import Model
    from audio_compositionality.encoders.loading.checkpoints import Checkpoint

MAX_SCALE = 100.0
"""The largest scale of cosines (Radford et al., 2021, arXiv 2103.00020, section 2.5)."""


class TwoTowers(nn.Module):
    """The two towers that the loop trains, with any networks.

    Always in evaluation mode: batch norms stay unchanged, and there is no dropout. So a clip's embedding does not
    depend on other clips, and chunks, batches and processes of any size give the same gradients.

    Attributes:
        model: the networks that are trained.
        tokenizer: tokenizer of the text tower, from transformers.
        extractor: front end of the audio tower; None if features are made in another way.
        tokeniser: makes batches by the tokenizer.
        needs_norm: whether `measure_norm` has to be called once, before the first step.
    """

    SCALE: ClassVar = "logit_scale"
    """Name of the weight whose exponential is the scale."""

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: Any,
        positions: int,
        *,
        extractor: ClapFeatureExtractor | None = None,
        fresh: bool,
    ) -> None:
        """Set the model; all of its weights are trained unless `choose` is called.

        Args:
            model: model with its weights.
            tokenizer: its tokenizer.
            positions: number of positions of its text tower.
            extractor: its front end.
            fresh: whether its weights are untrained.
        """
        super().__init__()
        self.model: Any = model
        self.tokenizer, self.extractor = tokenizer, extractor
        self.tokeniser = Tokeniser(tokenizer, positions)
        self.needs_norm = fresh
        self.model.requires_grad_(requires_grad=True)
        self.train(mode=False)

    @abstractmethod
    def open_encoder(self) -> Model:
        """Return the current model with copies of the weights, as `load_model` would, on the same device."""

    def embed_audio(self, features: Tensor) -> Tensor:
        """Embed clips: [B, D], of unit length, from their features [B, ...]."""
        embeddings: Tensor = self.model.embed_audio(features)
        return embeddings

    def embed_text(self, tokens: Tokens) -> Tensor:
        """Embed texts: [M, D], of unit length."""
        embeddings: Tensor = self.model.embed_text(tokens.ids, tokens.mask)
        return embeddings

    def scale(self) -> Tensor:
        """The scale of cosines, a scalar."""
        scale: Tensor = self.model.get_parameter(self.SCALE).exp()
        return scale

    @torch.no_grad()
    def limit_scale(self) -> None:
        """Reduce the scale to `MAX_SCALE` if a step has raised it above."""
        self.model.get_parameter(self.SCALE).clamp_(max=math.log(MAX_SCALE))

    def save(self, folder: Path) -> None:
        """Write a folder that `load_model` opens, with front end and tokenizer."""
        from audio_compositionality.encoders.loading.checkpoints import quiet

        folder.mkdir(parents=True, exist_ok=True)
        with quiet(folder):
            for part in (self.model, self.extractor, self.tokenizer):
                if part is not None:
                    part.save_pretrained(folder)
        for path in filter(Path.is_file, list(folder.rglob("*"))):
            permit_as_new(path)

    def checkpoint(self) -> Checkpoint:
        """Return the model as a checkpoint, for `open_encoder`."""
        from audio_compositionality.encoders.loading.checkpoints import Checkpoint

        built = (self.model, self.extractor, self.tokenizer)
        return Checkpoint("training", "", "now", self.model.config, paradigm="audio–text contrastive", built=built)

    def choose(self, trained: str) -> None:
        """Set which weights are trained.

        Args:
            trained: one of `settings.TRAINED`.

        Raises:
            TrainingError: this model has no such part.
        """
        if trained != "all":
            raise TrainingError(
                f"train is {trained!r}, but all weights of this model are trained: parts can be chosen for a CLAP in "
                "transformers' format"
            )

    def open_front_end(self) -> ClipFrontEnd:
        """Return the front end that makes features of clips.

        Raises:
            TrainingError: these towers' features are made in another way.
        """
        if self.extractor is None:
            raise TrainingError(f"{type(self).__name__} has no front end of its own: give features")
        return ClapFrontEnd(self.extractor, "training")

    def measure_norm(self, features: Iterable[Tensor]) -> None:
        """Measure the statistics of features of clips, for a norm with fresh weights.

        Args:
            features: batches [n, ...].

        Raises:
            TrainingError: there are no clips.
        """
        batches = list(features)
        if not batches:
            raise TrainingError("there are no clips to measure the norm of fresh weights on")
        self._measure(torch.cat(batches).cpu())

    @abstractmethod
    def _measure(self, features: Tensor) -> None:
        """Set the norm from features [n, ...]."""

    @property
    def pad_token(self) -> int:
        """Number of the padding token."""
        return self.tokeniser.pad

    @property
    def device(self) -> torch.device:
        """Device of the weights."""
        return next(self.parameters()).device

    def named_trained(self) -> Iterator[tuple[str, nn.Parameter]]:
        """Yield the trained weights with their names."""
        return ((name, weight) for name, weight in self.named_parameters() if weight.requires_grad)

    def train(self, mode: bool = True) -> TwoTowers:
        """Stay in evaluation mode; see the class."""
        super().train(mode=False)
        return self


@dataclass(frozen=True)
class TowersFamily:
    """A kind of towers: a module of `towers` declares it as ``TOWERS``.

    Attributes:
        model_type: model type of its checkpoints' configurations.
        name: name of its fresh weights as a start, one of `settings.FRESH`.
        make_fresh: returns towers with fresh weights of a seed.
        open: returns the towers of a checkpoint; its second argument is whether the weights are fresh.
    """

    model_type: str
    name: str
    make_fresh: Callable[[int], TwoTowers]
    open: Callable[[Checkpoint, bool], TwoTowers]


@cache
def _families() -> Registry[TowersFamily]:
    package = f"{__name__.rpartition('.')[0]}.towers"
    return Registry(package, "TOWERS", "audio_compositionality.towers", lambda family: family.model_type)


def open_towers(init: str, *, train: str = "all", seed: int = 0) -> TwoTowers:
    """Return the initial model of a training, on the CPU.

    Args:
        init: one of `settings.FRESH`; a folder, a Hub id or a listed name, whose weights are read from safetensors and
            whose code is not run; or one of these with the prefix ``untrained:``, its configuration with fresh weights.
        train: weights that are trained, one of `settings.TRAINED`.
        seed: seed of fresh weights.

    Raises:
        TrainingError: there is no such model, its kind cannot be trained here, or it has no such weights.
        ModelError: its files cannot be downloaded or are incomplete.
    """
    families = _families().all()
    fresh = {family.name: family for family in families.values()}
    if init in fresh:
        towers = fresh[init].make_fresh(seed)
    else:
        from audio_compositionality.encoders.loading.checkpoints import open_checkpoint

        kind, name = split_twin(init)
        checkpoint = open_checkpoint(_source(init, name), twin=None if kind is None else Twin(kind, seed))
        model_type = checkpoint.config.model_type
        if model_type not in families:
            raise TrainingError(
                f"'{init}' is of the model type '{model_type}', but only these types can be trained: "
                f"{listed(list(families))}; pass a folder or Hub id of one, or {TINY}"
            )
        towers = families[model_type].open(checkpoint, is_fresh(init))
    towers.choose(train)
    return towers


def _source(init: str, name: str) -> Path | str:
    folder = Path(name).expanduser()
    if name and folder.is_dir():
        if not (folder / "config.json").is_file():
            raise TrainingError(f"the folder '{name}' holds no config.json, so there is no model in it")
        return folder
    repository = hub_id_of(name)
    if repository is None or (repository == name and name.count("/") != 1):
        listed_names = (listing.name for listing in list_models() if listing.embeds_text)
        names = dict.fromkeys([*FRESH, *(one for one in listed_names if hub_id_of(one) is not None)])
        raise TrainingError(f"there is no model '{init}': no folder, no Hub id; {nearest(name, names)}")
    return repository
