#!/bin/sh
# Measure talkfold beside its peers: sets up benchmarks/.venv once, then runs `python -m benchmarks` with the given
# arguments. Without arguments: every row, and docs/benchmarks.md is written.
set -eu
cd "$(dirname "$0")/.."
venv=benchmarks/.venv
stamp=$venv/installed

if ! cmp -s benchmarks/requirements.txt "$stamp"; then
    "${PYTHON:-python3}" -m venv "$venv"
    "$venv/bin/pip" install --quiet --disable-pip-version-check -e .
    # One by one: a peer that cannot be installed here is named on the page and does not stop the others.
    grep -v '^#' benchmarks/requirements.txt | while read -r requirement; do
        "$venv/bin/pip" install --quiet --disable-pip-version-check "$requirement" ||
            echo "not installed: $requirement" >&2
    done
    cp benchmarks/requirements.txt "$stamp"
fi

if [ $# -eq 0 ]; then
    set -- --write
fi
exec "$venv/bin/python" -m benchmarks "$@"
