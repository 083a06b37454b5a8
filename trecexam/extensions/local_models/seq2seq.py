"""The `seq2seq` grader: FLAN-T5 and similar models, on transformers' T5 classes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from trecexam.errors import GraderError
from trecexam.extensions.local_models import loading
from trecexam.extensions.local_models.backend import Job
from trecexam.extensions.local_models.grader import local_factory
from trecexam.extensions.local_models.local import LocalModel

if TYPE_CHECKING:
    from torch import Tensor

    from trecexam.extensions.local_models.choices import ChoiceTree
    from trecexam.extensions.local_models.t5 import T5Scorer

#: The model of the Rubric and EXAM papers.
FLAN_T5_LARGE = "google/flan-t5-large"
#: Tolerance, in nats, for differences from transformers' log-probabilities.
TOLERANCE = 1e-3
#: Default maximum tokens of a prompt: T5's training length.
T5_LENGTH = 512
#: Lengths of batches on a GPU are multiples of this number.
STEP = 8


class Seq2SeqBackend(LocalModel):
    """A T5 model, loaded when first used."""

    name = "seq2seq"
    auto_class = "AutoModelForSeq2SeqLM"
    default_model = FLAN_T5_LARGE

    @cached_property
    def model(self) -> Any:
        from trecexam.extensions.local_models.t5 import SUPPORTED

        model = super().model
        architecture = type(model).__name__
        if architecture not in SUPPORTED:
            raise GraderError(
                f"the `seq2seq` grader runs {' and '.join(SUPPORTED)}; this model is a {architecture}",
                path=self.folder,
            )
        return model

    @cached_property
    def scorer(self) -> T5Scorer:
        from trecexam.extensions.local_models.t5 import T5Scorer, difference

        with loading.out_of_memory():
            off = difference(self.model)
            scorer = T5Scorer(self.model)
        if not off <= TOLERANCE:
            raise GraderError(
                "the installed transformers computes this model differently from trecexam "
                f"(by {off:.2g} nats): "
                'set `decode = "beam"` in [grader], which uses transformers alone, and please report it',
                path=self.folder,
            )
        return scorer

    def length_limit(self, new_tokens: int) -> int:
        limits = loading.written_limit(self.folder), loading.written_config(self.folder).get("n_positions")
        written_limits = [limit for limit in limits if isinstance(limit, int) and limit < loading.NO_LIMIT]
        return max(written_limits, default=T5_LENGTH)

    def log_probabilities(self, jobs: Sequence[Job[Any]], tree: ChoiceTree, max_tokens: int) -> Tensor:
        tokens, mask = self.padded([job.tokens for job in jobs])
        return self.scorer.log_probabilities(tokens, mask, tree)

    def width(self, length: int) -> int:
        # The attention kernel's bias needs it.
        return -(-length // STEP) * STEP if self.device.startswith("cuda") else length


FACTORY = local_factory(
    Seq2SeqBackend, "FLAN-T5 and similar ones (T5, mT5): the published Rubric and EXAM graders"
)
