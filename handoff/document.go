package handoff

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/agent-on-demand/aod/capsule/contract"
	"github.com/agent-on-demand/aod/fault"
)

// document is the arguments as Go values, to look at texts by their pointers and to
// replace them.
type document struct {
	root    any
	changed bool
}

func newDocument(args contract.Payload) (*document, error) {
	dec := json.NewDecoder(bytes.NewReader(args.JSON()))
	dec.UseNumber()
	d := &document{}
	if err := dec.Decode(&d.root); err != nil {
		return nil, fault.Wrap(fault.Internal, err, "the arguments could not be read again")
	}
	return d, nil
}

var unescaped = strings.NewReplacer("~1", "/", "~0", "~")

// clean puts the clean name in the place of the text that stands for it, and returns the
// text; false where none does, since pointers are cut at a length.
func (d *document) clean(pointer, name string) (text string, ok bool) {
	keys := strings.Split(pointer, "/")[1:]
	value, set := d.root, func(any) {}
	for _, key := range keys {
		switch v := value.(type) {
		case map[string]any:
			key = unescaped.Replace(key)
			value, set = v[key], func(to any) { v[key] = to }
		case []any:
			i, err := strconv.Atoi(key)
			if err != nil || i < 0 || i >= len(v) {
				return "", false
			}
			value, set = v[i], func(to any) { v[i] = to }
		default:
			return "", false
		}
	}
	text, ok = value.(string)
	if ok && text != name {
		set(name)
		d.changed = true
	}
	return text, ok
}

// payload returns the arguments, as they were given where nothing had to change.
func (d *document) payload(args contract.Payload) (contract.Payload, error) {
	object, ok := d.root.(map[string]any)
	if !d.changed || !ok {
		return args, nil
	}
	return contract.NewPayload(object)
}
