package handoff

import (
	"net/http"
	"time"
)

// self is a run as it sees itself.
type self struct {
	Run      string     `json:"run"`
	Root     string     `json:"root"`
	Parent   *string    `json:"parent"`
	Unit     string     `json:"unit"`
	Depth    int        `json:"depth"` // handoffs between the root and it
	Deadline *time.Time `json:"deadline"`
}

func (h *Handler) getRun(w http.ResponseWriter, r *http.Request) error {
	return h.reply(w, r, http.StatusOK, h.caller().self())
}

func (c Caller) self() self {
	s := self{Run: c.Run, Root: c.Root, Unit: c.Unit, Depth: c.depth()}
	if c.Parent != "" {
		s.Parent = &c.Parent
	}
	if !c.Deadline.IsZero() {
		deadline := c.Deadline.UTC()
		s.Deadline = &deadline
	}
	return s
}

func (a answers) getHealth(w http.ResponseWriter, r *http.Request) error {
	return a.reply(w, r, http.StatusOK, map[string]string{"status": "healthy", "service": "aod"})
}
