package httpapi

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
)

// getFile returns the handler of the files of a run that open finds.
func getFile(open func(ctx context.Context, id, name string) (*os.File, api.File, error)) echo.HandlerFunc {
	return fileOf(runID, open)
}

// fileOf is getFile of another thing that has files.
func fileOf(
	of find, open func(ctx context.Context, id, name string) (*os.File, api.File, error),
) echo.HandlerFunc {
	return about(of, func(c echo.Context, id string) error {
		name, err := fileName(c)
		if err != nil {
			return err
		}
		content, file, err := open(c.Request().Context(), id, name)
		if err != nil {
			return err
		}
		return sendFile(c, content, file)
	})
}

// sendFile answers with a file, or the part of it that is asked for, and closes it.
func sendFile(c echo.Context, content *os.File, file api.File) error {
	describeFile(c.Response().Header(), file)
	return sendStored(c, content, typeOf(file.Name))
}

func fileName(c echo.Context) (string, error) {
	name, err := param(c, "*")
	if err != nil {
		return "", err
	}
	if !fs.ValidPath(name) || name == "." || strings.ContainsRune(name, 0) {
		return "", fault.New(fault.NotFound, "the run has no such file").WithHint("`aod runs ID` lists them")
	}
	return name, nil
}

// describeFile sets the headers for bytes that untrusted code wrote: a browser saves them,
// and if it shows them all the same, it runs nothing.
func describeFile(header http.Header, file api.File) {
	header.Set(echo.HeaderContentType, typeOf(file.Name))
	header.Set(echo.HeaderContentDisposition, httpwire.Attachment(path.Base(file.Name)))
	header.Set(echo.HeaderContentSecurityPolicy, "sandbox; default-src 'none'")
	header.Set(echo.HeaderCacheControl, "private")
	if file.SHA256 != "" {
		header.Set("ETag", `"`+file.SHA256+`"`)
	}
}

// typeOf is the media type of a file by its name. Text is taken for UTF-8.
func typeOf(name string) string {
	known := httpwire.TypeOfFile(name)
	if strings.HasPrefix(known, "text/") {
		return known + "; charset=utf-8"
	}
	return known
}

var errRange = errors.New("range not satisfiable")

// rangeWriter suppresses http.ServeContent's own text about an invalid range, so that a
// problem can replace it.
type rangeWriter struct {
	http.ResponseWriter
	refused bool
}

// WriteHeader implements http.ResponseWriter.
func (w *rangeWriter) WriteHeader(status int) {
	if w.refused = status == http.StatusRequestedRangeNotSatisfiable; !w.refused {
		w.ResponseWriter.WriteHeader(status)
	}
}

func (w *rangeWriter) Write(p []byte) (int, error) {
	if w.refused {
		return len(p), nil
	}
	return w.ResponseWriter.Write(p)
}

// changeHandlers answer what is asked of what runs have changed.
type changeHandlers struct {
	runs interface {
		Changes(ctx context.Context, run string) (*os.File, error)
		Patch(ctx context.Context, run string) (*os.File, error)
		PatchOf(ctx context.Context, run, name string) (io.ReadSeekCloser, error)
	}
}

// list answers with the list of what a run has changed.
func (h changeHandlers) list(c echo.Context, run string) error {
	content, err := h.runs.Changes(c.Request().Context(), run)
	if err != nil {
		return err
	}
	return sendStored(c, content, echo.MIMEApplicationJSON)
}

const longName = 1024 // bytes of a file's path, at most

// patch answers with what a run has changed, or with ?file= of one file, as a patch.
func (h changeHandlers) patch(c echo.Context, run string) error {
	q := queryOf(c, "file")
	name := parse(q, "file", "the path of a changed file",
		func(s string) (string, bool) { return s, fs.ValidPath(s) && len(s) <= longName })
	if q.err != nil {
		return q.err
	}
	var content io.ReadSeekCloser
	var err error
	if name == "" {
		content, err = h.runs.Patch(c.Request().Context(), run)
	} else {
		content, err = h.runs.PatchOf(c.Request().Context(), run, name)
	}
	if err != nil {
		return err
	}
	describeFile(c.Response().Header(), api.File{Name: "changes.patch"})
	return sendStored(c, content, "text/x-diff")
}

// sendStored answers with a stored file and closes it.
func sendStored(c echo.Context, content io.ReadSeekCloser, mediaType string) error {
	defer func() { _ = content.Close() }() // read only
	c.Response().Header().Set(echo.HeaderContentType, mediaType)
	out := &rangeWriter{ResponseWriter: c.Response()}
	http.ServeContent(out, c.Request(), "", time.Time{}, content)
	if out.refused {
		c.Response().Header().Del(echo.HeaderContentDisposition)
		return errRange
	}
	return nil
}
