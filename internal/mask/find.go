package mask

import "bytes"

// match is a secret in a buffer: its bytes from start to end.
type match struct{ start, end int }

// Classes of bytes.
const (
	word    = 1 << iota // letters and digits
	key                 // of keys: words, - and _
	local               // of the part of an address before its @
	domain              // of the part behind it
	value               // of a value without quotes
	trigger             // it may give a secret away
)

var class = classes()

func classes() (table [256]uint8) {
	for c := range 256 {
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if letter {
			table[c] |= word | key | local | domain
		}
		if c > ' ' && c != 0x7f && bytes.IndexByte([]byte("&,;\"'`<>()[]{}"), byte(c)) < 0 {
			table[c] |= value
		}
	}
	for bits, bytes := range map[uint8]string{key: "-_", local: "._%+-", domain: ".-", trigger: "Asg-@=:"} {
		for _, c := range []byte(bytes) {
			table[c] |= bits
		}
	}
	return table
}

// run returns the end of the bytes of a class, at most so many.
func run(b []byte, from int, bits uint8, most int) int {
	end := min(len(b), from+most)
	for from < end && class[b[from]]&bits != 0 {
		from++
	}
	return from
}

// at returns the secret that the byte at i gives away. Nothing before floor is a part of it.
func (m *Masker) at(b []byte, i, floor int) (match, bool) {
	for _, v := range m.values[b[i]] {
		if bytes.HasPrefix(b[i:], v) {
			return match{i, i + len(v)}, true
		}
	}
	if m.only {
		return match{}, false
	}
	switch b[i] {
	case 'A', 's', 'g':
		return keyAt(b, i)
	case '@':
		found, ok := addressAt(b, i, floor)
		return found, ok && !m.addresses
	case '=', ':':
		return valueAt(b, i, floor)
	}
	return match{}, false
}

// keyForms are how keys begin, and how many characters follow at least.
var keyForms = []struct {
	prefix string
	bits   uint8
	least  int
}{
	{"AKIA", word, 16},
	{"ASIA", word, 16},
	{"sk-", key, 16},
	{"ghp_", word, 20},
	{"gho_", word, 20},
	{"ghu_", word, 20},
	{"ghs_", word, 20},
	{"ghr_", word, 20},
	{"github_pat_", key, 20},
}

func keyAt(b []byte, i int) (match, bool) {
	if i > 0 && class[b[i-1]]&word != 0 {
		return match{}, false
	}
	for _, form := range keyForms {
		if from := i + len(form.prefix); bytes.HasPrefix(b[i:], []byte(form.prefix)) {
			end := run(b, from, form.bits, maxMatch-len(form.prefix))
			return match{i, end}, end-from >= form.least
		}
	}
	return match{}, false
}

// HoldsKey reports whether a text holds a key of a known form, or a private one in a PEM block.
func HoldsKey(text []byte) bool {
	for i, c := range text {
		switch c {
		case 'A', 's', 'g':
			if _, found := keyAt(text, i); found {
				return true
			}
		case '-':
			block, begins := bytes.CutPrefix(text[i:], []byte(pemBegin))
			label, _, _ := bytes.Cut(block[:min(len(block), maxLabel)], []byte("-----"))
			if begins && bytes.HasSuffix(label, []byte("PRIVATE KEY")) {
				return true
			}
		}
	}
	return false
}

// mostDomain bounds what is behind the @ of an address, in bytes.
const mostDomain = 253

// addressAt finds an e-mail address by its @. What hangs on it by a further @ is a part of it: the
// end of the one, which is shown, would be the beginning of another.
func addressAt(b []byte, i, floor int) (match, bool) {
	start := i
	for start > max(floor, i-maxBack) && class[b[start-1]]&local != 0 {
		start--
	}
	end := domainEnd(b, i, mostDomain)
	dot := bytes.LastIndexByte(b[i+1:end], '.')
	if start == i || dot <= 0 || end-(i+1+dot) <= 2 {
		return match{}, false
	}
	for end < len(b) && b[end] == '@' && end-i < mostDomain {
		end = domainEnd(b, end, mostDomain-(end-i))
	}
	return match{start, end}, true
}

// domainEnd returns the end of the domain behind an @, of at most so many bytes.
func domainEnd(b []byte, at, most int) int {
	end := run(b, at+1, domain, most)
	for end > at+1 && class[b[end-1]]&word == 0 {
		end-- // the end of a sentence
	}
	return end
}

// secretNames are the ends of names whose values are secret.
var secretNames = []string{"password", "passwd", "secret", "token", "api_key", "apikey", "api-key"}

// valueAt finds the value behind a name by the = or : between them.
func valueAt(b []byte, i, floor int) (match, bool) {
	end := i
	for end > floor && i-end < 3 && (b[end-1] == ' ' || b[end-1] == '"' || b[end-1] == '\'') {
		end--
	}
	if !IsSecretName(string(b[max(floor, end-len("password")):end])) {
		return match{}, false
	}
	from := i + 1
	for from < len(b) && from-i < 4 && (b[from] == ' ' || b[from] == '"' || b[from] == '\'') {
		from++
	}
	to := run(b, from, value, maxMatch-8)
	return match{from, to}, to > from
}

// IsSecretName reports whether the value of this name is a secret.
func IsSecretName(name string) bool {
	for _, secret := range secretNames {
		if len(name) >= len(secret) && bytes.EqualFold([]byte(name[len(name)-len(secret):]), []byte(secret)) {
			return true
		}
	}
	return false
}
