package web

import (
	"context"
	"net/http"
	"strings"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/orchestrator/web/preview"
)

// fileView is a file as a run's page shows it.
type fileView struct {
	api.File
	preview.Preview
	Run string
}

// mostPreviews is how many files of a run are opened to be shown.
const mostPreviews = 20

// filesOf are the files of a run, with previews of the first.
func (p runPages) filesOf(ctx context.Context, record api.Record) []fileView {
	all := make([]fileView, 0, len(record.Files))
	for i, f := range record.Files {
		view := fileView{File: f, Run: record.ID}
		if i < mostPreviews {
			view.Preview = p.previewOf(ctx, record.ID, f)
		} else {
			view.Reason = "the first 20 files are shown"
		}
		all = append(all, view)
	}
	return all
}

func (p runPages) previewOf(ctx context.Context, run string, f api.File) preview.Preview {
	file, _, err := p.svc.Files.Open(ctx, run, f.Name)
	if err != nil {
		return preview.Preview{Reason: "it can't be opened any more"}
	}
	defer func() { _ = file.Close() }() // it was only read
	const rows = 12
	shown := preview.Of(file, f.Name, f.SizeBytes)
	if shown.Table != nil {
		shown.Table = shown.Table.Top(rows)
		shown.Note = shown.Table.Counts()
	}
	return shown
}

// Pictured reports whether a file is shown as a picture.
func (f fileView) Pictured() bool { return f.Kind == preview.Picture || f.Kind == preview.Drawing }

// Plain reports whether there is nothing to show of a file but its name.
func (f fileView) Plain() bool { return f.Kind == preview.None }

// ShownFiles are the files of which something is shown.
func (v runView) ShownFiles() (shown []fileView) {
	for _, f := range v.Files {
		if !f.Plain() {
			shown = append(shown, f)
		}
	}
	return shown
}

// PlainFiles are the files of which nothing is shown.
func (v runView) PlainFiles() (plain []fileView) {
	for _, f := range v.Files {
		if f.Plain() {
			plain = append(plain, f)
		}
	}
	return plain
}

// runFile answers with a file, to be saved or as a picture.
func (p runPages) runFile(w http.ResponseWriter, r *request) error {
	name := strings.TrimPrefix(r.URL.Path, "/ui/runs/"+r.PathValue("id")+"/files/")
	file, info, err := p.svc.Files.Open(r.Context(), r.PathValue("id"), name)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }() // it was only read
	preview.Serve(w, r.Request, file, info.Name, info.SHA256)
	return nil
}
