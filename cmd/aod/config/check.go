package config

import (
	"fmt"
	"maps"
	"path/filepath"
	"runtime"
	"slices"

	"github.com/agent-on-demand/aod/internal/wire/quantity"
)

// settle fills in the values that depend on other settings.
func (l *loader) settle() {
	c := l.config
	if c.Concurrency == 0 {
		c.Concurrency = 2 * runtime.NumCPU()
	}
	if c.Starts == 0 {
		c.Starts = runtime.NumCPU()
	}
	if c.TokenFile == "" {
		c.TokenFile = filepath.Join(c.Data, "server", "token")
	}
	if c.Secrets == "" {
		c.Secrets = filepath.Join(c.Data, "secrets")
	}
	for name, u := range c.Unit {
		c.Unit[name] = settleUnit(u)
	}
}

// settleUnit has runs that change something outside go one at a time.
func settleUnit(u UnitConfig) UnitConfig {
	if u.Access == ReadWrite && u.Concurrency == 0 {
		u.Concurrency = 1
	}
	return u
}

// check reports settings that contradict one another.
func (l *loader) check() {
	c := l.config
	if c.NoAuth && !isLoopback(c.Listen) {
		l.contradiction("no_auth", "listen",
			fmt.Sprintf("everybody who can reach %s could run what they like", c.Listen),
			"listen on 127.0.0.1, or leave no_auth out and give callers the token")
	}
	if c.NoAuth && c.A2A.GRPC != "" && !isLoopback(c.A2A.GRPC) {
		l.contradiction("no_auth", "a2a.grpc",
			fmt.Sprintf("everybody who can reach %s could run what they like", c.A2A.GRPC),
			"let gRPC listen on 127.0.0.1, or leave no_auth out and give callers the token")
	}
	if c.PayloadLimit > c.UploadLimit {
		l.contradiction("payload_limit", "upload_limit",
			fmt.Sprintf("a payload of %s doesn't fit into a request of upload_limit, %s",
				quantity.SizeText(c.PayloadLimit), quantity.SizeText(c.UploadLimit)),
			"raise upload_limit, or lower payload_limit")
	}
	l.checkTLS()
	l.checkOIDC()
	for _, name := range slices.Sorted(maps.Keys(c.Unit)) {
		l.checkUnit(unitKey(name), c.Unit[name])
		l.checkPolicy(name, c.Unit[name])
	}
}

func (l *loader) checkUnit(unit string, u UnitConfig) {
	if u.Access == ReadWrite && u.Concurrency > 1 {
		l.contradiction(unit+".concurrency", unit+".access",
			"runs of a unit with access: read-write go one at a time",
			"leave it out, or say access: read-only")
	}
	if u.Timeout > l.config.MaxTimeout {
		l.contradiction(unit+".timeout", "max_timeout",
			fmt.Sprintf("it is longer than max_timeout, %s", quantity.DurationText(l.config.MaxTimeout)),
			"shorten it, or raise max_timeout")
	}
	l.checkAgents(unit, u)
}

// contradiction is reported at the first of two keys, or at the other if the first has its
// default.
func (l *loader) contradiction(key, other, message, hint string) {
	at, set := l.config.sources[key]
	if !set {
		at = l.config.sources[other]
	}
	l.report(at, key+": "+message, hint)
}
