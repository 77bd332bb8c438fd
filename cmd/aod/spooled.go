package main

import (
	"errors"
	"io"

	"github.com/agent-on-demand/aod/orchestrator"
)

// spooled receives the files of a protocol's message, each of at most limit bytes, under the names
// that the input has for them; nil: there are none.
func spooled[F any](service *orchestrator.Service, limit int64, files []F, of func(F) (name string, content io.Reader)) (*orchestrator.Spool, error) {
	if len(files) == 0 {
		return nil, nil
	}
	spool, err := service.NewSpool()
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		name, content := of(f)
		if err := spool.Add("", name, content, limit); err != nil {
			return nil, errors.Join(err, spool.Remove())
		}
	}
	return spool, nil
}
