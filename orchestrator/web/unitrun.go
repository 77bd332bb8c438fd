package web

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/contract"
	"github.com/agent-on-demand/aod/capsule/contract/form"
	"github.com/agent-on-demand/aod/capsule/unit"
	"github.com/agent-on-demand/aod/internal/access"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
	"github.com/agent-on-demand/aod/orchestrator/keys"
	"github.com/agent-on-demand/aod/orchestrator/spool"
)

// sent is what a browser sent of a unit's form.
type sent struct {
	upload
	names map[string][]string // of files in the input, by those of their controls
	taken map[string]bool     // names of files
	old   []spool.File        // of the run that the form was filled with
}

// runUnit begins a run with what its unit's form was filled with. Where that can't be, the form is shown again.
func (p unitPages) runUnit(w http.ResponseWriter, r *request) error {
	if !access.May(r.Context(), access.Read) { // what is refused is shown on the page of the unit
		return fault.New(fault.Forbidden, "a unit's form is for those who may see units and run them").
			WithHint("sign in with a token of the scopes read and run")
	}
	u, err := p.svc.Units.Get(r.Context(), r.PathValue("name"))
	if err != nil {
		return err
	}
	got, err := p.receive(r)
	if err != nil {
		return err
	}
	defer func() { _ = got.spool.Remove() }() // what no run took
	f, input, unread := p.filled(u, got)
	if f.edit(u, got.Values, input, unread) {
		return p.showForm(w, r, http.StatusOK, u, f)
	}
	id, err := p.begin(r, u, got, input, len(unread) > 0)
	if err == nil && id != "" {
		redirect(w, "../../runs/"+id)
		return nil
	}
	problem := httpwire.ProblemOf(cmp.Or[error](err, fault.New(fault.Input, "some fields can't be read")))
	httpwire.NotesOf(r.Context()).Report(err, false)
	f.refuse(problem, unread)
	if got.Has("part") { // a script shows it: a browser's console would call another status an error
		problem.Status = http.StatusOK
	}
	return p.showForm(w, r, problem.Status, u, f)
}

// receive reads a form as it comes.
func (p unitPages) receive(r *request) (*sent, error) {
	texts := p.opts.PayloadBytes + 2*form.MostIndented + httpwire.SmallBody
	got := &sent{upload: p.newUpload(texts), names: map[string][]string{}, taken: map[string]bool{}}
	got.text, got.place = got.takeText, got.nameFile
	return got, got.read(r)
}

// takeText knows which run the form was filled with before any file comes: their names depend on it.
func (s *sent) takeText(ctx context.Context, name, text string) (err error) {
	if name != "from" || text == "" {
		return nil
	}
	_, s.old, err = s.svc.InputOf(ctx, text)
	s.files += len(s.old)
	for _, f := range s.old {
		s.taken[f.Name] = true
	}
	return err
}

// nameFile gives a file a name that no other one has.
func (s *sent) nameFile(control, base string) (field, name string) {
	name = base
	for n := 2; s.taken[name]; n++ {
		name = path.Join(strconv.Itoa(n), base)
	}
	s.taken[name] = true
	s.names[control] = append(s.names[control], name)
	return "", name
}

// filled is the form with what was sent, and the input that it makes.
func (p unitPages) filled(u *unit.Unit, got *sent) (*unitForm, json.RawMessage, []fault.Finding) {
	f := p.newForm(u)
	fields := f.Root.Field
	if f.AsJSON = f.AsJSON || got.Get("mode") == "json"; f.AsJSON {
		fields = asJSON(u.Contract.Input)
	}
	drop(got.Values)
	root, input, unread := form.Read(fields, form.Posted{Values: got.Values, Files: got.names})
	f.Root, f.From = root, got.Get("from")
	f.Timeout, f.Metadata, f.Context = got.Get("timeout"), got.Get("metadata"), got.Get("context")
	f.keep(got.old)
	return f, input, unread
}

// pressed is the control whose button of a kind was pressed: add, or less; "": none.
func pressed(values url.Values, kind string) string { return unnamed.Replace(values.Get(kind)) }

// drop takes out what was posted of a row that is to go.
func drop(values url.Values) {
	gone := pressed(values, "less")
	for name := range values {
		if at := strings.TrimPrefix(name, "#"); gone != "" && (at == gone || strings.HasPrefix(at, gone+"/")) {
			delete(values, name)
		}
	}
}

// rows adds a row, or notes that one has gone. It reports whether a button for that was pressed.
func (f *unitForm) rows(values url.Values) bool {
	add, less := pressed(values, "add"), pressed(values, "less")
	switch {
	case add != "":
		if at := f.Root.At(add); at.Pointer == add {
			f.focus = firstIn(at.Add())
		}
	case less != "":
		f.focus = f.Root.At(less[:max(strings.LastIndex(less, "/"), 0)])
	}
	return add != "" || less != ""
}

