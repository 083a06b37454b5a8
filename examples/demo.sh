#!/usr/bin/env bash
# The whole line on the demo track, from a checkout: installs trecexam, grades here, prints the leaderboard.
#
#   bash examples/demo.sh [WORK_FOLDER]        default: a new folder under the system's temporary one
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
source "$here/venv.sh"
trecexam_venv offline
"$here/../.venv/bin/trecexam" demo --grade "${1:-$(mktemp -d "${TMPDIR:-/tmp}/trecexam-demo.XXXXXX")}"
