package web

import (
	"context"
	"net/url"
	"strings"

	"github.com/agent-on-demand/aod/capsule/contract"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
	"github.com/agent-on-demand/aod/orchestrator"
	"github.com/agent-on-demand/aod/orchestrator/spool"
)

const defaultUpload = 256 << 20 // bytes of a form with its files

// filePrefix begins the names of controls for files, before the field of the input that they are for.
const filePrefix = "file:"

// upload is what a form with files was filled in with. Who reads it owns the files.
type upload struct {
	url.Values
	files *spool.Spool // nil: there are none

	svc   *orchestrator.Service
	most  int64 // bytes of the whole
	texts int64 // bytes that are left for texts
}

// readUpload reads a form with files, as it comes.
func (p *Page) readUpload(r *request) (u upload, err error) {
	u = upload{Values: url.Values{}, svc: p.svc, most: p.opts.UploadBytes, texts: contract.DefaultMaxBytes}
	if err := u.svc.Room(r.ContentLength); err != nil {
		return u, err
	}
	for part, err := range httpwire.FormParts(r.Request, u.most, maxFormParts) {
		if err == nil {
			err = u.read(r.Context(), part)
		}
		if err = part.Or(err); err != nil {
			_ = u.files.Remove() // the error that led here is the one to tell
			return u, err
		}
	}
	return u, nil
}

func (u *upload) read(ctx context.Context, part *httpwire.FormPart) error {
	field, isFile := strings.CutPrefix(part.Name, filePrefix)
	if isFile {
		return u.readFile(ctx, field, part)
	}
	text, err := part.Text(u.texts)
	u.texts -= int64(len(text))
	u.Add(part.Name, string(text))
	return err
}

// readFile stores a file. A control in which none was chosen sends one without a name.
func (u *upload) readFile(ctx context.Context, field string, part *httpwire.FormPart) error {
	if part.File == "" {
		return nil
	}
	name, err := contract.CleanName(part.File, contract.StageInput)
	if err == nil && u.files == nil {
		u.files, err = u.svc.NewSpool()
	}
	if err != nil {
		return err
	}
	return u.files.Add(field, name, httpwire.Streamed(ctx, part), u.most)
}
