#!/usr/bin/env bash
# Makes .venv where there is none, installs what the tests need, runs ruff, mypy and pytest.
#
#   bash tests/run.sh [PYTEST ARGUMENTS]       e.g. bash tests/run.sh tests/scores -k cover
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
source "$root/examples/venv.sh"
trecexam_venv offline,test
cd "$root"
.venv/bin/ruff check .
.venv/bin/ruff format --check .
.venv/bin/mypy
# All of them on two cores; a few in this process, where they can be debugged.
[ $# -gt 0 ] || set -- --numprocesses 2 --dist loadscope --no-loadscope-reorder
exec .venv/bin/python -m pytest "$@"
