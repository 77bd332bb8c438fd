#!/bin/sh
# Has a server run hostile and good programs, one after the other and side by side, while a hostile
# client attacks it, and proves that its memory stays flat and below a bound, that nothing of theirs
# is left, and that the good ones' runs took as long as ever.
#
# usage: scripts/soak-server.sh [RUNS [SECONDS]]: 1,000 runs, one every 3.6 seconds: an hour
set -eu
runs=${1:-1000}
pause=${2:-3.6}
home=$(pwd)
aod=$home/bin/aod
work=$(mktemp -d)
attacker=
export AOD_DATA="$work/data"
cd "$work"

unit() { # unit NAME AGENT: a capsule with src/main.py from stdin
	mkdir -p "units/$1/src" records
	cat >"units/$1/src/main.py"
	printf 'FROM aod/base\nCOPY . /capsule\n' >"units/$1/Dockerfile"
	printf 'name: %s\n%s\n' "$1" "$2" >"units/$1/agent.yaml"
	printf '[]\n' >"units/$1/tools.yaml"
	printf 'import aod\n\naod.run()\n' >"units/$1/run.py"
	echo '{"input": {"type": "object", "properties": {"way": {"type": "string"}}}, "output": {"type": "object"}}' >"units/$1/schema.json"
}

unit good 'limits: {memory: 128MiB}' <<'EOF'
def execute(payload: dict) -> dict:
    return {"sum": sum(range(100_000))}
EOF

ways='fail hog fork spin disk files flood api links junk deep wait bodies artifacts questions refused'
unit hostile 'limits: {memory: 128MiB, pids: 64, output: 1MiB, log: 64KiB, timeout: 3s}' <<'EOF'
import json
import os
import socket
import threading
import time
import urllib.request


def execute(payload: dict) -> dict:
    globals()[payload["way"]]()
    return {}


def fail():
    raise ValueError("on purpose")


def hog():
    bytearray(1 << 30)


def fork():
    while True:
        try:
            if os.fork() == 0:
                time.sleep(1000)
        except OSError:
            pass


def spin():
    while True:
        pass


def disk():
    with open("/io/output/big", "wb") as f:
        while True:
            f.write(bytes(1 << 20))


def files():
    for n in range(20_000):
        open(f"/workspace/{n}", "w").close()


def flood():
    while True:
        print("x" * 1000, flush=True)


def api():
    while True:
        try:
            urllib.request.urlopen("http://127.0.0.1:7070/units", timeout=1).read()
        except OSError:
            pass


def links():
    os.symlink("/etc/passwd", "/io/output/link")


def answer(text):
    with open("/io/output.json", "w") as f:
        f.write(text)
    os._exit(0)


def junk():
    answer("\x00" * 1000)


def deep():
    answer('{"a":' * 100_000)


def wait():
    time.sleep(1000)


