#!/bin/sh
# Proves that the tests left nothing on the engine: no container, volume or network
# of AOD's or of a test's. What the engine is about to remove has half a minute for it.
set -eu
found() {
	for label in aod.run aod.test; do
		docker ps -aq --filter "label=$label"
		docker volume ls -q --filter "label=$label"
		docker network ls -q --filter "label=$label"
	done
}
for _ in $(seq 30); do
	left=$(found)
	if [ -z "$left" ]; then
		echo "nothing was left behind"
		exit
	fi
	sleep 1
done
echo "left behind:" $left >&2
exit 1
