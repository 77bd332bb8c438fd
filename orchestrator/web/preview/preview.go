// Package preview decides what a page shows of a file that untrusted code wrote, how a browser gets the file's bytes,
// and how a line of a log is shown.
//
//	Of     a picture, a table, JSON or text, or why nothing is shown
//	Serve  the bytes: a picture, or something to save
//	Clean  a line of a log
//
// A file is what its first bytes are. Its name only tells kinds of text apart, and a text whose name promises a
// picture, HTML or a PDF isn't shown. Texts are foreign: templates escape them.
//
// It must not know runs, or where files lie.
//
// Its Go API may change with every release: see docs/stability.md.
package preview

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/terminal"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
)

// maxHead is how much of a file is read to be shown, a part of one more character left out.
const maxHead = 256 << 10

// Kind is how a file is shown.
type Kind string

// The kinds.
const (
	None    Kind = ""        // only to save; Reason says why
	Picture Kind = "picture" // PNG, JPEG, GIF or WebP, in an <img>
	Drawing Kind = "drawing" // SVG, in an <img> alone
	Sheet   Kind = "table"
	JSON    Kind = "json"
	Text    Kind = "text"
)

// Preview is what is shown of a file.
type Preview struct {
	Kind          Kind
	Reason        string // of None, in plain words: "PDFs are only saved"
	MediaType     string // of a picture or a drawing
	Width, Height int    // of a picture, in pixels
	Table         *Table
	Text          string // of JSON, indented, and of text
	Note          string // what is left out or shown differently; "" if nothing is
}

// Of tells what is shown of a file of a name and a size. It reads at most 4 MiB of it.
func Of(file io.ReaderAt, name string, size int64) Preview {
	head, err := readHead(file, size)
	switch {
	case err != nil:
		return none("it can't be read")
	case len(head) == 0:
		return none("it is empty")
	}
	kind, named := kindOf(head), httpwire.TypeOfFile(name)
	switch known, promised := formats[kind], formats[named]; {
	case known != "":
		return picture(file, size, head, kind)
	case promised != "":
		return none("its header isn't " + promised + "'s")
	case kind == html && named == markdown: // which may begin so; it is shown as text
	case onlySaved(kind) != "":
		return none(onlySaved(kind))
	case onlySaved(named) != "":
		return none(onlySaved(named))
	}
	return written(head, named)
}

func none(reason string) Preview { return Preview{Reason: reason} }

func readHead(file io.ReaderAt, size int64) ([]byte, error) {
	head := make([]byte, min(max(size, 0), maxHead+utf8.UTFMax))
	n, err := io.ReadFull(io.NewSectionReader(file, 0, int64(len(head))), head)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, fmt.Errorf("read the beginning of a file: %w", err)
	}
	return head[:n], nil
}

// Kinds by their media types.
const (
	svg      = "image/svg+xml"
	html     = "text/html"
	markdown = "text/markdown"
	csvText  = "text/csv"
	tsvText  = "text/tab-separated-values"
)

// kindOf is the media type of a file by its first bytes.
func kindOf(head []byte) string {
	if isSVG(head) {
		return svg
	}
	kind, _, _ := strings.Cut(http.DetectContentType(head), ";")
	return kind
}

// onlySaved says why a file of a media type isn't shown; "" if it is.
func onlySaved(kind string) string {
	of, _, _ := strings.Cut(kind, "/")
	switch {
	case kind == html:
		return "HTML is only saved"
	case kind == "application/pdf":
		return "PDFs are only saved"
	case kind == "application/zip", kind == "application/gzip", strings.HasPrefix(kind, "application/x-"):
		return "archives are only saved"
	case of == "image":
		return "pictures of this format are only saved"
	case of == "video", of == "audio":
		return "video and sound are only saved"
	}
	return ""
}

// written is the preview of a text, which may be a table or JSON.
func written(head []byte, named string) Preview {
	whole := len(head) <= maxHead
	text := strings.TrimPrefix(fault.Cut(string(head), maxHead), "\uFEFF")
	if !utf8.ValidString(text) || strings.ContainsRune(text, 0) || isBinary(head) {
		return none("it isn't text in UTF-8")
	}
	text = strings.ReplaceAll(text, "\r\n", "\n")
	p := Preview{Kind: Text, Text: text}
	switch {
	case named == csvText, named == tsvText:
		p = sheet(text, whole)
	case whole && (named == httpwire.TypeJSON || looksLikeJSON(text)):
		p = document(text, named)
	}
	p.Text = terminal.Plain(p.Text)
	if p.Table == nil && !whole {
		p.Note = strings.TrimPrefix(p.Note+"; the first 256 KiB", "; ")
	}
	return p
}

func isBinary(head []byte) bool { return !strings.HasPrefix(http.DetectContentType(head), "text/") }

func looksLikeJSON(text string) bool {
	trimmed := strings.TrimLeft(text, " \t\r\n")
	return trimmed != "" && bytes.IndexByte([]byte("{["), trimmed[0]) >= 0
}
