package unit

import (
	"time"

	"github.com/agent-on-demand/aod/capsule"
	"github.com/agent-on-demand/aod/fault"
)

// Kind says what sort of thing a unit is.
type Kind string

// The kinds of unit that a directory can hold. They are stored alike.
const (
	Capsule Kind = capsule.KindCapsule
	AU      Kind = capsule.KindAU
	Remote  Kind = capsule.KindRemote
)

// Where a version came from.
const (
	FromDirectory = "directory"
	FromUpload    = "upload"
)

// Unit is one version of something that can be run. It is the caller's own, but for the
// capsule, which is shared: don't change it.
type Unit struct {
	Name    string
	Kind    Kind
	Version string           // of the content: 16 hex digits
	Source  string           // FromDirectory or FromUpload
	Origin  string           // the directory that it was read from; "" for an upload
	Capsule *capsule.Capsule // loaded from the stored version, where its Dir is
	Since   time.Time        // when this version was first seen, in UTC
	Problem *fault.Error     // what is wrong with a newer state, which is not served; nil: nothing
}

// Listed is one line of a list of units.
type Listed struct {
	Unit    *Unit // nil: it was never good, or another has its name
	Name    string
	Origin  string       // the directory; "" for an upload
	Problem *fault.Error // nil: nothing is wrong
}

// versionDigits is how much of a digest names a version.
const versionDigits = 16

func versionOf(digest string) string { return digest[:versionDigits] }

func isVersion(s string) bool { return len(s) == versionDigits && isHex(s) }

func isDigest(s string) bool { return len(s) == 64 && isHex(s) }

func isHex(s string) bool {
	for _, r := range s {
		if (r < '0' || r > '9') && (r < 'a' || r > 'f') {
			return false
		}
	}
	return true
}
