package main

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/outside"
	"github.com/agent-on-demand/aod/capsule/unit"
	"github.com/agent-on-demand/aod/handoff/egress"
	"github.com/agent-on-demand/aod/handoff/upstream"
	"github.com/agent-on-demand/aod/internal/safefs"
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

// sayReaches prints which hosts a unit, and what it may call, may reach by name.
func (a *app) sayReaches(u *unit.Unit, find finder) { a.sayReachesBut(u, find, map[string]bool{}) }

func (a *app) sayReachesBut(u *unit.Unit, find finder, said map[string]bool) {
	said[u.Name] = true
	if len(u.Policy.Egress) > 0 {
		a.note("%s may reach %s", printable(u.Name), strings.Join(u.Policy.Egress.Strings(), ", "))
	}
	for _, name := range u.Policy.Grants {
		if said[name] || find == nil {
			continue
		}
		if callee, err := find(context.Background(), name); err == nil { // the call says what is wrong
			a.sayReachesBut(callee, find, said)
		}
	}
}

// egressLine tells of a host that a run reaches for, or is refused.
func (o *output) egressLine(unit string, e api.EgressEvent) string {
	to := printable(net.JoinHostPort(e.Host, strconv.Itoa(e.Port)))
	if e.Refused != "" {
		return fmt.Sprintf("%s %s may not reach %s (%s)", o.style(yellow, "refused:"), printable(unit), to,
			printable(e.Refused))
	}
	return o.style(dim, fmt.Sprintf("%s reaches %s", printable(unit), to))
}

// egressText is a row of a run's page.
func egressText(row api.EgressRow) string {
	to := net.JoinHostPort(row.Host, strconv.Itoa(row.Port))
	if row.Host == egress.Others {
		to = "others"
	}
	text := fmt.Sprintf("%s: %s, %s in, %s out", to, plural(int(row.Tunnels), "tunnel"), bytesText(row.BytesIn),
		bytesText(row.BytesOut))
	if row.Refused > 0 {
		text += fmt.Sprintf(", refused %d times", row.Refused)
	}
	return text
}

// readUpstreams reads the table of a file, else that of AOD_UPSTREAMS; without both it is empty.
func readUpstreams(given string) (upstream.Table, error) {
	path := cmp.Or(given, os.Getenv("AOD_UPSTREAMS"))
	if path == "" {
		return nil, nil
	}
	raw, err := safefs.ReadNamed(path, maxTable)
	if err != nil {
		return nil, fault.Wrap(fault.Input, err, "the upstreams in %q can't be read", path).
			WithHint("name a YAML file with upstreams")
	}
	table, findings := upstream.ReadFile(path, raw)
	if len(findings) > 0 {
		return nil, fault.New(fault.Input, "the upstreams in %q are not valid", path).WithFindings(findings)
	}
	return table, nil
}

// localUpstreams are those that runs of a command may ask, with keys from the user's files.
func (a *app) localUpstreams(opts localOptions) (*upstream.Upstreams, error) {
	table, err := readUpstreams(opts.upstreams)
	if err != nil {
		return nil, err
	}
	upstreams, err := upstream.New(table,
		upstream.Options{Key: secrets.Files{Dir: filepath.Join(a.data, "secrets"), Named: opts.secrets}.Read})
	if err != nil {
		return nil, err
	}
	return upstreams, checkKeys(upstreams, opts.asks)
}

// checkKeys refuses upstreams whose keys can't be used.
func checkKeys(upstreams *upstream.Upstreams, names []string) error {
	findings := upstreams.CheckKeys(names)
	if len(findings) == 0 {
		return nil
	}
	return fault.New(fault.Input, "there are upstreams without a key").WithFindings(findings)
}
