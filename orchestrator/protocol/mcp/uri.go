package mcp

import (
	"encoding/base64"
	"mime"
	"net/url"
	"path"
	"strings"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
)

const (
	runScheme  = "aod://runs/"
	dataScheme = "data:"
	maxData    = 4 << 20 // bytes of a file in a URI
	maxURI     = 8 << 10 // of one that names a file
)

// fileURI is the URI of a file of a run.
func fileURI(run, name string) string {
	return runScheme + run + "/files/" + httpwire.EscapePath(name)
}

// pathURI is the URI of a file of this machine.
func pathURI(at string) string { return "file://" + httpwire.EscapePath(at) }

// parseFileURI reads aod://runs/ID/files/NAME.
func parseFileURI(uri string) (run, name string, err error) {
	refused := fault.New(fault.Input, "the URI is not that of a file of a run").
		WithHint("write %sID/files/NAME, as a result links to it", runScheme)
	rest, ours := strings.CutPrefix(uri, runScheme)
	run, escapedName, whole := strings.Cut(rest, "/files/")
	if !ours || !whole || len(uri) > maxURI || !httpwire.IsRunID(run) {
		return "", "", refused
	}
	name, err = url.PathUnescape(escapedName)
	if err != nil || strings.ContainsAny(escapedName, "?#") || api.CheckFileName(name) != nil {
		return "", "", refused
	}
	return run, name, nil
}

// parseData reads a data: URI with base64. Its name is the parameter name, or "".
func parseData(uri string) (kind, name string, content []byte, err error) {
	head, encoded, _ := strings.Cut(strings.TrimPrefix(uri, dataScheme), ",")
	head, isBase64 := strings.CutSuffix(head, ";base64")
	if !isBase64 || len(head) > maxURI {
		return "", "", nil, fault.New(fault.Input, "the data: URI is not base64").WithHint("write data:TYPE;base64,…")
	}
	if base64.StdEncoding.DecodedLen(len(encoded)) > maxData+2 {
		return "", "", nil, tooMuchData()
	}
	if content, err = base64.StdEncoding.DecodeString(encoded); err != nil {
		return "", "", nil, fault.New(fault.Input, "the data: URI holds base64 that can't be read").
			WithHint("use the standard alphabet, with padding and without line ends")
	}
	if len(content) > maxData {
		return "", "", nil, tooMuchData()
	}
	kind, params, err := mime.ParseMediaType(head)
	if err != nil {
		kind = ""
	}
	if name = path.Base(params["name"]); name == "." || name == "/" || api.CheckFileName(name) != nil {
		name = ""
	}
	return kind, name, content, nil
}

func tooMuchData() error {
	return fault.New(fault.Input, "the data: URI holds more than %d bytes", maxData).
		WithHint("name a larger file by its path (aod mcp --files DIR), or by the URI of an earlier result")
}

func isImage(kind string) bool {
	return strings.HasPrefix(kind, "image/") && kind != "image/svg+xml"
}

func isText(kind string) bool {
	switch kind {
	case "application/json", "application/jsonl", "application/yaml", "application/xml", "image/svg+xml":
		return true
	}
	return strings.HasPrefix(kind, "text/")
}
