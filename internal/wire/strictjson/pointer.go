package strictjson

import (
	"strconv"
	"strings"

	"github.com/agent-on-demand/aod/api/fault"
)

// MaxPointerBytes is where a pointer that is shown is cut: its names may come from a
// hostile document.
const MaxPointerBytes = 2048

var (
	escapeName   = strings.NewReplacer("~", "~0", "/", "~1")
	unescapeName = strings.NewReplacer("~1", "/", "~0", "~")
)

// Escape writes a name as a part of a pointer (RFC 6901), without the slash before it.
func Escape(name string) string { return escapeName.Replace(name) }

// Unescape reads what Escape wrote.
func Unescape(part string) string { return unescapeName.Replace(part) }

// Path splits a pointer into its unescaped parts; none is the whole document.
func Path(pointer string) []string {
	if pointer == "" {
		return nil
	}
	parts := strings.Split(strings.TrimPrefix(pointer, "/"), "/")
	for i, part := range parts {
		parts[i] = Unescape(part)
	}
	return parts
}

// Pointer writes the pointer of a path to be shown. One that is too long to be of use is
// cut, and ends with "…".
func Pointer(path ...string) string {
	var b strings.Builder
	for _, name := range path {
		b.WriteByte('/')
		b.WriteString(Escape(name))
		if b.Len() > MaxPointerBytes {
			return fault.Clip(b.String(), MaxPointerBytes)
		}
	}
	return b.String()
}

// Lookup returns what stands in a decoded document at the path, whose parts are
// unescaped, and whether something does.
func Lookup(document any, path []string) (any, bool) {
	for _, part := range path {
		switch container := document.(type) {
		case map[string]any:
			next, ok := container[part]
			if !ok {
				return nil, false
			}
			document = next
		case []any:
			i, err := strconv.Atoi(part)
			if err != nil || i < 0 || i >= len(container) || strconv.Itoa(i) != part {
				return nil, false
			}
			document = container[i]
		default:
			return nil, false
		}
	}
	return document, true
}
