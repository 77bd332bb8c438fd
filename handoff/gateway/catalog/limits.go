package catalog

import (
	"cmp"
	_ "embed" // the table of limits
	"sync"

	"github.com/agent-on-demand/aod/internal/wire/strictyaml"
)

//go:embed limits.yaml
var limitsFile []byte

// Limits are what a model can do. The zero value of each: nobody knows.
type Limits struct {
	Context   int64 // tokens that it can read
	MaxOutput int64 // tokens of an answer at most
	Images    *bool // it reads images
}

var limits = sync.OnceValue(func() knownTable[Limits] {
	return readKnown(limitsFile, "limits", func(r *reader, at string, v any) *Limits {
		l := &Limits{}
		r.Object(at, v, strictyaml.Fields{
			"context": r.integer(&l.Context, maxTokens), "max_output": r.integer(&l.MaxOutput, maxTokens),
			"images": r.flag(&l.Images),
		})
		return l
	})
})

// KnownLimits returns what a model of a provider can do, by a table of the date asOf.
func KnownLimits(p Provider, model string) (l Limits, asOf string) {
	if known := limits().of(p, model); known != nil {
		l = *known
	}
	return l, limits().asOf
}

// Limits returns what holds for a model: what its file says, else what is known of all of its use, of which any may
// answer. That is the largest context, the shortest answer, and images if all of them read them. MaxOutput is
// DefaultMaxOutput at most, unless the file says more.
func (c Catalog) Limits(m Model) Limits {
	known := Limits{MaxOutput: DefaultMaxOutput, Images: new(true)}
	open := false
	for _, u := range m.Use {
		l, _ := KnownLimits(c.Providers[u.Provider], u.Model)
		known.Context, open = max(known.Context, l.Context), open || l.Context == 0
		known.MaxOutput = min(known.MaxOutput, cmp.Or(l.MaxOutput, DefaultMaxOutput))
		known.Images = new(*known.Images && l.Images != nil && *l.Images)
	}
	if open {
		known.Context = 0
	}
	return Limits{
		Context: cmp.Or(m.Context, known.Context), MaxOutput: cmp.Or(m.MaxOutput, known.MaxOutput),
		Images: cmp.Or(m.Images, known.Images),
	}
}
