package cli

import (
	"encoding/json"
	"path/filepath"
	"time"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/cmd/aod/config"
	"github.com/agent-on-demand/aod/internal/certs"
	"github.com/agent-on-demand/aod/internal/safefs"
)

// Serving is what `aod serve` writes into its home beside its address, for commands of this machine.
type Serving struct {
	Listens []string    `json:"listens"`                // the addresses of the API and of gRPC
	Pins    []certs.Pin `json:"pins,omitempty"`         // of its key; none: it speaks no TLS
	Until   *time.Time  `json:"valid_until,omitempty"`  // the end of its certificate
	Problem string      `json:"problem,omitempty"`      // why the certificate in its files isn't in use
	Hint    string      `json:"problem_hint,omitempty"` // what mends that
}

// NoTLS says what to do about a server that others reach without TLS.
const NoTLS = "whoever is on the way can read tokens and all data: set tls: self, or tls with cert and key, or " +
	"listen on 127.0.0.1 behind a proxy with TLS"

// Public are the addresses that other machines can reach.
func (s Serving) Public() (all []string) {
	for _, address := range s.Listens {
		if config.IsPublic(address) {
			all = append(all, address)
		}
	}
	return all
}

const maxServing = 64 << 10

// ServingFile is the file of it.
func ServingFile(home string) string { return filepath.Join(home, "serving.json") }

// Serving returns what the server of the data directory has written. LocalServer says whether there is one.
func (env *Env) Serving() (now Serving, err error) { return ReadServing(env.Home()) }

// ReadServing returns what the server with a home has written.
func ReadServing(home string) (now Serving, err error) {
	raw, err := safefs.ReadNamed(ServingFile(home), maxServing)
	if err == nil {
		err = json.Unmarshal(raw, &now)
	}
	if err != nil {
		return now, fault.Wrap(fault.Unavailable, err, "the server of this data directory doesn't say what it serves").
			WithHint("is it of an older version? start it again")
	}
	return now, nil
}
