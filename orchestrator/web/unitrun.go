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
	"github.com/agent-on-demand/aod/orchestrator"
	"github.com/agent-on-demand/aod/orchestrator/keys"
	"github.com/agent-on-demand/aod/orchestrator/spool"
)

// maxFormParts bounds what a form sends.
const maxFormParts = 1000

// sent is what a browser sent of a unit's form.
type sent struct {
	svc    *orchestrator.Service
	values url.Values
	files  map[string][]string // their names in the input, by those of their controls
	spool  *spool.Spool        // nil until there is a file
	taken  map[string]bool     // names of files
	old    []spool.File        // of the run that the form was filled with
	texts  int64               // bytes that values may still have
	upload int64
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
	if f.edit(u, got.values, input, unread) {
		return p.showForm(w, r, http.StatusOK, f)
	}
	id, err := p.begin(r, u, got, input, len(unread) > 0)
	if err == nil && id != "" {
		redirect(w, "../../runs/"+id)
		return nil
	}
	problem := httpwire.ProblemOf(cmp.Or[error](err, fault.New(fault.Input, "some fields can't be read")))
	httpwire.NotesOf(r.Context()).Report(err, false)
	f.refuse(problem, unread)
	if got.values.Has("part") { // a script shows it: a browser's console would call another status an error
		problem.Status = http.StatusOK
	}
	return p.showForm(w, r, problem.Status, f)
}

// receive reads a form as it comes.
func (p unitPages) receive(r *request) (*sent, error) {
	if err := p.svc.Room(r.ContentLength); err != nil {
		return nil, err
	}
	got := &sent{
		svc: p.svc, values: url.Values{}, files: map[string][]string{}, taken: map[string]bool{},
		texts: p.opts.PayloadBytes + httpwire.SmallBody, upload: p.opts.UploadBytes,
	}
	for part, err := range httpwire.FormParts(r.Request, p.opts.UploadBytes, maxFormParts) {
		if err == nil && part.File != "" {
			err = got.file(r.Context(), part)
		} else if err == nil {
			err = got.text(r.Context(), part)
		}
		if err = part.Or(err); err != nil {
			_ = got.spool.Remove() // the error that led here is the one to tell
			return nil, err
		}
	}
	return got, nil
}

func (s *sent) text(ctx context.Context, part *httpwire.FormPart) error {
	text, err := part.Text(s.texts)
	if err != nil {
		return err
	}
	s.texts -= int64(len(text))
	name := unnamed.Replace(part.Name)
	s.values.Add(name, string(text))
	if name == "from" && len(text) > 0 { // before any file: their names depend on it
		if _, s.old, err = s.svc.InputOf(ctx, string(text)); err != nil {
			return err
		}
		for _, f := range s.old {
			s.taken[f.Name] = true
		}
	}
	return nil
}

// file stores a file under a name that no other one has.
func (s *sent) file(ctx context.Context, part *httpwire.FormPart) error {
	base, err := contract.CleanName(part.File, contract.StageInput)
	if err == nil && s.spool == nil {
		s.spool, err = s.svc.NewSpool()
	}
	if err != nil {
		return err
	}
	name := base
	for n := 2; s.taken[name]; n++ {
		name = path.Join(strconv.Itoa(n), base)
	}
	s.taken[name] = true
	control := unnamed.Replace(part.Name)
	s.files[control] = append(s.files[control], name)
	return s.spool.Add("", name, httpwire.Streamed(ctx, part), s.upload)
}

// filled is the form with what was sent, and the input that it makes.
func (p unitPages) filled(u *unit.Unit, got *sent) (*unitForm, json.RawMessage, []fault.Finding) {
	f := p.newForm(u)
	fields := f.Root.Field
	if f.AsJSON = f.AsJSON || got.values.Get("mode") == "json"; f.AsJSON {
		fields = asJSON(u.Contract.Input)
	}
	drop(got.values, got.values.Get("less"))
	root, input, unread := form.Read(fields, form.Posted{Values: got.values, Files: got.files})
	f.Root, f.From = root, got.values.Get("from")
	f.Timeout, f.Metadata, f.Context = got.values.Get("timeout"), got.values.Get("metadata"), got.values.Get("context")
	f.keep(got.old)
	return f, input, unread
}

// drop takes out what was posted of a row that is to go.
func drop(values url.Values, gone string) {
	for name := range values {
		if at := strings.TrimPrefix(name, "#"); gone != "" && (at == gone || strings.HasPrefix(at, gone+"/")) {
			delete(values, name)
		}
	}
}

// rows adds a row, or notes that one has gone. It reports whether a button for that was pressed.
func (f *unitForm) rows(values url.Values) bool {
	add, less := values.Get("add"), values.Get("less")
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
	sub = spool.Submission{Unit: u.Name, Input: input, Context: strings.TrimSpace(s.values.Get("context"))}
	if sub.Timeout, err = httpwire.Timeout(strings.TrimSpace(s.values.Get("timeout"))); err != nil {
		return sub, err
	}
	if sub.Metadata, err = metadataOf(s.values.Get("metadata")); err != nil {
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
	sub.Key = s.values.Get("key")
	if sub.Key == "" || len(sub.Key) > most {
		return fault.New(fault.BadRequest, "this isn't the form of a unit's page").WithHint("load the page again")
	}
	key, err := keys.Of(*sub)
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
func (p unitPages) showForm(w http.ResponseWriter, r *request, status int, f *unitForm) error {
	v, err := p.unitOf(r.Context(), f.Unit)
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
