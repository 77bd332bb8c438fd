#!/bin/sh
# Proves that the tests left nothing on the engine: no container, volume or network
# of AOD's or of a test's.
set -eu
left=0
for label in aod.run aod.test; do
	found=$(
		docker ps -aq --filter "label=$label"
		docker volume ls -q --filter "label=$label"
		docker network ls -q --filter "label=$label"
	)
	if [ -n "$found" ]; then
		echo "left behind with the label $label:" $found >&2
		left=1
	fi
done
[ "$left" = 0 ] && echo "nothing was left behind"
exit "$left"
