#!/usr/bin/env bash
# Runs a command as on an older processor, whose sums are rounded otherwise: AVX2 for BLAS, no vector instructions elsewhere.
#
#   bash tests/older_processor.sh bash tests/run.sh tests/scores tests/frozen
#
# What each setting does, as seen on an AMD EPYC with AVX-512 (numpy 2.4, scipy with OpenBLAS 0.3.31, torch 2.13):
#   ATEN_CPU_CAPABILITY        torch.backends.cpu.get_cpu_capability() is DEFAULT, not AVX512; products and exp differ
#   ONEDNN_MAX_CPU_ISA         ONEDNN_VERBOSE=1 says "isa:Intel AVX2", not AVX-512; GELU and bfloat16 products differ
#   OPENBLAS_CORETYPE          threadpoolctl says Haswell, not SkylakeX, of numpy's and scipy's OpenBLAS
#   NPY_DISABLE_CPU_FEATURES   numpy's __cpu_features__ has none of its dispatched ones
#   MKL_ENABLE_INSTRUCTIONS    no effect here: MKL of torch takes the same instructions on every AMD; it counts on Intel
set -euo pipefail

python="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)/.venv/bin/python"
# Of features that the machine lacks numpy warns, and warnings are errors in tests.
dispatched='from numpy._core import _multiarray_umath as m; print(*(f for f in m.__cpu_dispatch__ if m.__cpu_features__[f]))'
NPY_DISABLE_CPU_FEATURES=$("$python" -c "$dispatched")
export NPY_DISABLE_CPU_FEATURES
export ATEN_CPU_CAPABILITY=default MKL_ENABLE_INSTRUCTIONS=AVX2 ONEDNN_MAX_CPU_ISA=AVX2 OPENBLAS_CORETYPE=Haswell
exec "$@"
