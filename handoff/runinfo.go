package handoff

import (
	"net/http"
	"time"
)

// runInfo is what a run is told about itself.
type runInfo struct {
	Run      string     `json:"run"`
	Root     string     `json:"root"`
	Parent   *string    `json:"parent"`
	Unit     string     `json:"unit"`
	Depth    int        `json:"depth"` // handoffs between the root and it
	Deadline *time.Time `json:"deadline"`
}

func (h *Handler) getRun(w http.ResponseWriter, r *http.Request) error {
	return h.reply(w, r, http.StatusOK, h.caller().info())
}

func (c Caller) info() runInfo {
	info := runInfo{Run: c.Run, Root: c.Root, Unit: c.Unit, Depth: c.depth()}
	if c.Parent != "" {
		info.Parent = &c.Parent
	}
	if !c.Deadline.IsZero() {
		deadline := c.Deadline.UTC()
		info.Deadline = &deadline
	}
	return info
}

func (s responder) getHealth(w http.ResponseWriter, r *http.Request) error {
	return s.reply(w, r, http.StatusOK, map[string]string{"status": "healthy", "service": "aod"})
}
