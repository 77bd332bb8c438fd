package au

import (
	"strings"
	"testing"
)

func TestSniff(t *testing.T) {
	cases := []struct{ name, head, want string }{
		{"no bytes", "", ""},
		{"PNG", "\x89PNG\r\n\x1a\n\x00", "image/png"},
		{"JPEG", "\xff\xd8\xff\xe0", "image/jpeg"},
		{"GIF", "GIF89a", "image/gif"},
		{"WebP", "RIFF\x00\x00\x00\x00WEBPVP8 ", "image/webp"},
		{"TIFF, little end first", "II*\x00\x08", "image/tiff"},
		{"TIFF, big end first", "MM\x00*\x00", "image/tiff"},
		{"a portable graymap", "P5\n640 480\n255\n\x00", "image/x-portable-anymap"},
		{"a sentence about P5", "P5 is a prison", "text/plain"},
		{"HEIC", "\x00\x00\x00\x18ftypheic", "image/heic"},
		{"SVG", "<svg xmlns=\"http://www.w3.org/2000/svg\"/>", "image/svg+xml"},
		{"SVG behind a declaration", "<?xml version=\"1.0\"?>\n<svg/>", "image/svg+xml"},
		{"XML", "<?xml version=\"1.0\"?><a/>", "text/xml"},
		{"HTML with a drawing", "<!DOCTYPE html><html><svg></svg>", "text/html"},
		{"PDF", "%PDF-1.7\n", "application/pdf"},
		{"a zip", "PK\x03\x04", "application/zip"},
		{"gzip", "\x1f\x8b\x08\x00", "application/gzip"},
		{"a tar", strings.Repeat("\x00", 257) + "ustar\x00", "application/x-tar"},
		{"sound", "RIFF\x00\x00\x00\x00WAVEfmt ", "audio/wave"},
		{"a JSON object", ` {"a": [1, "é"]}`, "application/json"},
		{"the start of a JSON array", `[{"a":1},{"b`, "application/json"},
		{"JSON that goes on behind the head", `["x` + strings.Repeat("é", 400), "application/json"},
		{"lines of JSON", "{\"a\":1}\n{\"b\":2}\n", "text/plain"},
		{"a file of settings", "[section]\nkey=1\n", "text/plain"},
		{"CSV", "name,amount\nA,1\n", "text/plain"},
		{"text", "Grüße", "text/plain"},
		{"text in UTF-16", "\xff\xfea\x00", "text/plain"},
		{"unknown bytes", "\x00\x01\x02\x03", "application/octet-stream"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if got := Sniff([]byte(c.head)); got != c.want {
				t.Errorf("Sniff = %q, want %q", got, c.want)
			}
		})
	}
}

func TestAccepts(t *testing.T) {
	cases := []struct {
		name, declared, seen string
		want                 bool
	}{
		{"the same", "image/png", "image/png", true},
		{"another", "image/png", "image/jpeg", false},
		{"in capitals and with a parameter", "Image/PNG; q=1", "image/png; x=y", true},
		{"a range", "image/*", "image/tiff", true},
		{"another range", "image/*", "text/plain", false},
		{"unknown bytes for a range", "image/*", "application/octet-stream", false},
		{"anything", "*/*", "application/octet-stream", true},
		{"anything, by the other name", "application/octet-stream", "image/png", true},
		{"no input", "image/png", "", true},
		{"another name of it", "image/jpg", "image/jpeg", true},
		{"text for CSV", "text/csv", "text/plain", true},
		{"JSON for text", "text/plain", "application/json", true},
		{"text for JSON", "application/json", "text/plain", false},
		{"JSON for a form of it", "application/geo+json", "application/json", true},
		{"XML by its other name", "application/xml", "text/xml", true},
		{"XML for a form of it", "application/rss+xml", "text/xml", true},
		{"a drawing is XML", "application/xml", "image/svg+xml", true},
		{"JSON isn't XML", "text/xml", "application/json", false},
		{"a zip for a document", "application/vnd.openxmlformats-officedocument.wordprocessingml.document", "application/zip", true},
		{"a zip for a book", "application/epub+zip", "application/zip", true},
		{"a zip for a PDF", "application/pdf", "application/zip", false},
		{"unknown bytes for a PDF", "application/pdf", "application/octet-stream", false},
		{"unknown bytes for what can't be known", "application/dicom", "application/octet-stream", true},
		{"a picture for what can't be known", "application/dicom", "image/png", false},
		{"text for what can't be known", "application/yaml", "text/plain", true},
		{"JSON for YAML", "application/yaml", "application/json", true},
		{"unknown bytes for text", "text/csv", "application/octet-stream", false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			card := &Card{Inputs: []Media{{Type: "audio/ogg"}, {Type: c.declared}}}
			if got := card.Accepts(c.seen); got != c.want {
				t.Errorf("a card with %s accepts %s: %v", c.declared, c.seen, got)
			}
		})
	}
}

// A name that Sniff returns has to be the one that names are brought to.
func TestTheNamesOfTypesAreSettled(t *testing.T) {
	for from, to := range otherNames {
		if _, again := otherNames[to]; again {
			t.Errorf("%s becomes %s, which becomes another", from, to)
		}
	}
	for _, s := range signatures {
		if essence(s.media) != s.media {
			t.Errorf("Sniff says %s, which is another name of %s", s.media, essence(s.media))
		}
	}
}
