#!/bin/sh
# Has wrapped agents work on one server: runs, sessions of two turns each with programs that live
# on and with such that don't, and runs on a project whose changes are applied. It proves that
# everything is answered, and that no container, directory, descriptor or row is left and nothing
# grows.
#
# usage: scripts/session-soak.sh [RUNS]: 1,000, with 200 sessions and 200 applies
set -eu
runs=${1:-1000}
clients=4
each=$((runs / clients))
[ "$each" -ge 10 ] || { echo "there are at least $((clients * 10)) runs" >&2; exit 1; }
. scripts/soak-lib.sh
cd "$work"

mkdir -p said units/upper units/editor units/lives units/ends
cat >units/upper/agent.yaml <<'EOF'
name: upper
kind: agent
image: debian:trixie-slim
agent: {command: [tr, a-z, A-Z]}
EOF
cat >units/editor/agent.yaml <<'EOF'
name: editor
kind: agent
image: debian:trixie-slim
access: read-write
agent: {command: [sh, -ec, "cat >new.txt; echo >>new.txt; echo more >>old.txt; rm gone.txt; echo done"], dir: /workspace/project}
EOF
cat >units/lives/agent.yaml <<'EOF'
name: lives
kind: agent
agent: {command: [python3, -u, /talk.py], mode: interactive, protocol: stream-json}
session: {keep_alive: true, idle: 20s}
limits: {memory: 64MiB}
EOF
cat >units/ends/agent.yaml <<'EOF'
name: ends
kind: agent
agent: {command: [sh, -ec, 'echo x >>"$HOME/told"; wc -l <"$HOME/told"'], mode: interactive}
EOF
printf 'FROM debian:trixie-slim\n' >units/ends/Dockerfile
printf 'FROM aod/base\nCOPY talk.py /talk.py\n' >units/lives/Dockerfile
cat >units/lives/talk.py <<'EOF'
import json, sys

told = 0
for line in sys.stdin:
    if json.loads(line)["type"] == "user":
        told += 1
        print(json.dumps({"type": "result", "subtype": "success", "result": str(told), "session_id": "mine"}), flush=True)
EOF

serve --pool 0 --sessions 4 --queue 1000
export AOD_SERVER="$url" AOD_TOKEN_FILE="$work/data/server/token"

run_once() { # N
	"$aod" agent run upper --quiet -m "run $1" | grep -qx "RUN $1"
}

converse() { # UNIT N: two turns. Every other session is left alone in the end
	[ "$("$aod" agent run "$1" --new-session -m one 2>"told.$3")" = 1 ] || return
	session=$(sed -n 's/^.*session //p' "told.$3" | head -n 1)
	[ "$("$aod" agent run "$1" --quiet --session "$session" -m two)" = 2 ] || return
	[ $(($2 % 2)) = 0 ] || "$aod" agent sessions close "$session" >/dev/null 2>&1
}

apply() { # N CLIENT
	rm -rf "project.$2"
	mkdir "project.$2"
	echo old >"project.$2/old.txt"
	echo gone >"project.$2/gone.txt"
	id=$("$aod" agent run editor --quiet -m "edit $1" --workspace "project.$2" --json | sed -n 's/^{"id":"\([^"]*\)".*/\1/p')
	"$aod" apply "$id" --dir "project.$2" >/dev/null 2>&1 || return
	[ "$(cat "project.$2/new.txt" "project.$2/old.txt")" = "$(printf 'edit %s\nold\nmore' "$1")" ] && [ ! -e "project.$2/gone.txt" ]
}

client() { # NUMBER RUNS
	i=0
	while [ "$i" -lt "$2" ]; do
		i=$((i + 1))
		run_once "$1-$i" && echo run
		case $((i % 10)) in
		1) converse lives "$i" "$1" && echo session ;;
		3) apply "$1-$i" "$1" && echo apply ;;
		5) converse ends "$i" "$1" && echo session ;;
		7) apply "$1-$i" "$1" && echo apply ;;
		esac
	done
}

all() { # RUNS of each client
	pids=
	n=0
	while [ "$n" -lt "$clients" ]; do
		n=$((n + 1))
		client "$n" "$1" >"said/$n" 2>"said/$n.err" &
		pids="$pids $!"
	done
	for pid in $pids; do wait "$pid" || { cat said/*.err served >&2; exit 1; }; done
}

state() { # what may grow: when nothing goes on, and nothing is kept
	until [ "$(active)" = 0 ]; do sleep 0.2; done
	for session in $("$aod" agent sessions --json 2>/dev/null | sed -n 's/^{"id":"\([^"]*\)".*/\1/p'); do
		"$aod" agent sessions close "$session" >/dev/null 2>&1
	done
	until [ "$(containers)" = 0 ]; do sleep 0.5; done
	"$aod" prune --older-than 0s --quiet
	sleep "$1" # idle connections go
	goroutines=$(metric go_goroutines)
	descriptors=$(find "/proc/$server/fd" -mindepth 1 | wc -l)
	memory=$(($(metric process_resident_memory_bytes) / 1048576))
	left=$(find data/server/runs data/server/sessions data/server/spool -mindepth 1 2>/dev/null | wc -l)
	echo "$2: $goroutines goroutines, $descriptors descriptors, $memory MiB, $left files of runs and sessions"
	[ "$left" = 0 ] || { find data/server/runs data/server/sessions data/server/spool | head >&2; exit 1; }
}

all 10
state 35 before
before=$goroutines opened=$descriptors room=$((memory + memory / 2 + 16))
began=$(date +%s)
all "$each"
echo "$((clients * each)) runs, and what stands beside them, took $(($(date +%s) - began)) seconds"
state 35 after
[ "$goroutines" -le $((before + 10)) ] || { echo "goroutines are left" >&2; exit 1; }
[ "$descriptors" -le $((opened + 5)) ] || { echo "descriptors are left" >&2; exit 1; }
[ "$memory" -le "$room" ] || { echo "the memory grows" >&2; exit 1; }
for what in run session apply; do
	grep -hcx "$what" said/[0-9] | awk -v what="$what" '{ n += $1 } END { print n, what "s" }'
done >did
expected="$((clients * each)) runs $((clients * (each / 5))) sessions $((clients * (each / 5))) applies"
did=$(tr '\n' ' ' <did | sed 's/ $//; s/applys/applies/')
[ $((each % 10)) != 0 ] || [ "$did" = "$expected" ] || { cat said/*.err >&2; echo "done: $did, expected: $expected" >&2; exit 1; }
if command -v python3 >/dev/null; then
	python3 - data/server <<'EOF'
import sqlite3, sys

with sqlite3.connect("file:%s/aod.db?mode=ro" % sys.argv[1], uri=True) as db:
    for (table,) in db.execute("select name from sqlite_master where type = 'table'").fetchall():
        print("rows of %s: %d" % (table, db.execute('select count(*) from "%s"' % table).fetchone()[0]))
EOF
fi
end_server
echo "session-soak: $did; nothing is left"
