package web

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/flow"
	"github.com/agent-on-demand/aod/capsule/unit"
	"github.com/agent-on-demand/aod/internal/access"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
	"github.com/agent-on-demand/aod/orchestrator/web/graph"
)

// flowEditor is the page on which the text of a flow is changed.
type flowEditor struct {
	unitFlowView
	From     string            // the version whose text was opened; "": none, the unit can't be run
	Uploaded bool              // the server keeps its files; else they are the operator's
	Problem  *httpwire.Problem // why it isn't saved; nil: nobody asked for it, or it was
	Paths    []string          // of all nodes
	Node     *nodeForm         // that is filled in; nil: none is chosen
}

// numberedLines is up to how many lines there are numbers beside the text.
const numberedLines = 5000

// Numbered are the lines beside which there are numbers; none of a text that is longer.
func (e flowEditor) Numbered() []sourceLine {
	if len(e.Lines) > numberedLines {
		return nil
	}
	return e.Lines
}

// Found are the lines with findings.
func (e flowEditor) Found() (found []sourceLine) {
	for _, l := range e.Lines {
		if l.Findings != nil {
			found = append(found, l)
		}
	}
	return found
}

// Rows is how many lines the control of the text has.
func (e flowEditor) Rows() int { return min(max(len(e.Lines)+1, 16), numberedLines) }

// mayEdit refuses who may not see what they edit.
func mayEdit(ctx context.Context) error {
	if !access.May(ctx, access.Read) {
		return fault.New(fault.Forbidden, "a flow is edited by those who may see units and upload them").
			WithHint("sign in with a token of the scopes read and upload")
	}
	return nil
}

// editFlow shows a flow as it is, to be changed.
func (p flowPages) editFlow(w http.ResponseWriter, r *request) error {
	if err := mayEdit(r.Context()); err != nil {
		return err
	}
	name := r.PathValue("name")
	written, of, err := p.svc.Units.Flow(r.Context(), name, "")
	if err != nil {
		return err
	}
	e := &flowEditor{From: written.Version, Uploaded: p.isUpload(r.Context(), name)}
	if err := e.show(written, of, r.URL.Query().Get("node")); err != nil {
		return err
	}
	p.show(w, r, http.StatusOK, e.content())
	return nil
}

// isUpload reports whether the server keeps a unit's files.
func (p flowPages) isUpload(ctx context.Context, name string) bool {
	u, err := p.svc.Units.Get(ctx, name)
	return err == nil && u.Source == unit.FromUpload
}

// show draws a flow, places what was found in it, and makes the form of a node, "" being none.
func (e *flowEditor) show(written api.UnitFlow, of *flow.Flow, node string) (err error) {
	e.UnitFlow = written
	e.source(1, flow.MaxBytes)
	sent := e.Node
	e.Node = nil
	if of == nil {
		return nil
	}
	toForm := func(n *flow.Node, path string, as *graph.Node) {
		as.Href, as.Hint = "?node="+url.QueryEscape(path)+"#node", "go to its text and its form"
		e.Paths = append(e.Paths, path)
		if path == node {
			e.Node = newNodeForm(n, path, e.Text, sent)
		}
	}
	drawn := picture{whole: true, node: toForm, took: func(string, string) int { return 0 }}
	e.drawing, err = drawn.draw(of, "Graph of "+written.Unit)
	return err
}

func (e *flowEditor) content() content {
	return content{title: "Edit the flow of " + e.Unit, section: "units", parts: []part{
		{"head", "edit-head", e}, {"edit", "edit-text", e}, {"found", "edit-found", e},
	}}
}

// sentText is how large a text can be when it is sent: a browser makes six bytes of an end of a line.
// The fields of a node and its YAML may each have as much.
const sentText = 3*6*flow.MaxBytes + httpwire.SmallBody

// sendFlow checks a text that somebody has written, saves it as a new version, or has the browser save it.
func (p flowPages) sendFlow(w http.ResponseWriter, r *request) error {
	if err := mayEdit(r.Context()); err != nil {
		return err
	}
	form, err := fieldsUpTo(w, r, sentText)
	if err != nil {
		return err
	}
	name, text := r.PathValue("name"), textOf(form)
	e := &flowEditor{From: form.Get("from"), Uploaded: p.isUpload(r.Context(), name)}
	if form.Get("part") == "" { // else it is checked while somebody is still filling in
		text, err = e.apply(form, text)
	}
	do := form.Get("do")
	if err == nil && do == "download" {
		return downloadFlow(w, text)
	}
	if err == nil && do == "save" {
		if _, err = p.svc.Units.PutFlow(r.Context(), name, e.From, []byte(text)); err == nil {
			redirect(w, "../flow")
			return nil
		}
	}
	if err != nil && (do == "download" || do == "save") {
		problem := httpwire.ProblemOf(err)
		httpwire.NotesOf(r.Context()).Report(err, false)
		e.Problem = &problem
	}
	return p.showDraft(w, r, e, text)
}

// textOf is the text that was sent, with the ends of its lines that it had.
func textOf(form url.Values) string {
	text := plainEnds(form.Get("text"))
	if form.Get("ends") == "crlf" {
		text = strings.ReplaceAll(text, "\n", "\r\n")
	}
	return text
}

// EndsCRLF reports whether all lines end as those of DOS do.
func (e flowEditor) EndsCRLF() bool {
	ends := strings.Count(e.Text, "\r\n")
	return ends > 0 && ends == strings.Count(e.Text, "\n")
}

// downloadFlow has the browser save a text: the server writes nothing into directories of its operator.
func downloadFlow(w http.ResponseWriter, text string) error {
	w.Header().Set("Content-Type", "application/yaml; charset=utf-8")
	w.Header().Set("Content-Disposition", httpwire.Attachment(flow.FileName))
	_, _ = w.Write([]byte(text)) // the browser may have gone
	return nil
}

// showDraft answers with the editor of a text, or for a script with what was found in it. What was written is shown
// also where the unit has gone.
func (p flowPages) showDraft(w http.ResponseWriter, r *request, e *flowEditor, text string) error {
	drafted, of, err := p.svc.Units.Draft(r.Context(), r.PathValue("name"), []byte(text))
	if err != nil && e.Problem == nil {
		return err
	}
	if err != nil {
		drafted = api.UnitFlow{Unit: r.PathValue("name"), Text: text}
	}
	if err := e.show(drafted, of, r.PostForm.Get("node")); err != nil {
		return err
	}
	if r.PostForm.Get("part") == "found" {
		return p.piece(w, r, part{"found", "edit-found", e})
	}
	status := http.StatusOK
	if e.Problem != nil {
		status = e.Problem.Status
	}
	p.show(w, r, status, e.content())
	return nil
}
