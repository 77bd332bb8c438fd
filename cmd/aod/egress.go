package main

import (
	"os"
	"strings"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/outside"
	"github.com/agent-on-demand/aod/cmd/aod/cli"
	"github.com/agent-on-demand/aod/cmd/aod/runflags"
	"github.com/agent-on-demand/aod/handoff/egress"
	"github.com/agent-on-demand/aod/handoff/upstream"
	"github.com/agent-on-demand/aod/internal/secrets"
)

// privateVariable has for runs on this machine what a server has in egress_private.
const privateVariable = "AOD_EGRESS_PRIVATE"

// localDoor is the way of runs on this machine to hosts by name. The error is an Input fault.
func localDoor() (*egress.Door, error) {
	var opts egress.Options
	for text := range strings.SplitSeq(os.Getenv(privateVariable), ",") {
		if text = strings.TrimSpace(text); text == "" {
			continue
		}
		e, err := outside.ParseException(text)
		if err != nil {
			return nil, fault.Wrap(fault.Input, err, "%s: %s", privateVariable, fault.Public(err).Msg).
				WithHint("%s", fault.Public(err).Hint)
		}
		opts.Private = append(opts.Private, e)
	}
	return egress.New(opts), nil
}

// localUpstreams are those that runs of a command may ask, with keys from the user's files.
func localUpstreams(kept secrets.Files, opts cli.LocalOptions) (*upstream.Upstreams, error) {
	table, err := runflags.ReadUpstreams(opts.Upstreams)
	if err != nil {
		return nil, err
	}
	upstreams, err := upstream.New(table, upstream.Options{Key: kept.Read})
	if err != nil {
		return nil, err
	}
	return upstreams, checkKeys(upstreams, opts.Asks)
}

// checkKeys refuses upstreams whose keys can't be used.
func checkKeys(upstreams *upstream.Upstreams, names []string) error {
	findings := upstreams.CheckKeys(names)
	if len(findings) == 0 {
		return nil
	}
	return fault.New(fault.Input, "there are upstreams without a key").WithFindings(findings)
}
