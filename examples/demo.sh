#!/usr/bin/env bash
# The whole line on the small track beside this script: installs trecexam, grades, prints the leaderboard.
#
#   bash examples/demo.sh [WORK_FOLDER]        default: a new folder under the system's temporary one
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
source "$here/venv.sh"
trecexam_venv offline
trecexam="$here/../.venv/bin/trecexam"

work=${1:-$(mktemp -d "${TMPDIR:-/tmp}/trecexam-demo.XXXXXX")}
mkdir -p "$work"
cp -R "$here/track/." "$work"

"$trecexam" watch "$work" --once
echo
"$trecexam" leaderboard "$work" -m 'P(rel=4)@10' -m nDCG@10 -m 'Cover(rel=4)@10'
echo
echo "outputs:      $work/out"
echo "for trec_eval: trec_eval -c -m all_trec $work/out/rubric.qrels $work/runs/dense.run"
echo "next:         $(cd "$here/.." && pwd)/.venv/bin/trecexam watch $work    and drop runs into $work/runs"
