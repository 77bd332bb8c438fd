package web

import (
	"context"
	"net/http"
	"strings"

	"github.com/agent-on-demand/aod/api"
)

// fileView is a file as a run's page shows it.
type fileView struct {
	api.File
	Run string
}

func (p *Page) filesOf(_ context.Context, record api.Record) []fileView {
	var all []fileView
	for _, f := range record.Files {
		all = append(all, fileView{f, record.ID})
	}
	return all
}

// runFile answers with a file, to be saved or as a picture.
func (p *Page) runFile(w http.ResponseWriter, r *request) error {
	name := strings.TrimPrefix(r.URL.Path, "/ui/runs/"+r.PathValue("id")+"/files/")
	file, _, err := p.svc.Files.Open(r.Context(), r.PathValue("id"), name)
	if err != nil {
		return err
	}
	defer file.Close()
	w.Header().Set("Content-Type", "application/octet-stream")
	http.ServeContent(w, r.Request, "", r.frame.now, file)
	return nil
}