// edit changes the form as one of its buttons says. It reports whether no run was to begin.
func (f *unitForm) edit(u *unit.Unit, values url.Values, input json.RawMessage, unread []fault.Finding) bool {
	as := values.Get("as")
	switch {
	case f.rows(values):
		return true
	case as != "" && len(unread) > 0:
		f.focus = contract.Place(f.Root, unread)
	case as == "json":
		f.AsJSON, f.Root = true, form.Fill(asJSON(u.Contract.Input), input)
	case as != "":
		f.AsJSON, f.Root = !f.fields, form.Fill(u.Contract.Input.Form(), input)
	}
	return as != ""
}

// firstIn is the first control in one that can have the focus.
func firstIn(c *form.Control) *form.Control {
	for c != nil && c.Kind == form.Object && len(c.Parts) > 0 {
		c = c.Parts[0]
	}
	return c
}

// begin begins a run. Where something can't be read it only checks the rest, and the id is "".
func (p unitPages) begin(r *request, u *unit.Unit, got *sent, input json.RawMessage, onlyCheck bool) (string, error) {
	sub, err := got.submission(u, input)
	if err != nil {
		return "", err
	}
	if sub.TraceParent = httpwire.TraceParent(r.Request); onlyCheck {
		return "", p.svc.Check(r.Context(), sub)
	}
	record, _, err := p.svc.Submit(r.Context(), sub)
	return record.ID, err
}

// submission is what was sent, as the Service takes it.
func (s *sent) submission(u *unit.Unit, input json.RawMessage) (sub spool.Submission, err error) {
	sub = spool.Submission{Unit: u.Name, Input: input, Context: strings.TrimSpace(s.Get("context"))}
	if sub.Timeout, err = httpwire.Timeout(strings.TrimSpace(s.Get("timeout"))); err != nil {
		return sub, err
	}
	if sub.Metadata, err = metadataOf(s.Get("metadata")); err != nil {
		return sub, err
	}
	if err := s.again(u, input); err != nil {
		return sub, err
	}
	sub.Files = s.spool
	return sub, s.sign(&sub)
}

// sign makes the submission's key of the form's and of all that was asked for: what is sent again joins the run, and a
// form that was changed after it was sent begins another one.
func (s *sent) sign(sub *spool.Submission) error {
	const most = 64
	sub.Key = s.Get("key")
	if sub.Key == "" || len(sub.Key) > most {
		return fault.New(fault.BadRequest, "this isn't the form of a unit's page").WithHint("load the page again")
	}
	key, err := keys.Of(access.Owner{}, *sub)
	sub.Key += "/" + key.Fingerprint
	return err
}

// again gives those files of the earlier run again that the input names.
func (s *sent) again(u *unit.Unit, input json.RawMessage) (err error) {
	wanted := map[string]bool{}
	if payload, err := contract.Decode(input, int64(len(input))); err == nil { // else the Service says what is wrong
		for _, ref := range u.Contract.Input.FileRefs(payload) {
			wanted[ref.Name] = true
		}
	}
	for _, f := range s.old {
		if err == nil && wanted[f.Name] && s.spool == nil {
			s.spool, err = s.svc.NewSpool()
		}
		if err == nil && wanted[f.Name] {
			err = s.spool.Link(f.Path, f)
		}
	}
	return err
}

// metadataOf reads lines of KEY:VALUE.
func metadataOf(text string) (map[string]string, error) {
	all := map[string]string{}
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		key, value, ok := strings.Cut(line, ":")
		if !ok {
			return nil, fault.New(fault.BadRequest, "a line of the metadata has no colon").
				WithHint("write one key:value a line, such as case:17")
		}
		all[strings.TrimSpace(key)] = strings.TrimSpace(value)
	}
	return all, nil
}

// refuse shows in the form why no run has begun. What can't be read is told of as such, not as missing.
func (f *unitForm) refuse(problem httpwire.Problem, unread []fault.Finding) {
	f.Problem = &problem
	contract.Place(f.Root, problem.Findings)
	for _, found := range unread {
		f.Root.At(found.Pointer).Findings = nil
	}
	f.focus = contract.Place(f.Root, unread)
}

// showForm answers with the page of a unit with its form as it was filled in.
func (p unitPages) showForm(w http.ResponseWriter, r *request, status int, u *unit.Unit, f *unitForm) error {
	v, err := p.viewOf(r.Context(), u)
	if err != nil {
		return err
	}
	if v.Refused() {
		redirect(w, "../"+f.Unit)
		return nil
	}
	f.open()
	r.frame.Here = "units/" + f.Unit
	p.show(w, r, status, p.unitContent(v, f))
	return nil
}

// toUnit leads from the address of a form that was sent to its unit.
func toUnit(w http.ResponseWriter, r *request) error {
	redirect(w, "../"+r.PathValue("name"))
	return nil
}
