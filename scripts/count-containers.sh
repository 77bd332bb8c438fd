#!/bin/sh
# Runs a command, counts the containers that the engine makes meanwhile, and fails above a bound. Containers
# of others on the same engine count too.
#
#   sh scripts/count-containers.sh BOUND COMMAND...
set -eu
bound=$1
shift
made=$(mktemp)
docker events --filter type=container --filter event=create --format '{{.ID}}' >"$made" &
events=$!
trap 'kill "$events" 2>/dev/null || true; rm -f "$made"' EXIT
trap 'exit 130' INT TERM
"$@"
count=$(wc -l <"$made")
echo "the engine made $count containers, at most $bound may be"
if [ "$count" -gt "$bound" ]; then
	echo "show on the fake engine what no sandbox is needed for (runtime/enginetest), or raise CONTAINERS in the Makefile" >&2
	exit 1
fi
