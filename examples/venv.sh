# Sourced by demo.sh and tests/run.sh: makes .venv in the checkout and installs trecexam with extras.
#
#   trecexam_venv EXTRAS      e.g. trecexam_venv offline   or   trecexam_venv offline,test
#
# Does nothing where the same extras of the same pyproject.toml are installed already.

trecexam_venv() {
  local root extras="$1" python stamp want
  root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
  if [ ! -x "$root/.venv/bin/python" ]; then
    python=${PYTHON:-}
    for candidate in $python python3 python3.13 python3.12 python3.11; do
      if "$candidate" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' 2>/dev/null; then
        python=$candidate
        break
      fi
      python=
    done
    if [ -z "$python" ]; then
      echo "no Python 3.11, 3.12 or 3.13 found; install one, or name it: PYTHON=/path/to/python bash $0" >&2
      return 1
    fi
    echo "making $root/.venv with $("$python" --version)" >&2
    "$python" -m venv "$root/.venv" || return 1
  fi
  stamp="$root/.venv/.trecexam-installed"
  want="$extras $root $(cat "$root/pyproject.toml" "$root/tests/constraints.txt" | cksum)"
  if ! grep -qxF "$want" "$stamp" 2>/dev/null; then
    echo "installing trecexam[$extras] into $root/.venv (a few minutes the first time)" >&2
    "$root/.venv/bin/python" -m pip install --quiet --disable-pip-version-check \
      --constraint "$root/tests/constraints.txt" --editable "$root[$extras]" || return 1
    echo "$want" >> "$stamp"
  fi
}
