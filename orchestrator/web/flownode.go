package web

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/flow"
	"github.com/agent-on-demand/aod/internal/wire/strictyaml"
)

// nodeForm is the form of a node in the editor of a flow. It changes what was filled in otherwise, and no other byte.
type nodeForm struct {
	Path    string
	At      string // a pointer into the text
	Line    int
	Fields  []nodeField
	YAML    string       // all of the node
	Problem *fault.Error // why it wasn't changed; nil: it was, or nobody asked for it
}

// nodeField is a plain value of a node, or a member of an object in it.
type nodeField struct {
	At     string // a pointer from the node on
	Value  string
	IsText bool // it stays a text, also where it looks like a number
}

// Name is how the field is called: with.topic.
func (f nodeField) Name() string { return strings.ReplaceAll(strings.TrimPrefix(f.At, "/"), "/", ".") }

// Was tells whether what comes back is what was shown.
func (f nodeField) Was() string { return digest(f.Value) }

// Rows is how many lines the control has; 0: it has no more than one.
func (f nodeField) Rows() int {
	if lines := strings.Count(f.Value, "\n") + 1; lines > 1 || len(f.Value) > 80 {
		return min(max(lines, 2), 12)
	}
	return 0
}

// Chose reports whether the form is that of a node.
func (e flowEditor) Chose(path string) bool { return e.Node != nil && e.Node.Path == path }

// PathsID is another one when there are other nodes, or another one is chosen.
func (e flowEditor) PathsID() string {
	chosen := slices.IndexFunc(e.Paths, e.Chose)
	return "nodes-" + digest(fmt.Sprint(chosen, e.Paths))
}

// Whole is the node as a field.
func (n nodeForm) Whole() nodeField { return nodeField{Value: n.YAML + "\n"} }

// ID is another one when the text of the node is another.
func (n nodeForm) ID() string { return "node-" + digest(n.Path+"\n"+n.YAML) }

// membered are the objects of a node whose members have fields of their own, and typed the keys whose values needn't
// be texts.
var (
	membered = []string{"with", "set", "next", "retry", "show"}
	typed    = []string{"/when", "/retry", "/max_visits", "/parallel", "/max", "/tolerate"}
)

// filledFields is how many fields a form has. Each that is filled in is a change of the whole text.
const filledFields = 60

// newNodeForm makes the form of a node. before is the one that was sent; nil: none was.
func newNodeForm(n *flow.Node, path, text string, before *nodeForm) *nodeForm {
	f := &nodeForm{Path: path, At: n.Pointer(), Line: n.Line}
	if before != nil {
		f.Problem = before.Problem
	}
	edit, err := strictyaml.NewEdit(flow.FileName, []byte(text))
	if err != nil {
		f.Problem = fault.Public(err)
		return f
	}
	f.YAML = edit.Source(n.Pointer())
	f.Fields = nodeFields(edit, n)
	return f
}

// nodeFields are those of what a node has, and of what it could have besides.
func nodeFields(edit *strictyaml.Edit, n *flow.Node) (fields []nodeField) {
	add := func(at string, e strictyaml.Entry) {
		if at = strictyaml.Under(at, e.Key); e.IsPlain && len(fields) < filledFields {
			fields = append(fields, nodeField{at, e.Text, e.IsText && !slices.Contains(typed, at)})
		}
	}
	var has []string
	for _, e := range edit.Entries(n.Pointer()) {
		has = append(has, e.Key)
		add("", e)
		if slices.Contains(membered, e.Key) {
			for _, member := range edit.Entries(strictyaml.Under(n.Pointer(), e.Key)) {
				add("/"+e.Key, member)
			}
		}
	}
	bounded := n.Run != nil || n.Flow != nil || n.Branches != nil || n.Ask != nil
	inBranch := strings.HasSuffix(n.Pointer(), "/branches/"+n.Name)
	could := map[string]bool{"when": true, "timeout": bounded, "retry": n.Run != nil, "next": !inBranch}
	for _, key := range sortedKeys(could) {
		if could[key] && !slices.Contains(has, key) {
			fields = append(fields, nodeField{At: "/" + key})
		}
	}
	return fields
}

// apply changes in a text what was filled in for a node, and returns it. Where that can't be, it is as it was.
func (e *flowEditor) apply(form url.Values, text string) (string, error) {
	at, all := form.Get("at"), plainEnds(form.Get("v:"))
	wanted := filled(form)
	isAll := form.Has("v:") && digest(all) != form.Get("w:")
	if len(wanted) == 0 && !isAll {
		return text, nil
	}
	edit, err := strictyaml.NewEdit(flow.FileName, []byte(text))
	switch {
	case err != nil:
	case len(wanted) > 2*filledFields:
		err = fault.New(fault.TooLarge, "more fields are filled in than a form has")
	case isAll && len(wanted) > 0:
		err = fault.New(fault.Input, "the fields were filled in, and the YAML as well").
			WithHint("do one after the other")
	case isAll:
		edit, err = edit.SetYAML(at, all)
	default:
		edit, err = fill(edit, at, form, wanted)
	}
	if err != nil {
		e.Node = &nodeForm{Problem: fault.Public(err)}
		return text, err
	}
	return string(edit.Raw), nil
}

// filled are the fields that were filled in otherwise than they were shown, as pointers from their node on.
func filled(form url.Values) (fields []string) {
	for _, name := range sortedKeys(form) {
		field, isField := strings.CutPrefix(name, "v:/")
		was := cmp.Or(form.Get("t:/"+field), form.Get("w:/"+field))
		if isField && digest(plainEnds(form.Get(name))) != was {
			fields = append(fields, "/"+field)
		}
	}
	return fields
}

// fill changes the values of fields.
func fill(edit *strictyaml.Edit, at string, form url.Values, fields []string) (_ *strictyaml.Edit, err error) {
	for _, field := range fields {
		value := plainEnds(form.Get("v:" + field))
		switch {
		case value == "":
			edit, err = edit.Remove(at + field)
		case !form.Has("t:"+field) && isLiteral(value):
			edit, err = edit.SetYAML(at+field, value)
		default:
			edit, err = edit.SetText(at+field, value)
		}
		if err != nil {
			return nil, err
		}
	}
	return edit, nil
}

// isLiteral reports whether YAML takes a text for a number or a truth value.
func isLiteral(text string) bool {
	doc, findings := strictyaml.Parse(flow.FileName, []byte(text))
	if len(findings) > 0 {
		return false
	}
	switch doc.Value.(type) {
	case bool, int64, uint64, float64:
		return true
	}
	return false
}
