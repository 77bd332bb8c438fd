package httpapi

import (
	"cmp"
	"context"
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/contract"
	"github.com/agent-on-demand/aod/internal/access"
	"github.com/agent-on-demand/aod/internal/bytegate"
)

// Options configure the API, beside the Service.
type Options struct {
	Token  string         // that a request must carry, with every scope; "" only with NoAuth
	Tokens *access.Tokens // further ones, each with its scopes; nil: none
	NoAuth bool           // every client may do everything

	Listen  string   // HOST:PORT, which a request's Host header may name
	Hosts   []string // further names that it may have: NAME with any port, or NAME:PORT
	Origins []string // of web pages that may call: SCHEME://HOST[:PORT]; none by default

	UploadBytes  int64 // of one request as a whole; 0 is 256 MiB
	PayloadBytes int64 // of an input's JSON; 0 is contract.DefaultMaxBytes

	Memory *bytegate.Gate // of what all requests hold in memory; nil: one of the API's own

	FileRoots []string // directories of this host that POST /execute may take files from
	// ExecuteProblems has POST /execute answer what is wrong with a run with problems and
	// their status, where the AOD standard says 200 and "success": false.
	ExecuteProblems bool

	// A2A tells what is offered to clients of A2A; nil: it is off.
	A2A func(context.Context) (api.A2AStatus, error)

	Mounts []Mount // further protocols beside the API's own addresses

	Logger  *slog.Logger        // nil: nothing is logged
	Version string              // of the program, for the OpenAPI document; may be empty
	Metrics prometheus.Gatherer // for GET /metrics; nil: nothing
}

const defaultUploadBytes = 256 << 20

func (o Options) check() error {
	switch {
	case o.Token == "" && !o.NoAuth:
		return fault.New(fault.Input, "a server without a token would obey anybody").
			WithHint("give it a token, or say that it needs none")
	case o.Token != "" && o.NoAuth:
		return fault.New(fault.Input, "a token is given and none is asked for").WithHint("choose one of the two")
	case o.UploadBytes < 0 || o.PayloadBytes < 0:
		return fault.New(fault.Input, "a limit is below zero")
	}
	return nil
}

func (o Options) withDefaults() Options {
	o.UploadBytes = cmp.Or(o.UploadBytes, defaultUploadBytes)
	if o.Memory == nil {
		o.Memory = bytegate.New(0)
	}
	o.PayloadBytes = cmp.Or(o.PayloadBytes, contract.DefaultMaxBytes)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Metrics == nil {
		o.Metrics = prometheus.NewRegistry()
	}
	return o
}
