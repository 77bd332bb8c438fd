package httpwire

import (
	"mime"
	"net/http"
	"path"
	"strings"

	"github.com/agent-on-demand/aod/api/fault"
)

// The media types of our wires.
const (
	TypeJSON    = "application/json"
	TypeProblem = "application/problem+json"
	TypeEvents  = "text/event-stream"
)

// MediaType returns the media type of a message, in lower case and without parameters;
// "" where the header Content-Type has none that can be read.
func MediaType(header http.Header) string {
	media, _, err := mime.ParseMediaType(header.Get("Content-Type"))
	if err != nil {
		return ""
	}
	return media
}

// RequireJSON returns a BadRequest fault unless the body of a request is called JSON. A
// browser sends bodies of other types for any page without asking.
func RequireJSON(r *http.Request) error {
	if MediaType(r.Header) == TypeJSON {
		return nil
	}
	return fault.New(fault.BadRequest, "the body's Content-Type is not application/json").
		WithHint("send the header Content-Type: application/json")
}

// mediaTypes are the media types of files by the ends of their names.
var mediaTypes = map[string]string{
	".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".gif": "image/gif", ".webp": "image/webp",
	".avif": "image/avif",
	".svg":  "image/svg+xml", ".pdf": "application/pdf", ".zip": "application/zip", ".gz": "application/gzip",
	".xml": "application/xml",
	".txt": "text/plain", ".log": "text/plain", ".md": "text/markdown", ".csv": "text/csv",
	".tsv":  "text/tab-separated-values",
	".html": "text/html", ".htm": "text/html", ".css": "text/css", ".js": "text/javascript", ".mjs": "text/javascript",
	".json": "application/json", ".jsonl": "application/jsonl", ".yaml": "application/yaml", ".yml": "application/yaml",
	".wasm": "application/wasm", ".mp3": "audio/mpeg", ".wav": "audio/wav", ".mp4": "video/mp4", ".webm": "video/webm",
}

// unknownType is the media type of any bytes.
const unknownType = "application/octet-stream"

// TypeOfFile is the media type of a file by the end of its name, alike on every machine.
func TypeOfFile(name string) string {
	if known := mediaTypes[strings.ToLower(path.Ext(name))]; known != "" {
		return known
	}
	return unknownType
}

// Extension is an end for the name of a file of a media type, alike each time: .bin where the
// type isn't known.
func Extension(mediaType string) string {
	switch mediaType {
	case "image/jpeg":
		return ".jpg"
	case "text/plain":
		return ".txt"
	case "text/html":
		return ".html"
	case "text/javascript":
		return ".js"
	case "application/yaml":
		return ".yaml"
	}
	for end, known := range mediaTypes {
		if known == mediaType {
			return end
		}
	}
	return ".bin"
}

// Attachment is the header Content-Disposition of a file that a browser saves under a name.
func Attachment(name string) string {
	if value := mime.FormatMediaType("attachment", map[string]string{"filename": name}); value != "" {
		return value
	}
	return "attachment"
}
