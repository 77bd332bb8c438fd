package web

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/contract"
	"github.com/agent-on-demand/aod/capsule/contract/form"
	"github.com/agent-on-demand/aod/capsule/unit"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
	"github.com/agent-on-demand/aod/orchestrator/spool"
)

// unitForm is the form of a unit, as it is filled in.
type unitForm struct {
	Unit                       string
	Root                       *form.Control
	From                       string // the run whose input stands in it, and whose files can be given again; "": none
	Told                       string // why the input of that run doesn't stand in it
	AsJSON                     bool   // the input is given as a whole
	Timeout, Metadata, Context string
	Problem                    *httpwire.Problem // why no run has begun; nil: nothing was sent, or not to begin one
	Most                       int64             // bytes that can be sent

	files  map[string]bool // of the earlier run
	focus  *form.Control
	fields bool // the input can be given by fields
	given  bool // files can be given
}

// mostFilled is how large an input may be that stands in a form.
const mostFilled = 1 << 20

// formOf is the empty form of a unit, or filled with the input of an earlier run.
func (p unitPages) formOf(r *request, u *unit.Unit) (*unitForm, error) {
	f := p.newForm(u)
	id := r.URL.Query().Get("from")
	if id == "" {
		return f, nil
	}
	record, files, err := p.svc.InputOf(r.Context(), id)
	switch {
	case fault.Is(err, fault.Conflict):
		f.Told = fault.Public(err).Msg + ". Give it again."
		return f, nil
	case err != nil:
		return nil, err
	case record.Unit != u.Name:
		return nil, fault.New(fault.BadRequest, "this run is of another unit").
			WithHint("see the page of %s", record.Unit)
	case len(record.Input) > mostFilled:
		f.Told = "The input of that run is too large for a form."
		return f, nil
	}
	f.fill(record, files)
	return f, nil
}

func (p unitPages) newForm(u *unit.Unit) *unitForm {
	fields := u.Contract.Input.Form()
	f := &unitForm{
		Unit: u.Name, Root: form.Fill(fields, nil), Most: p.opts.UploadBytes, fields: fields.Kind == form.Object,
		given: len(u.Contract.Input.FilePlaces()) > 0,
	}
	f.AsJSON = !f.fields
	f.open()
	return f
}

// fill puts the input of an earlier run into the form.
func (f *unitForm) fill(from api.Record, files []spool.File) {
	f.From, f.Root, f.Context = from.ID, form.Fill(f.Root.Field, from.Input), from.Context
	f.keep(files)
	f.open()
	for _, key := range sortedKeys(from.Metadata) {
		f.Metadata += key + ":" + from.Metadata[key] + "\n"
	}
	if from.Changes != nil {
		f.Told = "The project that the run worked on isn't given again: “Run again as it was” gives it."
	}
}

func (f *unitForm) keep(files []spool.File) {
	f.files = map[string]bool{}
	for _, file := range files {
		f.files[file.Name] = true
	}
}

// open gives each list that needs items a row to type in.
func (f *unitForm) open() {
	for c := range f.Root.All() {
		if c.Kind == form.List && c.Required && len(c.Parts) == 0 && !c.Boxed() && c.Item.Kind != form.File {
			c.Add()
		}
	}
}

// asJSON is the form's input as a whole.
func asJSON(of *contract.Schema) *form.Field {
	return &form.Field{Label: "Input", Kind: form.JSON, Required: true, Schema: pretty(of.Raw())}
}

// HasFiles reports whether the earlier run had files.
func (f *unitForm) HasFiles() bool { return len(f.files) > 0 }

// Whole is the widget of all.
func (f *unitForm) Whole() widget { return widget{f.Root, f, "", 0} }

// CanFields reports whether the input can be given by fields.
func (f *unitForm) CanFields() bool { return f.fields }

// Drops reports whether files can be given beside an input that is given as JSON.
func (f *unitForm) Drops() bool { return f.AsJSON && f.given }

// More reports whether something stands in the folded part.
func (f *unitForm) More() bool { return f.Timeout+f.Metadata+f.Context != "" }

