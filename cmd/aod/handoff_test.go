package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/client"
	"github.com/agent-on-demand/aod/runtime/docker/dockertest"
)

// askScript speaks to the capsule API with nothing but bash: ask METHOD PATH KEY BODY sets
// status and answer. Its status is 1 where there was no whole answer: the server is away.
const askScript = `export LC_ALL=C
talk() {
	exec 3<> /dev/tcp/127.0.0.1/7070 || return 1
	printf '%s %s HTTP/1.1\r\nHost: aod\r\nConnection: close\r\n' "$1" "$2" >&3
	[ -n "$3" ] && printf 'Idempotency-Key: %s\r\n' "$3" >&3
	printf 'Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%s' "${#4}" "$4" >&3
	cat <&3
}
ask() {
	local whole head
	whole=$(talk "$@" 2> /dev/null; echo .)
	head=${whole%%$'\r\n\r\n'*} answer=${whole#*$'\r\n\r\n'}
	answer=${answer%.}
	[[ $head =~ ^HTTP/1.1\ ([0-9]+) ]] || return 1
	status=${BASH_REMATCH[1]}
	[[ $head =~ Content-Length:\ ([0-9]+) ]] && (( ${#answer} == BASH_REMATCH[1] ))
}
# persist does as ask until somebody answers who stays.
persist() {
	until ask "$@" && (( status != 503 )); do
		sleep 0.05
	done
}
number() { [[ $(< /io/input.json) =~ \"$1\":([0-9]+) ]] && echo "${BASH_REMATCH[1]}" || echo 0; }
`

// addCaller gives the server a unit that may call itself and one that isn't there.
func (s *server) addCaller(name, script string) {
	s.t.Helper()
	dir := filepath.Join(s.units, name)
	write(s.t, "FROM "+dockertest.Image+"\nCOPY run.sh /run.sh\nCMD [\"bash\", \"/run.sh\"]\n", dir, "Dockerfile")
	write(s.t, askScript+script, dir, "run.sh")
	write(s.t, "name: "+name+"\nrecursion: 16\nlimits: {timeout: 5m}\n", dir, "agent.yaml")
	write(s.t, "- {name: again, capsule: "+name+"}\n- {name: nobody, capsule: nobody}\n", dir, "tools.yaml")
	write(s.t, `{
  "input": {"type": "object"},
  "output": {"type": "object"}
}
`, dir, "schema.json")
}

// call has a run of a caller accepted.
func (s *server) call(unit, input string) string {
	s.t.Helper()
	record, err := s.submit(s.t.Context(), client.Submission{Unit: unit, Input: []byte(input)})
	if err != nil {
		s.t.Fatal(err)
	}
	return record.ID
}

// callees are the runs that a run asked for, as far as a server answers.
func (s *server) callees(id string) (runs []api.Summary) {
	for run, err := range s.client.Runs.List(context.Background(), api.Filter{Parent: id}) {
		if err == nil {
			runs = append(runs, run)
		}
	}
	return runs
}

// aod runs a command line on the server's data directory and returns what is printed.
func (s *server) aod(args ...string) string {
	s.t.Helper()
	if s.inside != nil {
		at := []string{"--server", s.url(), "--token-file", filepath.Join(s.home(), "token")}
		code, out, told := command(s.t, s.t.Context(), append(at, args...)...)
		if code != 0 {
			s.t.Errorf("aod %q: exit code %d, %s", args, code, told)
		}
		return out
	}
	command := exec.Command(s.program, args...)
	command.Env = append(os.Environ(), "AOD_DATA="+s.data, "AOD_SERVER=", "NO_COLOR=1")
	out, err := command.Output()
	if err != nil {
		s.t.Errorf("aod %q: %v", args, err)
	}
	return string(out)
}
