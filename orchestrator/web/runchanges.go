package web

import (
	"encoding/json"
	"io"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/terminal"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
)

// changePages are the pages of what runs made of their workspaces.
type changePages struct{ runPages }

func (p changePages) addRunChanges() {
	p.page("/ui/runs/{id}/changes", p.runChanges)
	p.read("GET /ui/runs/{id}/changes.patch", p.savePatch)
}

// Bounds of the page of changes: of all files, and of one alone.
var (
	allChanges = diffBounds{Bytes: 16 << 20, Files: 200, Lines: 1200, Each: 200}
	oneChange  = diffBounds{Bytes: 16 << 20, Files: 4, Lines: 4000, Each: 4000}
)

// mostChanges is how many changed files are listed, and mostChangeBytes how much of their list is read.
const mostChanges, mostChangeBytes = 1000, 32 << 20

// changesView is what a run made of the files of its workspace.
type changesView struct {
	ID       string
	Partial  bool
	Warnings []string
	First    []changeRow // to look at
	Rows     []changeRow
	More     int64  // files that aren't listed
	One      string // the file that is shown alone; "": all are
	Sums     string
	Bytes    int64
}

// changeRow is a changed file.
type changeRow struct {
	api.Change
	Run    string
	Diff   *fileDiff // nil: it isn't shown
	Anchor string
	Shown  string // its path, as it can be seen
	Open   bool
}

// Word is what happened to the file.
func (r changeRow) Word() string {
	return map[string]string{api.OpAdd: "added", api.OpModify: "modified", api.OpDelete: "deleted"}[r.Op]
}

// runChanges is the page of a run's changes, or of one changed file.
func (p changePages) runChanges(r *request) (content, error) {
	v, err := p.runOf(r, "changes")
	if err != nil {
		return content{}, err
	}
	if v.Changes == nil && !v.Ended {
		return p.contentOf(v, part{"changes", "changes-none", nil}), nil
	}
	found, err := p.changesOf(r, v.ID)
	if err != nil {
		return content{}, err
	}
	one := r.URL.Query().Get("file")
	view, err := newChanges(v.ID, found, one)
	if err != nil {
		return content{}, err
	}
	if err := p.addDiffs(r, &view); err != nil {
		return content{}, err
	}
	return p.contentOf(v, part{"changes", "changes", view}), nil
}

// changesOf reads the list of a run's changes.
func (p changePages) changesOf(r *request, id string) (found api.Changes, err error) {
	list, err := p.svc.Files.Changes(r.Context(), id)
	if err != nil {
		return found, err
	}
	defer list.Close()
	if err := json.NewDecoder(io.LimitReader(list, mostChangeBytes)).Decode(&found); err != nil {
		return found, fault.Wrap(fault.Internal, err, "the list of the changes can't be read").
			WithHint("save the patch, or look at it with `aod diff %s`", id)
	}
	return found, nil
}

// newChanges lists changes, those first that a person should look at.
func newChanges(id string, found api.Changes, one string) (changesView, error) {
	view := changesView{ID: id, Partial: found.Partial, One: one}
	for _, warning := range found.Warnings {
		view.Warnings = append(view.Warnings, terminal.Plain(warning))
	}
	var mind, rest []changeRow
	ops := map[string]int64{}
	for i, c := range found.Changes {
		ops[c.Op]++
		view.Bytes += c.Size
		if one != "" && c.Path != one {
			continue
		}
		row := changeRow{
			Change: c, Run: id, Anchor: "f" + strconv.Itoa(i+1), Shown: shownLine([]byte(c.Path)),
		}
		if len(row.Mind) > 0 {
			mind = append(mind, row)
		} else {
			rest = append(rest, row)
		}
	}
	if one != "" && mind == nil && rest == nil {
		return view, fault.New(fault.NotFound, "the run changed no such file").
			WithHint("its page of changes lists them")
	}
	view.Rows = slices.Concat(mind, rest)
	if len(view.Rows) > mostChanges {
		view.More, view.Rows = int64(len(view.Rows)-mostChanges), view.Rows[:mostChanges]
	}
	view.First = view.Rows[:min(len(mind), len(view.Rows))]
	view.Sums = opsText(ops)
	return view, nil
}

// opsText is how many files were changed in each way.
func opsText(ops map[string]int64) string {
	var all []string
	for _, op := range []string{api.OpAdd, api.OpModify, api.OpDelete} {
		if ops[op] > 0 {
			all = append(all, num(ops[op])+" "+changeRow{Change: api.Change{Op: op}}.Word())
		}
	}
	return strings.Join(all, ", ")
}

// addDiffs puts what the patch says to the files. Those to look at first have the first lines of what is shown.
func (p changePages) addDiffs(r *request, view *changesView) error {
	patch, most, err := p.openPatch(r, view.ID, view.One)
	if err != nil {
		return err
	}
	defer func() { _ = patch.Close() }() // read only
	files, _, err := readDiff(patch, most)
	if err != nil {
		return fault.Wrap(fault.Internal, err, "the patch can't be read").WithHint("save it, and try again")
	}
	byName := map[string]*fileDiff{}
	for _, f := range files {
		// a file that has become a link, or the reverse, is told in two parts
		if known := byName[f.Name]; known != nil {
			known.join(f)
			continue
		}
		byName[f.Name] = f
	}
	const open = 400 // lines of all that is open
	lines := 0
	for i := range view.Rows {
		row := &view.Rows[i]
		if row.Diff = byName[row.Path]; row.Diff != nil {
			row.Diff.Name = row.Shown
			lines += len(row.Diff.Rows)
			row.Open = lines <= open || view.One != ""
		}
	}
	return nil
}

func (f *fileDiff) join(more *fileDiff) {
	f.Told, f.Rows = append(f.Told, more.Told...), append(f.Rows, more.Rows...)
	f.Plus, f.Minus, f.Left = f.Plus+more.Plus, f.Minus+more.Minus, f.Left+more.Left
	f.Binary = f.Binary || more.Binary
}

func (p changePages) openPatch(r *request, id, name string) (io.ReadSeekCloser, diffBounds, error) {
	if name != "" {
		patch, err := p.svc.Files.PatchOf(r.Context(), id, name)
		return patch, oneChange, err
	}
	patch, err := p.svc.Files.Patch(r.Context(), id)
	return patch, allChanges, err
}

// savePatch answers with the patch, or with that of one file. Nothing is applied here.
func (p changePages) savePatch(w http.ResponseWriter, r *request) error {
	id, name := r.PathValue("id"), r.URL.Query().Get("file")
	patch, _, err := p.openPatch(r, id, name)
	if err != nil {
		return err
	}
	defer func() { _ = patch.Close() }() // read only
	saved := "changes.patch"
	if name != "" {
		saved = path.Base(name) + ".patch"
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Disposition", httpwire.Attachment(terminal.Plain(saved)))
	http.ServeContent(w, r.Request, "", r.frame.now, patch)
	return nil
}
