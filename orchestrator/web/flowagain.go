package web

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/wire/strictjson"
)

// againView is the form that runs a flow again from one of its steps.
type againView struct {
	Run, Unit string
	From      string
	Choices   []againChoice
	Why       string // it can't be run again from there
	Hint      string
	Sets      bool // values can be set before the step
	Fields    []againField
	Hidden    int64  // fields of the state that aren't shown
	Free      string // what was written into the box
	Taken     int64  // steps that are taken over
	Made      int64  // steps of this run that are made again
	Calls     int64  // of them: runs of units
	Cost      *api.ModelTotal
	Problem   string // what was asked for can't be done
}

// againChoice is a step from which a flow can be run again.
type againChoice struct {
	Address, Text string
	On            bool
}

// againField is a key of the state before a step.
type againField struct {
	Key, Value string
	Size       int64
	IsLong     bool
	Rows       int
	Problem    string
}

// refusedAgain is a form that couldn't be done, and why: it is shown once more.
type refusedAgain struct {
	form    url.Values
	problem *fault.Error
	field   string // whose value is wrong; "": none
}

const (
	fieldPrefix  = "field."
	mostFields   = 40
	mostChoices  = 200
	fieldBytes   = 8 << 10  // of a value that can be changed here
	fieldsBytes  = 48 << 10 // of all of them
	shortField   = 120      // letters of a value in one line
	mostFreeText = 64 << 10
)

// againOf makes the form. Where it begins is what the address says, or the step that failed.
func (p flowPages) againOf(ctx context.Context, f *flowRun, l looking, wrong *refusedAgain) againView {
	v := againView{Run: f.run.ID, Unit: f.run.Unit, From: l.From}
	if v.From == "" {
		v.From = f.failedStep()
	}
	if wrong != nil {
		v.From, v.Free = wrong.form.Get("from"), wrong.form.Get("set")
		v.Free = v.Free[:min(len(v.Free), mostFreeText)]
		if v.Problem = wrong.problem.Msg; wrong.problem.Hint != "" {
			v.Problem += ": " + wrong.problem.Hint
		}
	}
	v.Choices = f.choices(v.From)
	if v.From == "" {
		return v
	}
	before, err := p.svc.Flows.Before(ctx, f.run.ID, v.From)
	if err != nil {
		v.Why, v.Hint = fault.Public(err).Msg, fault.Public(err).Hint
		return v
	}
	v.Sets = before.Sets
	if before.Sets {
		v.Fields, v.Hidden = fieldsOfState(before.State.State, wrong)
	}
	f.count(&v, before.Taken)
	return v
}

// failedStep is where the run failed, or would have to go on.
func (f *flowRun) failedStep() string {
	if e := f.run.Error; e != nil && e.Step != "" {
		return e.Step
	}
	first := ""
	for address, s := range f.steps {
		isLeft := s.Is.Class == "bad" || s.Is.Class == "late" || s.Is.Word == "Stopped"
		if isLeft && (first == "" || earlier(s, f.steps[first]) < 0) {
			first = address
		}
	}
	return first
}

// choices are the steps from which the run can be made again, the failed ones first.
func (f *flowRun) choices(from string) (all []againChoice) {
	all = append(all, againChoice{api.RerunFailed, "all that has failed or is missing", from == api.RerunFailed})
	list := f.list(looking{}).Rows
	for _, s := range list[:min(len(list), mostChoices)] {
		if _, begun := f.steps[s.Address]; begun && !strings.HasSuffix(s.Address, "=") {
			all = append(all, againChoice{s.Address, s.Address + ": " + strings.ToLower(s.Is.Word), from == s.Address})
		}
	}
	if from != "" && from != api.RerunFailed && f.steps[from] == nil {
		all = append(all, againChoice{from, from, true})
	}
	return all
}

// count says what is taken over, and what is made again with what that took the last time.
func (f *flowRun) count(v *againView, steps []api.Step) {
	taken := map[string]bool{}
	for _, s := range steps {
		taken[s.Address] = true
	}
	v.Taken = int64(len(taken))
	for address, s := range f.steps {
		if taken[address] || strings.HasSuffix(address, "=") {
			continue
		}
		v.Made++
		if s.Call == nil {
			continue
		}
		v.Calls, v.Cost = v.Calls+1, added(v.Cost, s.Cost)
	}
}

// fieldsOfState are the keys of a state that can be changed in a form, the short ones first. Values with files can't
// be, nor those that are too large.
func fieldsOfState(state json.RawMessage, wrong *refusedAgain) (all []againField, hidden int64) {
	left := fieldsBytes
	for key, raw := range strictjson.Members(state) {
		if !changeable(key, raw) || len(raw) > left || len(all) == mostFields {
			hidden++
			continue
		}
		left -= len(raw)
		all = append(all, fieldOf(key, raw, wrong))
	}
	slices.SortStableFunc(all, func(a, b againField) int { return falseFirst(a.IsLong, b.IsLong) })
	return all, hidden
}

