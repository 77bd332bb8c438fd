package httpapi

import (
	"cmp"
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/agent-on-demand/aod/capsule/contract"
	"github.com/agent-on-demand/aod/fault"
)

// Options are what New needs beside the Service.
type Options struct {
	Token  string // that every request must bear; "" only with NoAuth
	NoAuth bool   // anybody who reaches the server may do everything

	Listen  string   // HOST:PORT, which a request's Host header may name
	Hosts   []string // further names that it may bear: NAME with any port, or NAME:PORT
	Origins []string // of web pages that may call: SCHEME://HOST[:PORT]; none by default

	UploadBytes  int64 // of all that one request sends; 0 is 256 MiB
	PayloadBytes int64 // of an input's JSON; 0 is contract.DefaultMaxBytes

	FileRoots []string // directories of this host from which POST /execute may take files

	Mounts []Mount // protocols beside the API's own addresses

	Logger  *slog.Logger        // nil: nothing is logged
	Version string              // of the program, for the OpenAPI document; may be empty
	Metrics prometheus.Gatherer // what GET /metrics shows; nil: nothing
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
	o.PayloadBytes = cmp.Or(o.PayloadBytes, contract.DefaultMaxBytes)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Metrics == nil {
		o.Metrics = prometheus.NewRegistry()
	}
	return o
}
