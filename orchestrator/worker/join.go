package worker

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/access"
	"github.com/agent-on-demand/aod/internal/certs"
	"github.com/agent-on-demand/aod/internal/safefs"
	"github.com/agent-on-demand/aod/orchestrator/feature/workers/wire"
)

// Membership is what a worker has of the server that it has joined. Its file is for its owner alone.
type Membership struct {
	Server     string   `json:"server"`
	Home       string   `json:"home"` // id of the server's home; "": it has told none yet
	Pins       []string `json:"pins,omitempty"`
	CA         string   `json:"ca,omitempty"` // a file of roots in the place of the system's
	Name       string   `json:"name"`
	Credential string   `json:"credential"`
}

func (m Membership) trust() certs.Trust {
	if len(m.Pins) == 0 {
		return certs.Trust{CA: m.CA}
	}
	return certs.Trust{Pins: func() (pins []certs.Pin, err error) {
		for _, text := range m.Pins {
			pin, err := certs.ParsePin(text)
			if err != nil {
				return nil, err
			}
			pins = append(pins, pin)
		}
		return pins, nil
	}}
}

func memberFile(home string) string { return filepath.Join(home, "member.json") }

// ReadMembership returns what a home has joined. One that hasn't is a NotFound fault.
func ReadMembership(home string) (m Membership, err error) {
	raw, err := os.ReadFile(memberFile(home))
	if errors.Is(err, fs.ErrNotExist) {
		return m, fault.New(fault.NotFound, "this machine has joined no server").
			WithHint("on the server `aod worker add NAME >NAME.join`, then here `aod work --join NAME.join`")
	}
	if err == nil {
		err = json.Unmarshal(raw, &m)
	}
	if err != nil {
		return m, fault.Wrap(fault.Internal, err, "%q can't be read", memberFile(home))
	}
	return m, nil
}

// Invitation is what a machine joins a server with. One without a name and a home is for every node of a Swarm.
type Invitation struct {
	api.WorkerJoin
	CA   string // see Membership
	Node string // the id of this machine's node in a Swarm; "": it is in none
}

func (i Invitation) forNodes() bool { return i.Name == "" && i.Home == "" }

// Join enrols a home with an invitation, which is good once. A home that has joined with it already stays as it is; one
// that has joined another server, or under another name, is a Conflict fault, and nothing of it is changed. With an
// invitation for nodes it joins again when the server doesn't know it any more.
func Join(ctx context.Context, home string, invited Invitation, logger *slog.Logger) error {
	m, err := ReadMembership(home)
	switch {
	case err == nil && !invited.forNodes() && (m.Home != invited.Home || m.Name != invited.Name):
		return fault.New(fault.Conflict, "%q has joined the server at %s as %q already", home, m.Server, m.Name).
			WithHint("use a data directory of its own for each worker: --data DIR")
	case invited.forNodes() && invited.Node == "":
		return fault.New(fault.Conflict,
			"the engine of this machine is in no Swarm, and the file to join with is for nodes").
			WithHint("`aod worker add NAME` at the server invites a machine outside of the Swarm")
	case err != nil && !fault.Is(err, fault.NotFound):
		return err
	case err != nil:
		m = Membership{Home: invited.Home, Name: invited.Name, Credential: access.NewToken()}
	}
	m.Server, m.Pins, m.CA = invited.Server, invited.Pins, invited.CA // they may have changed
	// before the server is told: its answer may be lost
	if err := keepMembership(home, m); err != nil {
		return err
	}
	joined, err := enrol(ctx, m, invited, logger)
	if err != nil || joined == nil {
		return err
	}
	m.Name, m.Home = joined.Name, joined.Home
	return keepMembership(home, m)
}

// Reach asks the server that a home has joined whether it knows the worker. The error is a NotFound fault for a home
// that has joined none, Unauthorized for a worker that was removed, Unavailable where no server answers.
func Reach(ctx context.Context, home string) (Membership, error) {
	m, err := ReadMembership(home)
	if err != nil {
		return m, err
	}
	own, err := newLink(m, slog.New(slog.DiscardHandler))
	if err != nil {
		return m, err
	}
	return m, own.call(ctx, wire.Units, wire.Used{}, nil)
}

func keepMembership(home string, m Membership) error {
	raw, err := json.Marshal(m)
	if err == nil {
		err = os.MkdirAll(home, 0o700)
	}
	if err == nil {
		err = safefs.Replace(memberFile(home), raw, safefs.ReplaceOptions{Mode: 0o600, OneWriter: true, Synced: true})
	}
	if err != nil {
		return fault.Wrap(fault.Unavailable, err, "the data directory %q can't be written", home)
	}
	return nil
}

// enrol has the server know the credential, unless it does: then it returns nil.
func enrol(
	ctx context.Context, m Membership, invited Invitation, logger *slog.Logger,
) (joined *wire.Enrolled, err error) {
	own, err := newLink(m, logger)
	if err != nil {
		return nil, err
	}
	return joined, own.repeat(ctx, "join", func() error {
		if m.Home != "" {
			if err := own.call(ctx, wire.Renew, wire.Held{}, nil); !errors.Is(err, errRevoked) {
				return err
			}
		}
		guest := *own
		guest.credential = invited.Token
		var answer wire.Enrolled
		err := guest.call(ctx, wire.Enrol, wire.Enrolment{Credential: m.Credential, Node: invited.Node}, &answer)
		switch {
		case errors.Is(err, errRevoked):
			return fault.New(fault.Unauthorized, "the invitation was used, has expired or was taken back").
				WithHint("`aod worker add NAME` at the server makes another one; `aod worker rm NAME` comes before it")
		case err == nil && m.Home != "" && answer.Home != m.Home:
			return fault.New(fault.Forbidden, "another server answers at %s than the one that has invited", m.Server)
		}
		joined = &answer
		return err
	})
}
