package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/runtime/docker/dockertest"
)

const (
	askerKey    = "sk-canary-asker-0123456789"
	askerSecret = "canary-secret-of-the-program"
)

// askerScript tells what a model says, and the letters of its own secret.
const askerScript = `body='{"model":"small","messages":[{"role":"user","content":"Who?"}]}'
exec 3<> /dev/tcp/127.0.0.1/7070
printf 'POST /v1/chat/completions HTTP/1.1\r\nHost: aod\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s' "${#body}" "$body" >&3
answer=$(cat <&3)
[[ $answer =~ \"content\":\"([^\"]*)\" ]] || { echo "$answer" >&2; exit 1; }
echo "{\"answer\":\"${BASH_REMATCH[1]} ${#SIGNER}\"}" > /io/output.json
`

// askers have a unit that asks a model and gets a secret, and a provider that wants its key.
type askers struct {
	t    *testing.T
	home string
	env  []string
}

func newAskers(t *testing.T) *askers {
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+askerKey {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"choices":[{"message":{"content":"Ada"}}],"usage":{"prompt_tokens":7,"completion_tokens":3}}`)
	}))
	t.Cleanup(provider.Close)
	a := &askers{t: t, home: t.TempDir()}
	unit := filepath.Join(a.home, "units", "asker")
	write(t, "FROM "+dockertest.Image+"\nCOPY run.sh /run.sh\nCMD [\"bash\", \"/run.sh\"]\n", unit, "Dockerfile")
	write(t, askerScript, unit, "run.sh")
	write(t, "name: asker\nmodel: small\nsecrets: {SIGNER: signer}\n", unit, "agent.yaml")
	write(t, `{"input": {"type": "object"}, "output": {"type": "object"}}`, unit, "schema.json")
	write(t, `{"input": {}, "expect": {"output": {"answer": "Ada 28"}}}`, unit, "tests", "one.json")
	write(t, fmt.Sprintf("providers: {p: {kind: compatible, base_url: %q, key: p-key}}\nmodels: {small: {use: [p/any]}}\n",
		provider.URL), a.home, "models.yaml")
	write(t, askerKey+"\n", a.home, "key")
	write(t, askerSecret+"\n", a.home, "signer")
	a.env = append(os.Environ(), "AOD_DATA="+filepath.Join(a.home, "data"), "OPENAI_BASE_URL="+provider.URL,
		"OPENAI_API_KEY=", "ANTHROPIC_API_KEY=", "AOD_MODELS=", "AOD_SERVER=", "AOD_UNITS=", "AOD_CONFIG=")
	return a
}

// run runs a command in the home of the askers.
func (a *askers) run(env []string, stdin string, args ...string) (stdout, stderr string, code int) {
	a.t.Helper()
	cmd := exec.Command("aod", args...)
	cmd.Dir, cmd.Env, cmd.Stdin = a.home, slices.Concat(a.env, env), strings.NewReader(stdin)
	var out, err strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &err
	_ = cmd.Run() // the code says it
	if all := out.String() + err.String(); strings.Contains(all, askerKey) || strings.Contains(all, askerSecret) {
		a.t.Errorf("a secret is shown: %s", all)
	}
	return out.String(), err.String(), cmd.ProcessState.ExitCode()
}

const askedTool = mcpHello + "\n" + mcpReady + "\n" + `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"asker","arguments":{}}}` + "\n"

// Every command that runs units by itself has the same sources of models and of secrets.
func TestEveryCommandHasTheSameSources(t *testing.T) {
	t.Parallel()
	dockertest.Require(t)
	a := newAskers(t)
	write(t, askerKey+"\n", a.home, "data", "secrets", "p-key")
	file, secret := []string{"--models", "models.yaml", "--secret", "signer=signer"}, "--secret=signer=signer"
	mcp := []string{"mcp", "--units", "units"}
	commands := []struct {
		name  string
		env   []string
		stdin string
		args  []string
		want  string
	}{
		{"run", nil, "", append([]string{"run", "units/asker"}, file...), `{"answer":"Ada 28"}`},
		{"test", nil, "", append([]string{"test", "units/asker"}, file...), "1 passed, 0 failed"},
		{"shell", nil, "bash /run.sh; cat /io/output.json", append([]string{"shell", "units/asker"}, file...), `{"answer":"Ada 0"}`},
		{"mcp, with a file", nil, askedTool, append(mcp, file...), `"answer":"Ada 28"`},
		{"mcp, with the file of the environment", []string{"AOD_MODELS=models.yaml"}, askedTool, append(mcp, secret), `"answer":"Ada 28"`},
		{"mcp, with the key of the environment", []string{"OPENAI_API_KEY=" + askerKey}, askedTool, append(mcp, secret), `"answer":"Ada 28"`},
		{"mcp, with the key of a file", nil, askedTool, append(mcp, secret, "--secret=OPENAI_API_KEY=key"), `"answer":"Ada 28"`},
		{"test, with the key of a file", nil, "", []string{"test", "units/asker", secret, "--secret=OPENAI_API_KEY=key"}, "1 passed, 0 failed"},
		{"mcp, without", nil, askedTool, append(mcp, secret), `"isError":true`},
	}
	for _, c := range commands {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			stdout, stderr, _ := a.run(c.env, c.stdin, c.args...)
			contains(t, stdout+stderr, c.want)
			if strings.HasSuffix(c.name, "of the environment") && len(c.env) > 0 && strings.HasPrefix(c.env[0], "OPENAI") {
				contains(t, stderr, "what is asked of the model small goes to http://127.0.0.1", "with the key of your environment")
			}
		})
	}
}

// A secret that nothing takes is refused before anything starts, and the hint says what takes some.
func TestASecretThatNothingTakesIsRefused(t *testing.T) {
	t.Parallel()
	a := newAskers(t)
	write(t, "FROM scratch\nCMD [\"/run\"]\n", a.home, "units", "caller", "Dockerfile")
	write(t, "name: caller\n", a.home, "units", "caller", "agent.yaml")
	write(t, "- {name: ask, capsule: asker}\n", a.home, "units", "caller", "tools.yaml")
	write(t, `{"input": {"type": "object"}, "output": {"type": "object"}}`, a.home, "units", "caller", "schema.json")
	write(t, "upstreams: {w: {url: \"https://w.invalid\", secret: w-key}}\n", a.home, "upstreams.yaml")
	nowhere := []string{"DOCKER_HOST=unix:///nonexistent/docker.sock"}
	for _, args := range [][]string{
		{"run", "units/asker"},
		{"run", "units/caller"},
		{"test", "units/asker"},
		{"shell", "units/asker"},
		{"mcp", "--units", "units"},
		{"mcp", "config", "claude", "--units", "units"},
		{"run", "units/asker", "--replay", "none.jsonl"},
	} {
		_, stderr, code := a.run(nowhere, "", append(args, "--secret", "sinner=signer")...)
		if code != 2 {
			t.Errorf("%v: exit code %d", args, code)
		}
		contains(t, stderr, `nothing takes a secret "sinner"`, "units take signer;", "providers of models take ANTHROPIC_API_KEY, OPENAI_API_KEY")
	}
	_, stderr, code := a.run(nowhere, "", "run", "units/caller", "--models", "models.yaml", "--upstreams", "upstreams.yaml", "--secret", "OPENAI_API_KEY=key")
	if code != 2 {
		t.Errorf("exit code %d", code)
	}
	contains(t, stderr, `nothing takes a secret "OPENAI_API_KEY"`, "units take signer; providers of models take p-key; upstreams take w-key")
	for _, known := range []string{"signer", "p-key", "w-key"} {
		_, stderr, _ := a.run(nowhere, "", "run", "units/caller", "--models", "models.yaml", "--upstreams", "upstreams.yaml", "--secret", known+"=key")
		if strings.Contains(stderr, "nothing takes") {
			t.Errorf("%s: %s", known, stderr)
		}
	}
	write(t, "{", a.home, "units", "asker", "schema.json") // nobody knows what a callee that can't be read takes
	if _, stderr, _ := a.run(nowhere, "", "run", "units/caller", "--secret", "other=key"); strings.Contains(stderr, "nothing takes") {
		t.Error(stderr)
	}
}
