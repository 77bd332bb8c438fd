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
