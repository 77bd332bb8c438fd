package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"path/filepath"

	"github.com/agent-on-demand/aod/api"
)

const (
	talkUnit = "bench-talk"
	// talkProgram speaks the line format. It thinks for 20 ms.
	talkProgram = `import json, sys, time
for line in sys.stdin:
    if json.loads(line)["type"] == "user":
        time.sleep(0.02)
        print(json.dumps({"type": "assistant", "message": {"content": [{"type": "text", "text": "yes"}]}}), flush=True)
        print(json.dumps({"type": "result", "subtype": "success", "session_id": "s"}), flush=True)
`
	talkMessage = `{"type":"user","message":{"role":"user","content":[{"type":"text","text":"well?"}]}}`
)

// liveTurn has a turn with a program that lives on, by the API, and the same with the program in
// a container that we hold the pipes of.
func (b *bench) liveTurn(ctx context.Context) (part, error) {
	dir := filepath.Join(b.units(), "talk")
	for name, content := range map[string]string{
		"Dockerfile": "FROM aod/base\nCOPY talk.py /talk.py\n",
		"talk.py":    talkProgram,
		"agent.yaml": "name: " + talkUnit +
			"\nkind: agent\nagent: {command: [python3, -u, /talk.py], mode: interactive, protocol: stream-json}\n" +
			"session: {keep_alive: true}\n",
	} {
		if err := write(filepath.Join(dir, name), content); err != nil {
			return part{}, err
		}
	}
	image, err := b.build(ctx, filepath.Join(b.dir, "aod-data"), dir)
	if err != nil {
		return part{}, err
	}
	s, err := b.serve(ctx, serving{})
	if err != nil {
		return part{}, err
	}
	session, err := b.begin(ctx, s, talkUnit)
	if err != nil {
		return part{}, err
	}
	held, err := b.hold(ctx, image)
	if err != nil {
		return part{}, err
	}
	const turn, own = "a turn of a live session, API", "the program's own, by `docker run -i`"
	body := fmt.Sprintf(`{"session": %q, "input": {"message": "well?"}}`, session)
	g := group{beside: []string{own}, times: 7, ways: []*way{
		submission(turn, s.after,
			func(ctx context.Context) (api.Record, error) { return s.submit(ctx, body, waiting, http.StatusOK) }),
		{name: own, do: func(context.Context) error { return held.turn() }},
	}, aims: []aim{{of: turn, beside: own, more: 10}}}
	return g.measure(ctx, b.pairs)
}

// begin begins a session. It ends with the row.
func (b *bench) begin(ctx context.Context, s *server, unit string) (id string, err error) {
	raw, err := s.ask(ctx, http.MethodPost, "/v1/sessions", fmt.Sprintf(`{"unit": %q}`, unit), http.StatusCreated)
	if err != nil {
		return "", err
	}
	var session api.Session
	if err := json.Unmarshal(raw, &session); err != nil {
		return "", err
	}
	b.close = append(b.close, func() error {
		_, err := s.ask(context.WithoutCancel(ctx), http.MethodDelete, "/v1/sessions/"+session.ID, "", http.StatusOK)
		return err
	})
	return session.ID, nil
}

// heldProgram is a program whose pipes we hold.
type heldProgram struct {
	in  io.Writer
	out *bufio.Reader
}

func (b *bench) hold(ctx context.Context, image string) (*heldProgram, error) {
	cmd := exec.CommandContext(ctx, "docker", "run", "-i", "--rm", "--label", benchLabel, "--network", "none", image,
		"python3", "-u", "/talk.py")
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	b.close = append(b.close, func() error { return errors.Join(in.Close(), cmd.Wait()) })
	return &heldProgram{in: in, out: bufio.NewReader(out)}, nil
}

func (p *heldProgram) turn() error {
	if _, err := io.WriteString(p.in, talkMessage+"\n"); err != nil {
		return err
	}
	for range 2 { // what it says, and the end
		if _, err := p.out.ReadBytes('\n'); err != nil {
			return err
		}
	}
	return nil
}
