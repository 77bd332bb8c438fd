package outside

import (
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/lazyregexp"
)

// UpstreamPath is where the upstreams lie in the capsule API, and UpstreamAddress where a program in a sandbox
// finds one.
const (
	UpstreamPath    = "/upstream"
	UpstreamAddress = "http://127.0.0.1:7070" + UpstreamPath + "/"
)

var upstreamName = lazyregexp.New(`^[a-z0-9]([a-z0-9_-]{0,61}[a-z0-9])?$`)

// CheckUpstream reports whether an upstream can have a name. The error is an Input fault.
func CheckUpstream(name string) error {
	if upstreamName().MatchString(name) {
		return nil
	}
	return fault.New(fault.Input, "%s can't be the name of an upstream", fault.Quote(name)).
		WithHint("use up to 63 of a-z, 0-9, dash and underscore, such as weather")
}
