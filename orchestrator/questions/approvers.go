package questions

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"strings"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/access"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/orchestrator/store"
)

// approversText is what is stored of approvers.
func approversText(approvers []string) (string, error) {
	if len(approvers) == 0 {
		return "", nil
	}
	raw, err := json.Marshal(approvers)
	return string(raw), err
}

// approversOf reads it. The error is a fault.
func approversOf(row store.Question) (approvers []string, err error) {
	if row.Approvers == "" {
		return nil, nil
	}
	if err := json.Unmarshal([]byte(row.Approvers), &approvers); err != nil {
		return nil, run.Corrupt(err)
	}
	return approvers, nil
}

// approves returns a Forbidden fault, which says who may, if the client of ctx may not answer a question.
func (g *Registry) approves(ctx context.Context, row store.Question) error {
	approvers, err := approversOf(row)
	if err != nil || len(approvers) == 0 || access.MayAnswer(ctx, approvers) {
		return err
	}
	access.Note(ctx)
	g.opts.Refused(ctx, row.Team, row.ID)
	return fault.New(fault.Forbidden, "the question is answered by %s alone", strings.Join(approvers, ", ")).
		WithHint("one of them has to answer it; who may see its run may cancel that")
}

// filesIn returns the files that a question shows, each under a name of its own. Only that of a flow shows any.
func filesIn(q api.Question) []api.File {
	if q.Kind != "" || !bytes.Contains(q.Show, []byte(`"$file"`)) {
		return nil
	}
	shows, err := run.DecodeShown(q.Show)
	if err != nil {
		return nil // it is told without them
	}
	files, err := run.FilesOf(shows)
	if err != nil {
		return nil
	}
	return files
}

// OpenFile opens a file that a question shows for reading, by its name in api.Question.Files. No other file of its run
// can be opened so.
func (g *Registry) OpenFile(ctx context.Context, id, name string) (*os.File, api.File, error) {
	q, err := g.Get(ctx, id)
	if err != nil {
		return nil, api.File{}, err
	}
	for _, file := range q.Files {
		if file.Name == name {
			content, err := run.OpenOfState(g.opts.StateDir(q.Run), file)
			return content, file, err
		}
	}
	return nil, api.File{}, fault.New(fault.NotFound, "the question shows no such file").
		WithHint("its `files` have the names")
}
