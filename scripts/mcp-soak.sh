#!/bin/sh
# Has 20 clients of the Model Context Protocol come and go on one server: without sessions, with
# them, by `aod mcp` and with a sealed server, five calls each time. It proves that every call is
# answered, and that no container, session or goroutine is left and the memory doesn't grow.
#
# usage: scripts/mcp-soak.sh [CALLS]: 2,000, some 3 a second: ten minutes
set -eu
calls=${1:-2000}
clients=20
visit=5 # calls of a client until it goes
visits=$((calls / clients / visit))
[ "$visits" -gt 0 ] || { echo "there are at least $((clients * visit)) calls" >&2; exit 1; }
pause=6 # seconds between a client's calls
. scripts/soak-lib.sh
examples=$(pwd)/examples/capsules
cd "$work"

mkdir -p units/counter said
cp -R "$examples/hello" units/hello
printf 'name: counter\nkind: mcp\nmcp: {idle: 10s}\n' >units/counter/agent.yaml
printf 'FROM aod/base\nCOPY server.py /server.py\nENTRYPOINT ["python3", "/server.py"]\nCMD []\n' >units/counter/Dockerfile
cat >units/counter/server.py <<'EOF'
import json, sys

n = 0
for line in sys.stdin:
    m = json.loads(line)
    result = {}
    if m["method"] == "initialize":
        result = {"protocolVersion": m["params"]["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": {"name": "counter", "version": "1"}}
    elif m["method"] == "tools/call":
        n += 1
        result = {"content": [{"type": "text", "text": "count %d" % n}]}
    if "id" in m:
        print(json.dumps({"jsonrpc": "2.0", "id": m["id"], "result": result}), flush=True)
EOF

serve --pool 2 --queue 1000

post() { # ADDRESS BODY [CURL...]
	address=$1 body=$2
	shift 2
	curl -sS "$url$address" -H "Authorization: Bearer $token" -H 'Content-Type: application/json' \
		-H 'Accept: application/json, text/event-stream' -d "$body" "$@"
}

call() { # ID TOOL [META]
	printf '{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"%s","arguments":{"name":"Ada"}%s}}' "$1" "$2" "${3:-}"
}

hello='{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"soak","version":"1"}}}'
ready='{"jsonrpc":"2.0","method":"notifications/initialized"}'
meta=',"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}'

begin() { # ADDRESS: begins a session
	session=$(post "$1" "$hello" -o /dev/null -D - | sed -n 's/^[Mm]cp-[Ss]ession-[Ii]d: //p' | tr -d '\r')
	post "$1" "$ready" -H "Mcp-Session-Id: $session"
}

without_session() {
	for i in 1 2 3 4 5; do
		post /mcp "$(call $i hello "$meta")" -H 'Mcp-Protocol-Version: 2026-07-28' -H 'Mcp-Method: tools/call' -H 'Mcp-Name: hello'
		sleep "$pause"
	done
}

in_session() {
	begin /mcp
	for i in 1 2 3 4 5; do
		post /mcp "$(call $i hello)" -H "Mcp-Session-Id: $session"
		sleep "$pause"
	done
	post /mcp "" -X DELETE -H "Mcp-Session-Id: $session"
}

by_stdio() {
	{
		printf '%s\n%s\n' "$hello" "$ready"
		for i in 1 2 3 4 5; do
			call $i hello && echo
			sleep "$pause"
		done
	} | "$aod" --server "$url" mcp
}

sealed() { # every other one goes without a word
	begin /mcp/counter
	for i in 1 2 3 4 5; do
		post /mcp/counter "$(call $i count)" -H "Mcp-Session-Id: $session"
		sleep "$pause"
	done
	[ $(($1 % 2)) = 0 ] || post /mcp/counter "" -X DELETE -H "Mcp-Session-Id: $session"
}

client() { # N
	v=0
	while [ "$v" -lt "$visits" ]; do
		case $((($1 + v) % 4)) in
		0) without_session ;;
		1) in_session ;;
		2) by_stdio ;;
		3) sealed "$v" ;;
		esac
		v=$((v + 1))
	done >"said/$1" 2>"said/$1.err"
}

state() { # what may grow
	goroutines=$(metric go_goroutines)
	memory=$(($(metric process_resident_memory_bytes) / 1048576))
	echo "$1: $goroutines goroutines, $memory MiB, $(containers) containers"
}

settled() { # waits until nothing goes on but the pool
	until [ "$(active)" = 0 ] && [ "$(containers)" -le 2 ]; do sleep 0.5; done
	sleep 35 # idle connections go
}

export AOD_TOKEN="$token"
pause=0
n=0
while [ "$n" -lt 4 ]; do # each kind of client has been there
	n=$((n + 1)) visits=1 && client "$n"
done
rm said/*
pause=6 visits=$((calls / clients / visit))
settled
state before
before=$goroutines room=$((memory + memory / 2 + 16))
began=$(date +%s)
pids=
n=0
while [ "$n" -lt "$clients" ]; do
	n=$((n + 1))
	client "$n" &
	pids="$pids $!"
done
for pid in $pids; do wait "$pid"; done
echo "$clients clients made $((visits * clients * visit)) calls in $(($(date +%s) - began)) seconds"
settled
state after
answered=$(cat said/* | grep -o '"structuredContent":{[^}]*"Hello, Ada!"\|"text": "count [1-5]"' | wc -l)
[ "$answered" = $((visits * clients * visit)) ] || { cat said/*.err >&2; grep -h 'rror' said/* >&2; echo "$answered calls were answered" >&2; exit 1; }
[ "$goroutines" -le $((before + 10)) ] || { echo "goroutines are left" >&2; exit 1; }
[ "$memory" -le "$room" ] || { echo "the memory grows" >&2; exit 1; }
end_server
echo "mcp-soak: $answered calls answered, nothing is left"
