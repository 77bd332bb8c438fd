package gateway

import (
	"bytes"
	"slices"
	"strings"

	"github.com/agent-on-demand/aod/internal/wire/strictjson"
)

// seen is what a request has beside text, of which a byte is a token at most.
type seen struct {
	images     int64 // where the dialect has them
	imageBytes int64 // of those that stand in the body
	opaque     bool  // something else, of which nobody can tell how many tokens it takes
}

func (s *seen) add(other seen) {
	s.images += other.images
	s.imageBytes += other.imageBytes
	s.opaque = s.opaque || other.opaque
}

var (
	// mediaTypes are those of partTypes that aren't text, and mediaNames are where servers look for
	// such content in a part without a type.
	mediaTypes = words("image_url input_image image input_audio file input_file document")
	mediaNames = words(`image_url image images image_embeds video_url video audio_url audio input_audio file file_url
		file_data
		document_url`)
)

// part is an object that is being read: its type may come last.
type part struct {
	typ, source string // its own type, and that of its source
	media       string
	hasMedia    bool // one of mediaNames is there
	cited       bool // it can be cited: what a model reads of it has marks then
	input       seen // in its input
	url, data   int  // bytes of an image that stands in its url, and of its data
	image       int  // bytes of the image that is in the member for it
	odd         bool // a name in another case is among its breaches
	breaches    []named
}

// inline returns how many bytes of an image a part's member has.
func (p part) inline() int {
	if p.typ == "base64" && strings.HasPrefix(p.media, "image/") {
		return p.data
	}
	return p.url
}

type named struct {
	name string
	*breach
}

// first returns the first breach of an object, but for those in what nobody interprets.
func (p part) first(also ...string) *breach {
	for _, b := range p.breaches {
		if !slices.Contains(free, b.name) && !slices.Contains(also, b.name) {
			return b.breach
		}
	}
	return nil
}

func (p *part) takeObject(key string, child part, form imageForm) {
	if key == "source" {
		p.source = child.typ
	}
	if key == form.member {
		p.image = child.inline()
	}
}

func (p *part) takeText(key string, raw []byte, form imageForm) {
	switch key {
	case "type":
		p.typ = strictjson.Text(raw)
	case "media_type":
		p.media = strictjson.Text(raw)
	case "data":
		p.data = len(raw)
	case "url", form.member:
		if !bytes.HasPrefix(raw, []byte(`"data:image/`)) {
			return
		}
		if p.url = len(raw); key == form.member {
			p.image = p.url
		}
	}
}

// weigh notes what a part is that isn't text.
func (s *scan) weigh(p part) {
	isMedia := p.hasMedia || slices.Contains(mediaTypes, p.typ) || p.typ == "search_result" && p.cited
	if p.typ != "tool_use" { // what a model has said to a tool is text
		s.seen.add(p.input)
	}
	switch {
	case s.form.typ == "":
		s.seen.opaque = true // the dialect has texts and numbers alone
	case p.typ == "document" && p.source == "text" && !p.cited:
	case p.typ == s.form.typ && (s.field == "messages" || s.field == "input") &&
		slices.Contains(s.form.at, strings.Join(s.at, "/")):
		s.seen.images++
		s.seen.imageBytes += int64(p.image)
	case isMedia:
		s.seen.opaque = true
	}
}
