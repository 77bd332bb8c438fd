#!/bin/sh
# Loads a server with flows and prints figures: a map over a unit that is reused beside clients
# that submit as many runs, a map that is cancelled in its middle, and flows that wait for
# people over a kill of the server. Behaviour is checked; times and memory are printed, since
# they depend on what else the machine does.
#
# usage: scripts/flow-load.sh [ITEMS [QUESTIONS [SECONDS]]]: 1000 items, 1000 questions, for 300
# seconds. With 0 items the maps are left out.
set -eu
aod=${AOD:-$(pwd)/bin/aod}
work=$(mktemp -d)
export AOD_DATA="$work/data"
cd "$work"

unit() { # NAME KIND-LINES: the directory of a unit with any input and output
	mkdir -p "units/$1"
	printf 'name: %s\ndescription: Of a test.\n%s\n' "$1" "$2" >"units/$1/agent.yaml"
	echo '{"input": {"type": "object"}, "output": {"type": "object"}}' >"units/$1/schema.json"
}

unit tick 'warm: 8
reuse: 10000
limits: {memory: 64MiB}'
mkdir -p units/tick/src
printf 'FROM aod/base\nCOPY . /capsule\n' >units/tick/Dockerfile
printf '[]\n' >units/tick/tools.yaml
printf 'import aod\n\naod.run()\n' >units/tick/run.py
printf 'def execute(payload):\n    return {"n": payload["n"]}\n' >units/tick/src/main.py
for parallel in 1 2 8 1000; do
	unit "map$parallel" 'kind: flow'
	cat >"units/map$parallel/flow.yaml" <<END
nodes:
  all: {map: "\${{ input.list }}", parallel: $parallel, run: tick, with: {n: "\${{ item }}"}, collect: "\${{ out.n }}", set: {list: "\${{ out }}"}}
output: {list: "\${{ state.list }}"}
END
done
unit asks 'kind: flow'
echo 'nodes: {a: {ask: "Go on?"}}' >units/asks/flow.yaml
unit long 'kind: flow'
cat >units/long/flow.yaml <<'END'
start: again
max_steps: 1100
nodes:
  again: {set: {n: "${{ (state.n ?? 0) + 1 }}"}, action: '${{ (state.n ?? 0) >= 999 ? "stop" : "go" }}', next: {go: again, stop: stay}}
  stay: {ask: "Done?"}
END

python3 - "$aod" "$@" <<'END'
import concurrent.futures, http.client, json, os, signal, subprocess, sys, time

aod, items, questions, seconds = sys.argv[1], *[int(a) for a in (sys.argv[2:] + ["1000", "1000", "300"][len(sys.argv) - 2:])]
home = os.environ["AOD_DATA"]
env = dict(os.environ, AOD_UNITS=os.path.join(os.getcwd(), "units"), AOD_LISTEN="127.0.0.1:0", AOD_NO_AUTH="true",
           AOD_CONCURRENCY="8", AOD_POOL_SIZE="8", AOD_QUEUE="2000")


class Server:
    def __init__(self):
        path = os.path.join(home, "server", "address")
        if os.path.exists(path):
            os.remove(path)
        self.began = time.monotonic()
        self.process = subprocess.Popen([aod, "serve"], env=env, stderr=open("serve.log", "ab"))
        while not os.path.exists(path) or not open(path).read().strip():
            time.sleep(0.005)
        self.host = open(path).read().strip().split("//")[1]
        self.ready = time.monotonic()

    def ask(self, method, path, body=None, connection=None):
        c = connection or http.client.HTTPConnection(self.host, timeout=600)
        c.request(method, path, None if body is None else json.dumps(body), {"Content-Type": "application/json"})
        r = c.getresponse()
        raw = r.read()
        if r.status >= 400:
            raise RuntimeError(f"{method} {path}: {r.status} {raw[:500]!r}")
        return json.loads(raw) if raw else None

    def run(self, unit, value, wait="5m", connection=None):
        return self.ask("POST", "/v1/runs" + (f"?wait={wait}" if wait else ""), {"unit": unit, "input": value}, connection)

    def rss(self):
        for line in open(f"/proc/{self.process.pid}/status"):
            if line.startswith("VmRSS"):
                return int(line.split()[1]) / 1024

    def stop(self, how):
        self.process.send_signal(how)
        self.process.wait()


def until(what, limit=300):
    end = time.monotonic() + limit
    while not what():
        if time.monotonic() > end:
            raise RuntimeError("it doesn't come")
        time.sleep(0.01)


def containers():
    listed = subprocess.run(["docker", "ps", "-q", "--filter", "label=aod.unit=asks"], capture_output=True, text=True)
    return len(listed.stdout.split())


s = Server()
for warmup in range(3):
    assert s.run("map8", {"list": list(range(16))})["outcome"] == "success"

