package main

import (
	"encoding/json"
	"fmt"
	"path/filepath"

	"github.com/agent-on-demand/aod/api"
)

// spyProgram leaves marks wherever it can, and looks for those of others: before, after, and
// in between for as long as it is told, or until it is let go.
const spyProgram = `import glob, os, socket, subprocess, threading, time

AHEAD = not os.path.exists("/io/input.json")  # there was no run when this was loaded
KEPT = []
PLACES = ["/io", "/io/output", "/io/handoff/outgoing", "/tmp", "/workspace", "/dev/shm", os.path.expanduser("~"), "/var/tmp", "/run"]
ADDRESSES = [(socket.AF_INET, ("127.0.0.1", 9999)), (socket.AF_INET6, ("::1", 9999)), (socket.AF_UNIX, "\0aod-mark")]


def files():
    for place in PLACES:
        for name in glob.glob(place + "/mark-*"):
            yield os.path.basename(name)


def processes():
    for path in glob.glob("/proc/[0-9]*/environ") + glob.glob("/proc/[0-9]*/cmdline"):
        try:
            with open(path, "rb") as f:
                raw = f.read()
        except OSError:
            continue
        for word in raw.replace(b"=", b"\0").split(b"\0"):
            if word.startswith(b"mark-"):
                yield word.decode()


def sockets():
    for family, address in ADDRESSES:
        try:
            with socket.socket(family) as s:
                s.settimeout(2)
                s.connect(address)
                yield s.recv(100).decode() or "mark-silent"
        except OSError:
            pass
    with open("/proc/net/unix") as f:
        for line in f:
            if "@aod-of-" in line:
                yield "mark-" + line.split("@aod-of-")[1].strip()


def look(mine):
    found = [*files(), *processes(), *sockets(), *KEPT]
    return [mark for mark in found if mark != mine]


def listen(family, address, mine):
    s = socket.socket(family)
    s.bind(address)
    s.listen()

    def answer():
        while True:
            s.accept()[0].sendall(mine.encode())

    threading.Thread(target=answer, daemon=True).start()


def leave(mine):
    left = 0
    for place in PLACES:
        try:
            with open(place + "/" + mine, "w") as f:
                f.write(mine)
            left += 1
        except OSError:
            pass
    for family, address in ADDRESSES:
        try:
            listen(family, address, mine)
            left += 1
        except OSError:
            pass
    listen(socket.AF_UNIX, "\0aod-of-" + mine[5:], mine)
    subprocess.Popen(["sleep", "600"], env={"MARK": mine}, start_new_session=True)
    os.environ["MARK"] = mine
    KEPT.append(mine)
    return left


def execute(payload):
    mine = "mark-" + payload["me"]
    seen = look(mine)
    left = leave(mine)
    own = mine in sockets()
    print("listening", flush=True)
    end = time.monotonic() + payload["hold"] / 10
    while time.monotonic() < end and not os.path.exists("/workspace/go"):
        seen += look(mine)
        time.sleep(0.05)
    return {"seen": sorted(set(seen + look(mine))), "left": left, "own": own, "ahead": AHEAD}
`

// spied is what the spy tells.
type spied struct {
	Seen  []string `json:"seen"`
	Left  int      `json:"left"`
	Own   bool     `json:"own"` // it has found its own marks: it knows how to look
	Ahead bool     `json:"ahead"`
}

func (s *server) addPythonSpy(name string, warm int) {
	s.t.Helper()
	for file, content := range map[string]string{
		"Dockerfile": "FROM aod/base\nCOPY . /capsule/\n", "run.py": "import aod\n\naod.run()\n", "src/main.py": spyProgram, "tools.yaml": "[]\n",
		"agent.yaml": fmt.Sprintf("name: %s\nwarm: %d\n", name, warm),
		"schema.json": `{"input": {"type": "object", "properties": {"me": {"type": "string"}, "hold": {"type": "int"}}, "required": ["me", "hold"]},
		  "output": {"type": "object"}}`,
	} {
		write(s.t, content, s.units, name, filepath.FromSlash(file))
	}
}

func (s *server) submitSpy(name, me string, hold int) string {
	return s.call(name, fmt.Sprintf(`{"me":%q,"hold":%d}`, me, hold))
}

// wantNobody checks what a spy has found.
func (s *server) wantNobody(id string) (api.Record, spied) {
	s.t.Helper()
	record := s.await(id)
	s.removeLater(record.Image.Ref)
	var found spied
	if err := json.Unmarshal(record.Output, &found); err != nil || record.Outcome != api.Success {
		s.t.Fatalf("%v: %+v %+v", err, record, record.Error)
	}
	if len(found.Seen) > 0 || !found.Own || found.Left < 6 {
		s.t.Errorf("run %s found %+v", id, found)
	}
	return record, found
}
