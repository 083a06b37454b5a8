"""Language models in this process: `seq2seq` (FLAN-T5 and similar), `causal` (decoder-only); writers."""

from __future__ import annotations

from trecexam.extension import Extension

EXTENSION = Extension(
    "local_models",
    graders={"seq2seq": f"{__name__}.seq2seq:FACTORY", "causal": f"{__name__}.causal:FACTORY"},
    bank_commands={"seq2seq": "bank generate", "causal": "bank generate"},
    services={"models": f"{__name__}.writer:MODELS"},
)