# Maps.
numbers = list(range(items))
for parallel in (1, 2, 1000):
    for part in ([], numbers[:40]):
        got = s.run(f"map{parallel}", {"list": part})
        assert got["output"] == {"list": part}, got
print("maps of 0 and 40 items at 1, 2 and 1000: the same")


def by_clients():
    def client(mine):
        c = http.client.HTTPConnection(s.host, timeout=600)
        for n in mine:
            assert s.run("tick", {"n": n}, connection=c)["outcome"] == "success"
    began = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        list(pool.map(client, [numbers[i::8] for i in range(8)]))
    return items / (time.monotonic() - began)


def by_flow():
    before = most = s.rss()
    id = s.run("map8", {"list": numbers}, wait="")["id"]
    while not (record := s.ask("GET", f"/v1/runs/{id}"))["outcome"]:
        most = max(most, s.rss())
        time.sleep(0.2)
    assert record["output"] == {"list": numbers}, record["error"]
    kept = len(json.dumps({k: v for k, v in record.items() if k not in ("input", "output")}))
    return items / (record["timings"]["total_ms"] / 1000), most - before, kept


def maps():
    clients, flows = [], []
    for _ in range(3):
        clients.append(by_clients())
        flows.append(by_flow())
    middle = lambda figures: sorted(figures)[1]
    print("runs/s of 8 clients:", [round(c, 1) for c in clients])
    print("items/s of the map: ", [round(f[0], 1) for f in flows], "record bytes:", flows[-1][2], "memory MiB:", [round(f[1], 1) for f in flows])
    print("map beside clients:  %.3f" % (middle([f[0] for f in flows]) / middle(clients)))

    id = s.run("map8", {"list": numbers}, wait="")["id"]
    until(lambda: (s.ask("GET", f"/v1/runs/{id}").get("flow") or {}).get("steps", 0) >= items // 4)
    began = time.monotonic()
    s.ask("POST", f"/v1/runs/{id}/cancel", {"reason": "in its middle"})
    until(lambda: s.ask("GET", f"/v1/runs/{id}")["outcome"])
    until(lambda: not any(r["state"] in ("starting", "running", "idle") and not r["finished_at"] for r in s.ask("GET", f"/v1/runs?parent={id}&limit=1000")["runs"]))
    print("cancelled in its middle: all ended after %.2f s" % (time.monotonic() - began))


if items:
    maps()

# Questions.
before = s.rss()
ids = [s.run("asks", {}, wait="")["id"] for _ in range(questions)]


def open_questions():
    found, after = [], ""
    while True:
        page = s.ask("GET", "/v1/questions?limit=1000" + (f"&after={after}" if after else ""))
        found += page["questions"]
        if not page.get("next"):
            return found
        after = page["next"]


until(lambda: len(open_questions()) == questions)
most = s.rss()
half = time.monotonic() + seconds / 2
while time.monotonic() < half:
    most = max(most, s.rss())
    assert containers() == 0 and s.ask("GET", "/v1/stats")["busy"] == 0
    time.sleep(1)
print("%d questions: memory %.1f MiB more" % (questions, most - before))
s.stop(signal.SIGKILL)
s = Server()
print("restarted: ready after %.2f s, memory %.1f MiB" % (s.ready - s.began, s.rss()))
half = time.monotonic() + seconds / 2
while time.monotonic() < half:
    assert containers() == 0
    time.sleep(1)
open_now = open_questions()
assert len(open_now) == questions and sorted(q["run"] for q in open_now) == sorted(ids)
for q in open_now:
    s.ask("POST", "/v1/questions/" + q["id"], {"action": "approve"})
until(lambda: all(s.ask("GET", f"/v1/runs/{id}")["outcome"] == "success" for id in ids[:: max(questions // 50, 1)]))
assert not open_questions()
for id in ids:
    steps = s.ask("GET", f"/v1/runs/{id}/steps")["steps"]
    until(lambda: s.ask("GET", f"/v1/runs/{id}")["outcome"] == "success")
    assert len(steps) == 1 and steps[0]["action"] == "approve", steps
print("each answered once")

# A flow of 1000 steps goes on.
id = s.run("long", {}, wait="")["id"]
until(lambda: (s.ask("GET", f"/v1/runs/{id}").get("flow") or {}).get("steps", 0) >= 1000 and len(open_questions()) == 1)
for how in range(3):
    s.stop(signal.SIGKILL)
    s = Server()
    question = open_questions()[0]["id"]
    if how == 2:
        began = time.monotonic()
        s.ask("POST", "/v1/questions/" + question, {"action": "approve"})
        until(lambda: s.ask("GET", f"/v1/runs/{id}")["outcome"] == "success")
        print("a flow of 1000 steps went on: %.0f ms from the answer, which came %.0f ms after the server was ready" % ((time.monotonic() - began) * 1000, (began - s.ready) * 1000))
assert s.ask("GET", f"/v1/runs/{id}")["flow"]["steps"] == 1001
s.stop(signal.SIGTERM)
END
rm -rf "$work"
