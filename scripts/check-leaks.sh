#!/bin/sh
# Proves that the tests left nothing on the engine: no container, volume or network
# of AOD's or of a test's. What the engine is about to remove has half a minute for it.
# What is left is described, with its last lines: a container tells whose it was.
set -eu
labels='aod.run aod.test'
found() {
	for label in $labels; do
		docker ps -aq --filter "label=$label"
		docker volume ls -q --filter "label=$label"
		docker network ls -q --filter "label=$label"
	done | sort -u
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
for it in $left; do
	docker inspect --format '{{json .}}' "$it" | tr ',' '\n' | grep -E '"(Name|Status|Created|StartedAt|FinishedAt|ExitCode|Error|Image|aod\.[a-z.]*|Cmd)":' | sort -u >&2 || true
	docker logs --tail 20 "$it" >&2 2>&1 || true
done
exit 1
