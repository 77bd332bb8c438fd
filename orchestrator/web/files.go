package web

import (
	"context"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/orchestrator/web/preview"
)

// fileView is a file as a run's page shows it.
type fileView struct {
	api.File
	preview.Preview
	Path string // of its bytes, below /ui/
}

// fileList is the files of a run: those that it made, or that it was given.
type fileList struct {
	Key, Title string
	Files      []fileView
}

// opener opens a file of a run or of a question.
type opener func(ctx context.Context, id, name string) (*os.File, api.File, error)

// mostPreviews is how many files of a run are opened to be shown.
const mostPreviews = 20

// filesOf are the files that a run made, with previews of the first.
func (p runPages) filesOf(ctx context.Context, record api.Record) []fileView {
	return viewsOf(ctx, record.ID, "files", record.Files, p.svc.Files.Open)
}

// givenTo are the files that a run was given, as filesOf are what it made. Where its input was masked there are none.
func (p runPages) givenTo(ctx context.Context, run string) []fileView {
	_, given, err := p.svc.InputOf(ctx, run)
	if err != nil {
		return nil
	}
	files := make([]api.File, len(given))
	for i, f := range given {
		files[i] = api.File{Name: f.Name, SizeBytes: f.Size}
	}
	return viewsOf(ctx, run, "given", files, p.svc.Files.OpenInput)
}

func viewsOf(ctx context.Context, run, below string, files []api.File, open opener) []fileView {
	all := make([]fileView, 0, len(files))
	for i, f := range files {
		view := fileView{File: f, Path: "runs/" + run + "/" + below + "/" + (&url.URL{Path: f.Name}).EscapedPath()}
		if i < mostPreviews {
			view.Preview = previewOf(ctx, run, f, open)
		} else {
			view.Reason = "the first 20 files are shown"
		}
		all = append(all, view)
	}
	return all
}

func previewOf(ctx context.Context, run string, f api.File, open opener) preview.Preview {
	file, _, err := open(ctx, run, f.Name)
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

// Shown are the files of which something is shown.
func (l fileList) Shown() []fileView { return slices.DeleteFunc(slices.Clone(l.Files), fileView.Plain) }

// Unshown are the others.
func (l fileList) Unshown() []fileView {
	return slices.DeleteFunc(slices.Clone(l.Files), func(f fileView) bool { return !f.Plain() })
}

// fileOf answers with a file of what has an id, below a part of its address, to be saved or as a picture.
func fileOf(what, below string, open opener) handler {
	return func(w http.ResponseWriter, r *request) error {
		id := r.PathValue("id")
		name := strings.TrimPrefix(r.URL.Path, "/ui/"+what+"/"+id+"/"+below+"/")
		file, info, err := open(r.Context(), id, name)
		if err != nil {
			return err
		}
		defer func() { _ = file.Close() }() // it was only read
		preview.Serve(w, r.Request, file, info.Name, info.SHA256)
		return nil
	}
}
