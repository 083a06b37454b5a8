#!/usr/bin/env bash
# Puts what a bare GPU machine lacks into .gpu/, where git leaves it alone: wheels, and the embedder without its weights.
#
#   bash tests/gpu/carry.sh [PYTHON]           e.g. 3.12, the version of Python there [default: 3.12]
#
# The machine has torch, transformers, sentence-transformers, pytest and hypothesis. Take .gpu/ along, and there:
#
#   python3 -m pip install -q --no-index --no-deps --target /tmp/site .gpu/wheels/*.whl
#   PYTHONPATH=/tmp/site python3 tests/benchmarks/on_gpu.py --out language-gpu.md
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
source "$root/examples/venv.sh"
trecexam_venv offline,test
cd "$root"
rm -rf .gpu
mkdir -p .gpu/wheels
platforms=()
for platform in manylinux_2_{34,31,28,27,24,17}_x86_64 manylinux2014_x86_64 manylinux1_x86_64; do
  platforms+=(--platform "$platform")
done
# In the versions that are installed here.
needed=(annotated-types ir-measures json-repair nltk orjson pydantic pydantic-core pyndeval pytrec-eval-terrier rapidfuzz
  sentencex typing-inspection watchdog wcwidth)
.venv/bin/python - "${needed[@]}" <<'PYTHON' >.gpu/needed.txt
import sys
from importlib.metadata import version

print("\n".join(f"{name}=={version(name)}" for name in sys.argv[1:]))
PYTHON
.venv/bin/python -m pip download --quiet --no-deps --only-binary=:all: --python-version "${1:-3.12}" --implementation cp \
  "${platforms[@]}" --dest .gpu/wheels --requirement .gpu/needed.txt
embedder=$(.venv/bin/python -c "from trecexam.graders.weights import offline_folder; print(offline_folder() or '')")
if [ -n "$embedder" ]; then
  # 90 MB of weights do not travel: speed hangs on no weight.
  cp -r "$embedder" .gpu/embedder
  rm -f .gpu/embedder/*.safetensors .gpu/embedder/*.md
fi
du -sh .gpu
