package au

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"unicode/utf8"
)

// SniffBytes is how many bytes of an input Sniff reads; it ignores the rest.
const SniffBytes = 512

// What Sniff returns for unknown bytes.
const (
	unknownBytes = "application/octet-stream"
	plainText    = "text/plain"
)

// signature is the first bytes of a media type.
type signature struct {
	magic string
	at    int
	media string
}

// signatures are those that net/http doesn't know.
var signatures = []signature{
	{"II*\x00", 0, "image/tiff"},
	{"MM\x00*", 0, "image/tiff"},
	{"II+\x00", 0, "image/tiff"}, // BigTIFF
	{"MM\x00+", 0, "image/tiff"},
	{"\x00\x00\x00\x0cjP  \r\n\x87\n", 0, "image/jp2"},
	{"\xff\x4f\xff\x51", 0, "image/jp2"},
	{"ftypheic", 4, "image/heic"},
	{"ftypheix", 4, "image/heic"},
	{"ftypmif1", 4, "image/heif"},
	{"ftypavif", 4, "image/avif"},
	{"8BPS", 0, "image/vnd.adobe.photoshop"},
	{"fLaC", 0, "audio/flac"},
	{"BZh", 0, "application/x-bzip2"},
	{"\xfd7zXZ\x00", 0, "application/x-xz"},
	{"\x28\xb5\x2f\xfd", 0, "application/zstd"},
	{"7z\xbc\xaf\x27\x1c", 0, "application/x-7z-compressed"},
	{"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", 0, "application/x-ole-storage"}, // older office documents
	{"ustar", 257, "application/x-tar"},
	{"SQLite format 3\x00", 0, "application/vnd.sqlite3"},
	{"PAR1", 0, "application/vnd.apache.parquet"},
	{`{\rtf`, 0, "text/rtf"},
}

// Sniff returns the media type of an input by its first bytes, in lower case and without
// parameters. It knows the types of net/http.DetectContentType and further types that units
// often take. Text is "application/json" if it starts as a JSON object or array,
// "image/svg+xml", "text/html" or "text/xml" if it starts as such, and "text/plain"
// otherwise, as CSV and Markdown are. Unknown bytes are "application/octet-stream"; no
// bytes are "".
func Sniff(head []byte) string {
	head = head[:min(len(head), SniffBytes)]
	if len(head) == 0 {
		return ""
	}
	for _, s := range signatures {
		if len(head) > s.at && bytes.HasPrefix(head[s.at:], []byte(s.magic)) {
			return s.media
		}
	}
	if isPortableAnymap(head) {
		return "image/x-portable-anymap"
	}
	media := essence(http.DetectContentType(head))
	if strings.HasPrefix(media, "text/") {
		return sniffText(head, media)
	}
	return media
}

// sniffText distinguishes kinds of text.
func sniffText(head []byte, media string) string {
	text := bytes.TrimLeft(head, space)
	switch {
	case bytes.HasPrefix(text, []byte("<")) && bytes.Contains(text, []byte("<svg")) && media != "text/html":
		return "image/svg+xml"
	case startsAsJSON(text):
		return "application/json"
	}
	return media
}

// startsAsJSON reports whether a text could be the start of one JSON object or array.
func startsAsJSON(text []byte) bool {
	if !structured(text) || !utf8.Valid(withoutPartialRune(text)) {
		return false
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	var doc json.RawMessage
	if err := dec.Decode(&doc); err != nil {
		return errors.Is(err, io.ErrUnexpectedEOF)
	}
	return len(bytes.Trim(text[dec.InputOffset():], space)) == 0
}

// withoutPartialRune drops an incomplete character at the end of the head.
func withoutPartialRune(text []byte) []byte {
	for back := 1; back < utf8.UTFMax && back <= len(text); back++ {
		last := text[len(text)-back:]
		if utf8.RuneStart(last[0]) {
			if !utf8.FullRune(last) {
				return text[:len(text)-back]
			}
			return text
		}
	}
	return text
}

// isPortableAnymap recognises PBM, PGM and PPM: P1 to P6, white space, then a width or a
// comment.
func isPortableAnymap(head []byte) bool {
	return len(head) > 3 && head[0] == 'P' && head[1] >= '1' && head[1] <= '6' &&
		bytes.IndexByte([]byte(space), head[2]) >= 0 &&
		(head[3] == '#' || head[3] >= '0' && head[3] <= '9')
}
