package api

import (
	"io/fs"
	"path/filepath"
	"strings"
	"unicode"

	"github.com/agent-on-demand/aod/api/fault"
)

const (
	maxFileName  = 1024 // bytes
	maxFilePart  = 255  // bytes of a part
	maxFileParts = 16   // parts between slashes
)

// CheckFileName returns an Input fault unless a name can be that of an output file in a
// record (File.Name): a relative path with slashes, without "..", backslashes and control
// characters, of at most 1024 bytes, 255 in a part and 16 parts. A server writes no other
// names; a client puts nothing on its disk under another.
func CheckFileName(name string) error {
	parts := strings.Split(name, "/")
	switch {
	case name == ".", !fs.ValidPath(name), !filepath.IsLocal(filepath.FromSlash(name)):
		return fault.New(fault.Input, "the file name is not a relative path")
	case strings.ContainsFunc(name, unicode.IsControl), strings.Contains(name, `\`):
		return fault.New(fault.Input, "the file name has a control character or a backslash in it")
	case len(name) > maxFileName, len(parts) > maxFileParts:
		return fault.New(fault.Input, "the file name is longer than 1024 bytes or 16 parts")
	}
	for _, part := range parts {
		if len(part) > maxFilePart {
			return fault.New(fault.Input, "a part of the file name is longer than 255 bytes")
		}
	}
	return nil
}

// The ways in which a file of a workspace changes.
const (
	OpAdd    = "add"
	OpModify = "modify" // its content, its mode or its kind
	OpDelete = "delete"
)

// Changes are what a run did to the files of its workspace (changes.json).
type Changes struct {
	Partial  bool     `json:"partial,omitempty"`  // the run failed or was stopped: it may have meant to do more
	Changes  []Change `json:"changes"`            // by path
	Warnings []string `json:"warnings,omitempty"` // what was left out, and why
}

// Change is what happened to one file, which may be a symbolic link: then its content is its
// target.
type Change struct {
	Path string `json:"path"` // relative, with slashes
	Op   string `json:"op"`
	// as git writes it: 100644, 100755 or 120000; of a deleted file the one it had
	Mode    string   `json:"mode"`
	ModeWas string   `json:"mode_was,omitempty"` // where a modified file had another one
	Before  string   `json:"before,omitempty"`   // SHA-256 of the content in hex; "" of an added file
	After   string   `json:"after,omitempty"`    // likewise; "" of a deleted file
	Size    int64    `json:"size"`               // in bytes, of the new content
	Mind    []string `json:"mind,omitempty"`     // why a person should look at it first
}

// ChangeCounts say in a record what a run did to its workspace.
type ChangeCounts struct {
	Files   int   `json:"files"`
	Bytes   int64 `json:"bytes"` // of the new contents
	Partial bool  `json:"partial,omitempty"`
}

// Counts returns what a record has of the changes.
func (c Changes) Counts() *ChangeCounts {
	counts := &ChangeCounts{Files: len(c.Changes), Partial: c.Partial}
	for _, change := range c.Changes {
		counts.Bytes += change.Size
	}
	return counts
}
