package config

import "github.com/agent-on-demand/aod/capsule/outside"

// WebhooksConfig holds the settings for webhooks, which tell receivers of the runs of a team.
type WebhooksConfig struct {
	Enabled bool     // there are some
	Private []string // hosts of receivers at addresses that aren't public; see Exceptions
}

const webhooksKey = "webhooks"

// settings is the table of the block webhooks. It can be set in the file only.
func (w *WebhooksConfig) settings() []setting {
	return []setting{
		{
			"enabled",
			boolean{&w.Enabled},
			"true",
			"let tokens with the scope run have receivers told of runs, at public addresses by https; false tells none",
		},
		{
			"private", egressExceptions(&w.Private), "",
			"hosts of such receivers without a public address or without TLS: a name, or name=address, which " +
				"isn't looked up",
		},
	}
}

// Exceptions returns the hosts of receivers that may be at addresses which aren't public.
func (w WebhooksConfig) Exceptions() []outside.Exception {
	return hostsOf(w.Private, outside.ParseException)
}