// Broken are the fields with findings.
func (f *unitForm) Broken() (all []widget) {
	const most = 20
	var each func(w widget)
	each = func(w widget) {
		if len(w.Findings) > 0 && len(all) < most {
			all = append(all, w)
		}
		for _, part := range w.Parts() {
			each(part)
		}
	}
	each(f.Whole())
	return all
}

// Headline says in a sentence that nothing was started.
func (f *unitForm) Headline() string {
	broken := int64(len(f.Broken()))
	if broken == 0 || f.AsJSON {
		return "Nothing was started: " + f.Problem.Detail + "."
	}
	return "Nothing was started: " + plural(broken, "field needs", "fields need") + " a look."
}

// TakesFocus reports whether the headline gets the focus, since no control can.
func (f *unitForm) TakesFocus() bool { return f.focus == nil || f.focus.Kind == form.Object }

// widget is a control as a page shows it.
type widget struct {
	*form.Control
	in  *unitForm
	Of  string // the label of the list that it is an item of; ""
	Row int    // its number there, from 1
}

// Parts are the controls in it.
func (w widget) Parts() []widget {
	all := make([]widget, 0, len(w.Control.Parts))
	for i, part := range w.Control.Parts {
		one := widget{part, w.in, "", 0}
		if w.Kind == form.List {
			one.Of, one.Row = w.Title(), i+1
		}
		all = append(all, one)
	}
	return all
}

// Title is what the control is called.
func (w widget) Title() string {
	switch {
	case w.Of != "":
		return w.Of + " " + strconv.Itoa(w.Row)
	case w.Pointer == "":
		return "Input"
	case strings.TrimSpace(w.Label) == "":
		return strconv.Quote(w.Key)
	}
	return w.Label
}

// Group reports whether there are several controls in it.
func (w widget) Group() bool {
	return w.Kind == form.Object || w.Kind == form.List || w.Kind == form.Boolean || w.Kind == form.File
}

// Files reports whether it is a list of files.
func (w widget) Files() bool { return w.Kind == form.List && w.Item.Kind == form.File }

// Width is the class of a control that is as wide as what it takes is long.
func (w widget) Width() string {
	most, err := w.Bounds.MaxLength.Int64()
	switch {
	case w.Kind == form.Boolean, w.Kind == form.JSON:
		return ""
	case w.Kind == form.Number, w.Kind == form.Integer:
		return "w1"
	case w.Kind == form.Text && (err != nil || most > 40), w.nests(), w.Kind == form.File:
		return "w3"
	}
	return "w2"
}

// Mark stands behind the title.
func (w widget) Mark() string {
	var told []string
	if !w.Required && w.Of == "" {
		told = append(told, "optional")
	}
	if items := between(w.Bounds.MinItems, w.Bounds.MaxItems, itemsOf(w.Field)); items != "" {
		told = append(told, items)
	}
	return strings.Join(told, ", ")
}

// Told says below the control what to give.
func (w widget) Told() string {
	told := []string{strings.TrimSuffix(w.Description, ".")}
	bounded := *w.Field
	bounded.Bounds.MinItems, bounded.Bounds.MaxItems = "", ""
	if bounds := strings.Join(boundsOf(&bounded), ", "); bounds != "" {
		told = append(told, strings.ToUpper(bounds[:1])+bounds[1:])
	}
	switch w.Kind {
	case form.Time:
		told = append(told, "A time with its zone, such as 14:30:00Z or 14:30:00+01:00")
	case form.DateTime:
		told = append(told, "A date and a time with its zone, such as 2026-12-01T14:30:00Z or "+
			"2026-12-01T14:30:00+01:00")
	case form.Text:
		if w.Pattern != "" {
			told = append(told, "As the pattern "+w.Pattern)
		}
	}
	if w.Default != "" && w.Kind != form.Enum {
		told = append(told, "Without it "+defaultOf(w.Field))
	}
	if w.Example != "" && w.Example != w.Default {
		told = append(told, "For example "+w.Example)
	}
	return strings.Join(slices.DeleteFunc(told, func(text string) bool { return text == "" }), ". ")
}

