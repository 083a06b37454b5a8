#!/usr/bin/env bash
# Makes .venv where there is none, installs what the tests need (Chromium too, where it may), runs ruff, mypy and pytest.
#
#   bash tests/run.sh                       what must hold at every commit
#   bash tests/run.sh --all                 everything: browsers, Ray, executed pages, wheel, sdist, site, notebook, kills at
#                                           every step, Hypothesis thorough; once more without data from outside, and the
#                                           numeric tests once more as an older processor
#   bash tests/run.sh PYTEST ARGUMENTS      e.g. bash tests/run.sh tests/scores -k cover
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
source "$root/examples/venv.sh"
trecexam_venv offline,test
cd "$root"
# As in the whole run, where two processes of two threads each are in each other's way, many times over.
export OMP_NUM_THREADS=1
# Each of some hundred processes would compile the program anew, and pytest all tests.
unset PYTHONDONTWRITEBYTECODE
status=0
# An update of a track waits for the disk some forty times; where there is room, temporary files are in memory.
if [ -z "${TMPDIR-}" ] && [ -w /dev/shm ] && [ "$(df --output=avail -k /dev/shm | tail -1)" -gt 4000000 ]; then
  TMPDIR=$(mktemp -d /dev/shm/t.XXXX)
  export TMPDIR
  trap 'rm -rf "$TMPDIR"' EXIT
fi

# Says how long a step takes, and goes on where it fails.
step() {
  local began=$SECONDS title="$1"
  shift
  "$@" || status=$?
  echo "$title: $((SECONDS - began)) s" >&2
}

style() {
  .venv/bin/ruff check . && .venv/bin/ruff format --check .
}

# Each process collects all tests and imports torch, so there are no more than cores.
pytest_by_files() {
  .venv/bin/python -m pytest --numprocesses 2 --dist loadscope --no-loadscope-reorder --durations 25 --durations-min 2 "$@"
}

# Nobody who clones the repository has the data next to it: the tests that read it pass without, too.
without_outside() {
  local alone result=0
  alone=$(mktemp -d)
  mkdir "$alone/trecexam"
  git ls-files -z --cached --others --exclude-standard | tar --null --ignore-failed-read -cf - -T - | tar -xf - -C "$alone/trecexam"
  (
    cd "$alone/trecexam"
    { grep -rlE --include='test_*.py' '^(from outside import|import outside)|\b(dl19|trec_eval): ' tests; ls tests/dl19/test_*.py; } |
      sort -u | PYTHONPATH=$PWD xargs "$root/.venv/bin/python" -m pytest --quiet --numprocesses 2 --dist loadscope --no-loadscope-reorder \
      -m "not slow and not browser and not ray and not gpu"
  ) || result=$?
  rm -rf "$alone"
  return "$result"
}

# Where floats come from BLAS, torch, scipy or scikit-learn: no test may know their last digits.
NUMERIC=(tests/outputs/test_golden.py tests/frozen tests/dl19 tests/properties/test_scores.py
  tests/scores/{rank_correlation,test_correlation.py,test_encoder_likeness.py,test_expected.py,test_interval_coverage.py}
  tests/scores/{test_kappa.py,test_leaderboard.py,test_paired_tests.py,test_top_and_symmetric.py}
  tests/graders/{test_embedding.py,test_graders.py}
  tests/features/{agreement/test_arithmetic.py,fill/test_rules.py,leaderboard/test_differences.py,verification/test_arithmetic.py}
  tests/extensions/{audit,exams/irt,learn/arithmetic,learn/test_command.py,simulation}
  tests/extensions/local_models/{test_grading.py,test_lists.py,test_scores.py})

as_older_processor() {
  if ! grep -qw avx2 /proc/cpuinfo 2>/dev/null; then
    echo "this processor has no AVX2: it is not made to look older" >&2
    return 0
  fi
  bash tests/older_processor.sh .venv/bin/python -m pytest --quiet --numprocesses 2 --dist loadscope --no-loadscope-reorder \
    -m "not slow and not browser and not ray and not gpu" "${NUMERIC[@]}"
}

# The page's tests drive a real browser, and a real nginx; without one they say so and are skipped.
browser_and_nginx() {
  command -v apt-get >/dev/null && [ "$(id -u)" = 0 ] || return 0
  if ! command -v chromium >/dev/null; then
    echo "installing chromium" >&2
    { apt-get update && apt-get install --yes --no-install-recommends chromium fonts-dejavu-core fonts-noto-color-emoji; } \
      >/dev/null || echo "chromium could not be installed" >&2
  fi
  # Where a machine would start it as a service, that is left to its owner.
  if ! { command -v nginx || [ -x /usr/sbin/nginx ] || [ -d /run/systemd/system ]; } >/dev/null; then
    echo "installing nginx" >&2
    { apt-get update && apt-get install --yes --no-install-recommends nginx-light; } >/dev/null || echo "nginx could not be installed" >&2
  fi
}

case "${1-}" in
  "")
    step ruff style
    step mypy .venv/bin/mypy
    step tests pytest_by_files -m "not slow and not browser and not ray and not gpu"
    ;;
  --all)
    shift
    browser_and_nginx
    step ruff style
    step mypy .venv/bin/mypy
    HYPOTHESIS_PROFILE=thorough step tests pytest_by_files "$@"
    step "tests that read data outside the repository, where there is none" without_outside
    step "numeric tests as an older processor" as_older_processor
    ;;
  *)
    # A few tests run in this process, where they can be debugged, and alone, so that they can be timed.
    browser_and_nginx
    style
    .venv/bin/mypy
    .venv/bin/python -m pytest "$@" || status=$?
    ;;
esac
exit "$status"
