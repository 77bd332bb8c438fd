package httpapi

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/labstack/echo/v4"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/contract"
	"github.com/agent-on-demand/aod/internal/safefs"
	"github.com/agent-on-demand/aod/orchestrator/spool"
)

// hostFile is a file of this host for a run.
type hostFile struct {
	field string // of the input, dotted; "": none
	label string // for messages: where it is named
	name  string // in /io/input
	path  string
}

// takeHostFiles copies the files of this host that an execution names. It copies nothing
// from outside the roots, and omits no named file. The spool is nil if no file is named;
// the caller releases it.
func (a *API) takeHostFiles(c echo.Context, asked execution) (*spool.Spool, error) {
	schema, err := a.svc.Schema(c.Request().Context(), asked.unit)
	if err != nil {
		return nil, err
	}
	known, _ := contract.Parse(schema)
	if known == nil {
		return nil, nil // the Service will say what is wrong with the unit
	}
	files, err := hostFilesOf(known.Input, asked)
	if err != nil || len(files) == 0 {
		return nil, err
	}
	copies, err := a.svc.NewSpool()
	if err != nil {
		return nil, err
	}
	if err := a.copyHostFiles(copies, files); err != nil {
		a.release(c, copies)
		return nil, err
	}
	return copies, nil
}

func (a *API) copyHostFiles(copies *spool.Spool, files []hostFile) error {
	for _, f := range files {
		if err := a.copyHostFile(copies, f); err != nil {
			return err
		}
	}
	return nil
}

func (a *API) copyHostFile(copies *spool.Spool, f hostFile) error {
	content, err := openUnder(a.opts.FileRoots, f)
	if err != nil {
		return err
	}
	defer content.Close()
	return copies.Add(f.field, f.name, content, a.opts.UploadBytes)
}

// openUnder opens a regular file below one of the roots, following no link out of it.
func openUnder(roots []string, f hostFile) (*os.File, error) {
	for _, root := range roots {
		rel, err := filepath.Rel(root, f.path)
		if err != nil || !filepath.IsLocal(rel) {
			continue
		}
		content, err := openIn(root, rel)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fault.Wrap(fault.Input, err, "the file for %q is not there", f.label)
		}
		if err == nil {
			return content, nil
		}
		return nil, forbidden(f, err)
	}
	return nil, forbidden(f, nil)
}

func forbidden(f hostFile, err error) error {
	return fault.Wrap(fault.Forbidden, err, "the file for %q may not be taken from this host", f.label).
		WithHint("it must be a regular file in one of the directories of the setting `file_roots`, with no link on " +
			"the way out of it")
}

func openIn(root, rel string) (*os.File, error) {
	dir, err := os.OpenRoot(root)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	content, _, err := safefs.OpenInside(dir, rel)
	return content, err
}