// About are the ids of what says more of the control.
func (w widget) About() string {
	var ids []string
	if len(w.Findings) > 0 {
		ids = append(ids, "e-"+w.ID())
	}
	if w.Told() != "" {
		ids = append(ids, "d-"+w.ID())
	}
	return strings.Join(ids, " ")
}

// Nothing is the choice of no value.
func (w widget) Nothing() string {
	switch {
	case w.Default != "":
		return fmt.Sprintf("Not given (%s)", defaultOf(w.Field))
	case w.Required && !w.Nullable:
		return "Choose one"
	}
	return "Not given"
}

// Focus reports whether the control has the focus when the page was loaded.
func (w widget) Focus() bool { return w.in.focus == w.Control }

// Kept is the file of the earlier run that is given again; "": there is none.
func (w widget) Kept() string {
	if w.in.files[w.Text] {
		return w.Text
	}
	return ""
}

// Lost is the file that was sent, and has to be chosen again; "": there is none.
func (w widget) Lost() string { return strings.TrimSuffix(w.Text, w.Kept()) }

// named escapes what doesn't come back as it was in the name of a control, and unnamed undoes that: HTML has no NUL,
// browsers escape quotes and line breaks, and a header of a form has no other control characters and a meaning for
// backslashes.
var named, unnamed = func() (there, back *strings.Replacer) {
	changed := []rune(`%"\` + "\x7f")
	for c := range ' ' {
		changed = append(changed, c)
	}
	var escaped, plain []string
	for _, c := range changed {
		text := fmt.Sprintf("%%%02X", c)
		escaped, plain = append(escaped, string(c), text), append(plain, text, string(c))
	}
	return strings.NewReplacer(escaped...), strings.NewReplacer(plain...)
}()

// Name is that of the control in the form.
func (w widget) Name() string { return named.Replace(w.Pointer) }

// Box is the name of the box for JSON.
func (w widget) Box() string { return named.Replace(w.JSONName()) }

// BoxTitle is what the box for JSON is called, beside other controls.
func (w widget) BoxTitle() string {
	switch w.Kind {
	case form.JSON:
		return w.Title()
	case form.Object:
		return "More fields of it, as JSON"
	case form.List:
		return "First items of it, as JSON"
	}
	return w.Title() + ", as JSON"
}

// Errors are what is wrong with the control.
func (w widget) Errors() (all []fault.Finding) {
	for _, f := range w.Findings {
		if !strings.HasPrefix(f.Pointer, w.Pointer+"/") {
			f.Pointer = ""
		}
		if strings.Contains(f.Hint, "--file") { // which is for the command line
			f.Hint = "choose it here"
		}
		all = append(all, f)
	}
	return all
}

// Apart reports whether the box for JSON stands beside a control for one value.
func (w widget) Apart() bool { return !w.nests() && w.Kind != form.JSON && w.Boxed() }

// nests reports whether there are controls for the values in it.
func (w widget) nests() bool { return w.Kind == form.Object || w.Kind == form.List }

// BoxID is the id of the box for JSON.
func (w widget) BoxID() string {
	if w.Kind == form.JSON && w.Pointer != "" {
		return w.ID()
	}
	return w.ID() + "-json"
}

// BoxMark stands behind the title of the box.
func (w widget) BoxMark() string {
	if w.Kind == form.JSON && w.Required {
		return ""
	}
	return "optional"
}

// TextRows is how many lines a control for a text with line breaks has. An item begins with one.
func (w widget) TextRows() int {
	if w.Of != "" {
		return min(1+strings.Count(w.Text, "\n"), w.Rows())
	}
	return w.Rows()
}

// BoxRows is how many lines the box for JSON has.
func (w widget) BoxRows() int {
	if w.Pointer == "" && w.Kind == form.JSON {
		return max(w.Rows(), 8)
	}
	return max(w.Rows(), 3)
}

// HasKept reports whether files of the earlier run are in the list.
func (w widget) HasKept() bool {
	return slices.ContainsFunc(w.Parts(), func(part widget) bool { return part.Kept() != "" })
}
