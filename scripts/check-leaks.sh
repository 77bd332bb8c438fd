#!/bin/sh
# Proves that the tests left nothing on the engine: no container, volume or network
# of AOD's or of a test's. What the engine is about to remove has half a minute for it.
# What is left is described: a container's labels tell whose it was.
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
	docker container inspect --format '{{.Name}} {{.State.Status}}, created {{.Created}}, started {{.State.StartedAt}}, ended {{.State.FinishedAt}} {{.State.Error}} {{json .Config.Cmd}} {{json .Config.Labels}}' "$it" 2>/dev/null ||
		docker inspect "$it" 2>/dev/null || echo "$it has gone by now"
done >&2
exit 1
