package preview

import (
	"io"
	"net/http"
	"path"
	"strings"
	"time"

	"github.com/agent-on-demand/aod/internal/terminal"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
)

// Content is an open file.
type Content interface {
	io.ReadSeeker
	io.ReaderAt
}

// Serve answers with the bytes of a file, or the part of them that is asked for: a picture that is shown has the type
// of its format, all else is saved under its name. A browser that opens them all the same runs and loads nothing. The
// digest may be "".
func Serve(w http.ResponseWriter, r *http.Request, file Content, name, digest string) {
	header := w.Header()
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Content-Security-Policy", "sandbox; default-src 'none'")
	header.Set("Cross-Origin-Resource-Policy", "same-origin")
	header.Set("Cache-Control", "private")
	header.Add("Vary", "Sec-Fetch-Dest")
	if digest != "" {
		header.Set("ETag", `"`+digest+`"`)
	}
	switch p := pictureIn(file); {
	case p.Kind == Picture:
		header.Set("Content-Type", p.MediaType)
	case p.Kind == Drawing && isForPicture(r):
		header.Set("Content-Type", p.MediaType)
		header.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; sandbox")
	default:
		header.Set("Content-Type", "application/octet-stream")
		header.Set("Content-Disposition", httpwire.Attachment(savedName(name)))
	}
	http.ServeContent(w, r, "", time.Time{}, file)
}

// pictureIn tells what picture a file is, if one.
func pictureIn(file Content) Preview {
	size, err := file.Seek(0, io.SeekEnd)
	if err != nil {
		return Preview{}
	}
	head, err := readHead(file, size)
	if kind := kindOf(head); err == nil && formats[kind] != "" {
		return picture(file, size, head, kind)
	}
	return Preview{}
}

// isForPicture reports whether an answer is for an <img>, as far as the browser tells.
func isForPicture(r *http.Request) bool {
	dest := r.Header.Get("Sec-Fetch-Dest")
	return dest == "" || dest == "image"
}

// savedName is the last part of a name, without what would make its end look like another one.
func savedName(name string) string {
	return strings.Map(func(r rune) rune {
		if terminal.Obeys(r) {
			return '_'
		}
		return r
	}, path.Base(name))
}
