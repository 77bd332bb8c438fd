#!/bin/sh
# Runs a capsule many times in a row, some of them failing, timing out, interrupted or
# killed together with aod itself, and proves that nothing is left: no container,
# volume, network or file, but for the last runs' history. Then a large file goes in and out.
#
# usage: scripts/soak.sh [RUNS]
set -eu
runs=${1:-200}
aod=$(pwd)/bin/aod
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export AOD_DATA="$work/data" AOD_HISTORY=5
cd "$work"

mkdir -p soak/src
printf 'FROM aod/base\nCOPY . /capsule\n' >soak/Dockerfile
printf 'name: soak\nlimits: {memory: 128MiB}\n' >soak/agent.yaml
printf '[]\n' >soak/tools.yaml
printf 'import aod\n\naod.run()\n' >soak/run.py
cat >soak/schema.json <<'EOF'
{
  "input": {
    "type": "object",
    "properties": {"way": {"type": "string"}, "data": {"type": "string", "format": "file_path"}},
    "required": ["way"]
  },
  "output": {"type": "object", "properties": {"copy": {"type": "string", "format": "file_path"}}}
}
EOF
cat >soak/src/main.py <<'EOF'
import shutil
import time

import aod


def execute(payload: dict) -> dict:
    way = payload["way"]
    if way == "fail":
        raise ValueError("on purpose")
    if way == "hog":
        hog = bytearray(1 << 30)
        return {"n": len(hog)}
    if way == "wait":
        aod.log("ready")
        time.sleep(1000)
    if "data" in payload:
        shutil.copyfile(aod.input_path(payload["data"]), aod.output_path("copy"))
        return {"copy": "copy"}
    return {}
EOF

state() {
	docker ps -aq | sort
	docker volume ls -q | sort
	docker network ls -q | sort
	(cd "$AOD_DATA" && find . -path ./history -prune -o -print | sort)
}

want() { # want CODE command...
	code=$1
	shift
	got=0
	"$@" >/dev/null 2>&1 || got=$?
	[ "$got" = "$code" ] || { echo "exit code $got, want $code: $*" >&2; exit 1; }
}

# end SIGNAL sends it to aod as soon as the capsule runs.
end() {
	"$aod" run ./soak --set way=wait 2>log >/dev/null &
	pid=$!
	until grep -q ready log; do sleep 0.05; done
	kill "-$1" "$pid"
	wait "$pid" || true
}

want 0 "$aod" run ./soak --set way=fine
state >before
echo "soak: $runs runs ..."
i=0
while [ "$i" -lt "$runs" ]; do
	case $((i % 10)) in
	0) want 1 "$aod" run ./soak --set way=fail ;;
	1) want 124 "$aod" run ./soak --set way=wait --timeout 300ms ;;
	2) end INT ;;
	3) end KILL ;;
	4) want 137 "$aod" run ./soak --set way=hog ;;
	5) want 2 "$aod" run ./soak --set way=1 --set nothing ;;
	*) want 0 "$aod" run ./soak --set way=fine ;;
	esac
	i=$((i + 1))
done
want 0 "$aod" run ./soak --set way=fine # cleans up behind the last one that was killed
state >after
new=$(comm -13 before after)
[ -z "$new" ] || { echo "soak: left behind: $new" >&2; exit 1; }
kept=$(find "$AOD_DATA/history" -mindepth 1 -maxdepth 1 | wc -l)
[ "$kept" -le "$AOD_HISTORY" ] || { echo "soak: the history has $kept runs, of $AOD_HISTORY" >&2; exit 1; }
echo "soak: containers, volumes, networks and the data directory are as they were, the history has its $kept last runs"

head -c 209715200 /dev/urandom >large
want 0 "$aod" run ./soak --set way=fine --file data=large --out out
cmp large out/copy
echo "soak: 200 MiB went in and out unchanged"
