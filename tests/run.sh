#!/usr/bin/env bash
# Makes .venv where there is none, installs what the tests need (Chromium too, where it may), runs ruff, mypy and pytest.
#
#   bash tests/run.sh [PYTEST ARGUMENTS]       e.g. bash tests/run.sh tests/scores -k cover
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
source "$root/examples/venv.sh"
trecexam_venv offline,test
cd "$root"
# The page's tests drive a real browser; without one they say so and are skipped.
if ! command -v chromium >/dev/null && command -v apt-get >/dev/null && [ "$(id -u)" = 0 ]; then
  echo "installing chromium" >&2
  { apt-get update && apt-get install --yes --no-install-recommends chromium fonts-dejavu-core fonts-noto-color-emoji; } \
    >/dev/null || echo "chromium could not be installed" >&2
fi
# So does a real nginx; where a machine would start it as a service, that is left to its owner.
if ! { command -v nginx || [ -x /usr/sbin/nginx ] || [ -d /run/systemd/system ]; } >/dev/null &&
  command -v apt-get >/dev/null && [ "$(id -u)" = 0 ]; then
  echo "installing nginx" >&2
  { apt-get update && apt-get install --yes --no-install-recommends nginx-light; } >/dev/null || echo "nginx could not be installed" >&2
fi
.venv/bin/ruff check .
.venv/bin/ruff format --check .
# As in the whole run, where two processes of two threads each are in each other's way, many times over.
export OMP_NUM_THREADS=1
# A few tests run in this process, where they can be debugged, and alone, so that they can be timed.
if [ $# != 0 ]; then
  .venv/bin/mypy
  exec .venv/bin/python -m pytest "$@"
fi
# mypy takes one core alone; what it has against us comes last, where it is seen.
types=$(mktemp)
.venv/bin/mypy >"$types" 2>&1 &
mypy=$!
# Each of some hundred processes would compile the program anew, and pytest all tests.
unset PYTHONDONTWRITEBYTECODE
status=0
# Three processes on two cores, for they wait for daemons, browsers and clusters.
.venv/bin/python -m pytest --numprocesses 3 --dist loadscope --no-loadscope-reorder || status=$?
# Nobody who clones the repository has the data next to it: the tests that read it pass without, too.
echo "tests that read data outside the repository, where there is none:" >&2
alone=$(mktemp -d)
mkdir "$alone/trecexam"
git ls-files -z --cached --others --exclude-standard | tar --null --ignore-failed-read -cf - -T - | tar -xf - -C "$alone/trecexam"
(
  cd "$alone/trecexam"
  grep -rlE --include='test_*.py' '^(from outside import|import outside)|\b(dl19|trec_eval): ' tests | PYTHONPATH=$PWD xargs \
    "$root/.venv/bin/python" -m pytest --quiet --numprocesses 2 --dist loadscope --no-loadscope-reorder
) || status=$?
rm -rf "$alone"
wait "$mypy" || { status=$? && cat "$types"; }
rm "$types"
exit "$status"
