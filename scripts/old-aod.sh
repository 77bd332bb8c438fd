#!/bin/sh
# Builds aod as it was at a commit, of the history of this repository, unless it was built before.
# The program is bin/aod-COMMIT, whose name is printed.
set -eu
cd "$(dirname "$0")/.."
commit=$(git rev-parse --quiet --verify "$1^{commit}") || {
	echo "old-aod: commit $1 isn't in this copy's history: fetch it (git fetch --unshallow), or name another one: OLD=COMMIT" >&2
	exit 1
}
program=$(pwd)/bin/aod-$(git rev-parse --short "$commit")
if [ ! -x "$program" ]; then
	echo "building aod of $1 (a minute or two, once) ..." >&2
	tree=$(mktemp -d)
	trap 'rm -rf "$tree"' EXIT
	git archive "$commit" | tar -x -C "$tree"
	make --no-print-directory -C "$tree" build VERSION="$(git describe --tags --always "$commit")" >&2
	mkdir -p bin
	mv "$tree/bin/aod" "$program"
fi
echo "$program"