// changeable reports whether a value can be changed as JSON: one with a file, or a key that looks like one's, can't.
func changeable(key string, raw []byte) bool {
	return len(raw) <= fieldBytes && !strings.HasPrefix(key, "$") && !bytes.Contains(raw, []byte(`"$`))
}

func fieldOf(key string, raw []byte, wrong *refusedAgain) againField {
	of := againField{Key: key, Value: string(raw), Size: int64(len(raw)), IsLong: len(raw) > shortField}
	if of.IsLong {
		of.Value = pretty(raw)
	}
	if wrong != nil && wrong.form.Has(fieldPrefix+key) {
		of.Value = wrong.form.Get(fieldPrefix + key)
		if wrong.field == key {
			of.Problem = wrong.problem.Msg
		}
	}
	of.Rows = min(strings.Count(of.Value, "\n")+2, 16)
	return of
}

// changedState is what of the state before a step a form changes: the fields that have another value than the state,
// and what stands in the box. It is nil where nothing is changed.
func (p flowPages) changedState(
	ctx context.Context, id string, form url.Values,
) (json.RawMessage, *refusedAgain, error) {
	set := map[string]json.RawMessage{}
	if hasFields(form) {
		before, err := p.svc.Flows.Before(ctx, id, form.Get("from"))
		if err != nil {
			return nil, nil, err
		}
		if wrong := changedFields(form, before.State.State, set); wrong != nil {
			return nil, wrong, nil
		}
	}
	if free := strings.TrimSpace(form.Get("set")); free != "" {
		if wrong := setFreely(form, free, set); wrong != nil {
			return nil, wrong, nil
		}
	}
	if len(set) == 0 {
		return nil, nil, nil
	}
	raw, err := json.Marshal(set)
	return raw, nil, err
}

// changedFields sets the fields that have another value than the state.
func changedFields(form url.Values, state json.RawMessage, set map[string]json.RawMessage) *refusedAgain {
	for key, old := range strictjson.Members(state) {
		text := strings.TrimSpace(form.Get(fieldPrefix + key))
		if !form.Has(fieldPrefix+key) || !changeable(key, old) || sameJSON(text, old) {
			continue
		}
		if !json.Valid([]byte(text)) {
			return &refusedAgain{form, fault.New(fault.Input, "the value of %q isn't JSON", key).
				WithHint(`write text in quotes, such as "ferries"`), key}
		}
		set[key] = json.RawMessage(text)
	}
	return nil
}

// setFreely sets the members of an object that was written into the box.
func setFreely(form url.Values, text string, set map[string]json.RawMessage) *refusedAgain {
	var more map[string]json.RawMessage
	if json.Unmarshal([]byte(text), &more) != nil || more == nil {
		return &refusedAgain{form, fault.New(fault.Input, "what is to be set isn't a JSON object").
			WithHint(`such as {"topic": "ferries"}`), ""}
	}
	maps.Copy(set, more)
	return nil
}

func hasFields(form url.Values) bool {
	for name := range form {
		if strings.HasPrefix(name, fieldPrefix) {
			return true
		}
	}
	return false
}

// sameJSON reports whether a text is the same JSON, up to its spaces.
func sameJSON(text string, as []byte) bool {
	var a, b bytes.Buffer
	return json.Compact(&a, []byte(text)) == nil && json.Compact(&b, as) == nil && bytes.Equal(a.Bytes(), b.Bytes())
}

// runAgain does a run again as it was, or a flow from one of its steps.
func (p flowPages) runAgain(w http.ResponseWriter, r *request) error {
	form, err := fieldsOf(w, r)
	if err != nil {
		return err
	}
	set, wrong, err := p.changedState(r.Context(), r.PathValue("id"), form)
	if err != nil {
		return err
	}
	if wrong != nil {
		return p.showRefused(w, r, wrong)
	}
	from := api.Rerun{From: form.Get("from"), Set: set}
	record, _, err := p.svc.Rerun(r.Context(), r.PathValue("id"), form.Get("key"), from)
	if err != nil {
		return err
	}
	redirect(w, "../"+record.ID)
	return nil
}

// showRefused shows the form of a flow once more, with what is wrong in it.
func (p flowPages) showRefused(w http.ResponseWriter, r *request, wrong *refusedAgain) error {
	shows, err := p.flowContent(r, wrong)
	if err != nil {
		return err
	}
	p.show(w, r, http.StatusUnprocessableEntity, shows)
	return nil
}
