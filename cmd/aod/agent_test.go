package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/agent-on-demand/aod/client/agenthttp"
)

// startedAgents are those that scripts have started, by the directory of the unit.
var startedAgents sync.Map

// agent starts an agent that counts words, and writes the agent.yaml of a unit for it, and
// below that of one with a secret: agent DIR. With ! it ends, as it does with the script.
func agent(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 1 {
		ts.Fatalf("usage: [!] agent DIR")
	}
	dir := ts.MkAbs(args[0])
	if started, _ := startedAgents.Load(dir); neg {
		started.(*httptest.Server).Close()
		return
	}
	server := httptest.NewServer(http.HandlerFunc(countWords))
	startedAgents.Store(dir, server)
	ts.Defer(server.Close)
	yaml := "name: words\nkind: remote\nremote:\n  url: " + server.URL + "\n"
	ts.Check(os.WriteFile(filepath.Join(dir, "agent.yaml"), []byte(yaml), 0o600))
	yaml += "  auth: {secret: words-token}\n"
	ts.Check(os.WriteFile(filepath.Join(dir, "secretive", "agent.yaml"), []byte(yaml), 0o600))
}

// countWords does what the text says, or counts its words.
func countWords(w http.ResponseWriter, r *http.Request) {
	var asked agenthttp.Request
	var inputs struct{ Text string }
	if json.NewDecoder(r.Body).Decode(&asked) != nil || json.Unmarshal(asked.Inputs, &inputs) != nil {
		http.Error(w, "no request", http.StatusBadRequest)
		return
	}
	outputs := fmt.Sprintf(`{"words":%d}`, len(strings.Fields(inputs.Text)))
	switch inputs.Text {
	case "fail":
		fmt.Fprintf(w, `{"request_id":%q,"ok":false,"error":"no such thing"}`, asked.RequestID)
		return
	case "hang":
		<-r.Context().Done()
		return
	case "wrong":
		outputs = `{"words":"three"}`
	case "who":
		outputs = fmt.Sprintf(`{"who":%q}`, r.Header.Get("Authorization"))
	}
	fmt.Fprintf(w, `{"request_id":%q,"status":"ok","outputs":%s}`, asked.RequestID, outputs)
}
