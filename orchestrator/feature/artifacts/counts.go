package artifacts

import "github.com/agent-on-demand/aod/api/fault"

// The bounds of the artifacts of one run, in all its attempts.
const (
	maxArtifacts = 1000
	maxParts     = 10_000
	maxBytes     = 64 << 20 // of the parts together, as they are stored
	maxFiles     = 1000
	maxFileBytes = 1 << 30 // together; one has at most as many as the result may have
)

// counts are what a run has shown.
type counts struct {
	ids   map[string]bool
	began map[string]bool // the artifacts of this attempt, by id
	parts int
	bytes int
	files int
	size  int64 // bytes of the files
}

func newCounts() counts { return counts{ids: map[string]bool{}, began: map[string]bool{}} }

func (c *counts) add(id string, bytes int) {
	c.ids[id] = true
	c.parts, c.bytes = c.parts+1, c.bytes+bytes
}

// allows returns a TooLarge fault for a part that is one too many.
func (c *counts) allows(id string, bytes int) error {
	switch {
	case !c.ids[id] && len(c.ids) >= maxArtifacts:
		return fault.New(fault.TooLarge, "this run has shown %d artifacts already", len(c.ids)).
			WithHint("put more into one of them, or into the result")
	case c.parts >= maxParts:
		return fault.New(fault.TooLarge, "this run has shown its artifacts in %d parts already", c.parts).
			WithHint("send larger parts, or put the rest into the result")
	case c.bytes+bytes > maxBytes:
		return fault.New(fault.TooLarge, "the artifacts of this run have %d bytes; %d are allowed", c.bytes, maxBytes).
			WithHint("put what is large into a file")
	}
	return nil
}

// allowsFile returns a TooLarge fault for a file that is one too many, or larger than one may be; most 0
// bounds nothing.
func (c *counts) allowsFile(size, most int64) error {
	switch {
	case most > 0 && size > most:
		return fault.New(fault.TooLarge, "the file has %d bytes; %d are allowed", size, most).
			WithHint("raise limits.output in agent.yaml if it needs that much")
	case c.files >= maxFiles:
		return fault.New(fault.TooLarge, "this run has shown %d files already", c.files).
			WithHint("put the rest into the result, or into one archive")
	case c.size+size > maxFileBytes:
		return fault.New(fault.TooLarge, "the files that this run has shown have %d bytes; %d are allowed", c.size,
			maxFileBytes).
			WithHint("put the rest into the result")
	}
	return nil
}
