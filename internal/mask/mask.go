package mask

import (
	"bytes"
	"slices"
	"strconv"
)

// Bounds of what is found, in bytes.
const (
	maxMatch = 1 << 10 // what is longer is masked in part
	maxBack  = 128     // before the byte that gives it away
	maxPEM   = 64 << 10
	maxLabel = 64 // of what a PEM block says that it is, with what ends it
	// MaxValue is the longest value that a Masker takes.
	MaxValue = 16 << 10
	minValue = 4
)

// hidden stands for what was masked.
const hidden = "****"

const pemHidden = "[PEM block masked]"

// Masker masks texts. It may be used by several at once.
type Masker struct {
	values    [256][][]byte // by their first byte, the longest first
	ahead     int           // how many bytes from its first one on may tell of a match
	addresses bool          // are left as they are
	only      bool          // nothing is found but the values
}

// New returns a Masker that knows values beside what has a form of its own. Those of less than
// 4 bytes, or more than MaxValue, are left out.
func New(values ...string) *Masker {
	m := &Masker{ahead: maxMatch}
	for _, value := range values {
		if len(value) < minValue || len(value) > MaxValue || value == hidden {
			continue
		}
		m.values[value[0]] = append(m.values[value[0]], []byte(value))
		m.ahead = max(m.ahead, len(value))
	}
	for _, same := range m.values {
		slices.SortFunc(same, func(a, b []byte) int { return len(b) - len(a) })
	}
	return m
}

// OnlyValues returns a Masker that knows values and nothing else. See New.
func OnlyValues(values ...string) *Masker {
	m := New(values...)
	m.only = true
	return m
}

// WithoutAddresses returns a Masker for the same secrets that leaves e-mail addresses as they
// are.
func (m *Masker) WithoutAddresses() *Masker {
	other := *m
	other.addresses = true
	return &other
}

// Text returns a text with what is secret in it masked.
func (m *Masker) Text(text string) string {
	var out bytes.Buffer
	w := NewWriter(&out, m)
	_, _ = w.Write([]byte(text)) // a buffer takes all
	_ = w.Close()
	return out.String()
}

// masked is what stands for a secret.
func masked(secret []byte) []byte {
	if bytes.HasPrefix(secret, []byte(hidden)) && len(secret) <= len(hidden)+4 {
		return secret // it is masked
	}
	const short = 12 // of what is shorter, four characters would be too much
	if len(secret) < short {
		return []byte(hidden)
	}
	return append([]byte(hidden), secret[len(secret)-4:]...)
}

// Names keeps names apart that are the same once they are masked. The zero Names has none.
type Names struct {
	taken map[string]bool
	next  map[string]int // the number of the next one, by name
}

// Keep takes a name as it is.
func (n *Names) Keep(name string) {
	if n.taken == nil {
		n.taken, n.next = map[string]bool{}, map[string]int{}
	}
	n.taken[name] = true
}

// New takes a name, with a number before it if it is taken: 2-NAME.
func (n *Names) New(name string) string {
	free := name
	for n.taken[free] {
		n.next[name] = max(n.next[name], 1) + 1
		free = strconv.Itoa(n.next[name]) + "-" + name
	}
	n.Keep(free)
	return free
}