def at_once(n, act):
    threads = [threading.Thread(target=act, args=(i,)) for i in range(n)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def bodies():
    def hold(_):
        for path in (b"/mcp", b"/v1/chat/completions"):
            s = socket.socket(socket.AF_UNIX)
            try:
                s.connect(os.environ["AOD_SOCKET"])
                s.sendall(b"POST %s HTTP/1.1\r\nHost: aod\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % (path, 15 << 20))
                for _ in range(239):
                    s.sendall(bytes(64 << 10))
            except OSError:
                pass
            held.append(s)

    held = []
    at_once(50, hold)
    time.sleep(1000)


def post(path, body):
    request = urllib.request.Request("http://127.0.0.1:7070" + path, json.dumps(body).encode(), {"Content-Type": "application/json"})
    try:
        urllib.request.urlopen(request, timeout=60).read()
    except OSError:
        pass


def artifacts():
    for n in range(1000):
        post("/artifact", {"id": str(n % 100), "text": "x" * (250 << 10)})
    time.sleep(1000)


def questions():
    at_once(50, lambda i: [post("/ask", {"text": f"{i} {n}?", "timeout": "0.1s"}) for n in range(20)])


def refused():
    at_once(50, lambda _: [post("/handoff", {"target": "nobody", "args": {}}) for _ in range(10_000)])
EOF

"$aod" serve --units units --listen 127.0.0.1:0 --concurrency 4 --queue 1000 2>serve.log &
server=$!
end() {
	# shellcheck disable=SC2086 # there may be no attacker yet
	kill $attacker "$server" 2>/dev/null || true
	wait "$server" || true
	rm -rf "$work"
}
trap end EXIT
until [ -s data/server/address ] && "$aod" units >/dev/null 2>&1; do sleep 0.2; done
address=$(cat data/server/address)
owner=$(cat data/server/owner)
"$aod" token add attacker --scope run --scope read >attacker
python3 "$home/scripts/soak-attack.py" "$address" "$(cat attacker)" &
attacker=$!

run() { # run NUMBER UNIT WAY: its record becomes a file
	"$aod" run --server "$address" "$2" --set "way=$3" --json --quiet --out "out/$1" >"records/$2-$1.json" 2>"records/$1.err" || true
}
memory() { awk '/VmRSS/ {print $2}' "/proc/$server/status"; } # KiB

run first good none # the images are built
run first hostile fail
rm records/*
echo "soak: $runs runs, one every $pause s ..."
i=0
pids=
while [ "$i" -lt "$runs" ]; do
	if [ $((i % 2)) = 0 ]; then
		run "$i" good none &
	else
		# shellcheck disable=SC2086 # the ways are words
		set -- $ways
		shift $((i / 2 % $#))
		run "$i" hostile "$1" &
	fi
	pids="$pids $!"
	sleep "$pause"
	[ $((i % 10)) != 0 ] || memory >>memory
	i=$((i + 1))
done
for pid in $pids; do wait "$pid"; done

failed=0
wrong() {
	echo "soak: $*" >&2
	failed=1
}
good=$(cat records/good-*.json | jq -s '[.[] | select(.outcome == "success")] | length')
[ "$good" = $(((runs + 1) / 2)) ] || wrong "$good of $(((runs + 1) / 2)) good runs succeeded"
echo "soak: the hostile ones: $(cat records/hostile-*.json | jq -rs 'group_by(.outcome) | map("\(length) \(.[0].outcome)") | join(", ")')"
[ "$(cat records/hostile-*.json | jq -s '[.[] | select(.outcome == "system_error")] | length')" = 0 ] || wrong "hostile runs are called AOD's fault"

# A run that found a waiting container is held against those that did, and likewise the others.
cat records/good-*.json | jq -rs '
  group_by(.container.waited_ms != null)[] | (map(.timings.total_ms) | sort) as $t | $t[length / 2 | floor] as $median
  | "\(length) \(if .[0].container.waited_ms != null then "warm" else "cold" end) \($median) \($t[-1]) \([$t[] | select(. > 2 * $median and . > $median + 250)] | length)"' |
	while read -r n kind median most slow; do
		echo "soak: $n good runs, $kind: median $median ms, the slowest $most ms, $slow slower than twice the median (and a quarter of a second)"
		[ "$slow" = 0 ] || touch slow
	done
[ ! -e slow ] || wrong "hostile programs slow good ones down"

half=$(($(wc -l <memory) / 2))
early=$(head -n "$half" memory | sort -n | tail -1)
late=$(tail -n "$half" memory | sort -n | tail -1)
echo "soak: the server took at most $((early / 1024)) MiB in the first half, $((late / 1024)) MiB in the second"
[ "$late" -le $((early + early / 5 + 16384)) ] || wrong "its memory grows"
most=$(sort -n memory | tail -1)
[ "$most" -le $((400 * 1024)) ] || wrong "it took $((most / 1024)) MiB: more than 400"
lines=$(grep -cE 'level=(WARN|ERROR)' serve.log || true)
echo "soak: the server wrote $(wc -l <serve.log) lines of log, $lines of them warnings and errors"
[ "$lines" -le $((10 * runs)) ] || wrong "it wrote $lines warnings and errors"

kill "$attacker" "$server"
wait "$attacker" "$server" || true
for what in 'ps -a' 'volume ls' 'network ls'; do
	# shellcheck disable=SC2086 # a command of two words
	left=$(docker $what -q --filter "label=aod.owner=$owner")
	[ -z "$left" ] || wrong "left behind ($what): $left"
	[ -n "$left" ] || echo "soak: docker $what: nothing is left"
done
left=$(find data/server/spool data/server/pool -mindepth 1; find data/server/runs -mindepth 2 -maxdepth 2 -name '[0-9]*')
[ -z "$left" ] || wrong "files are left: $left"
[ -n "$left" ] || echo "soak: no file is left"
exit "$failed"
