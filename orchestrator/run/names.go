package run

import (
	"encoding/json"
	"io/fs"
	"iter"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/capsule/contract"
	"github.com/agent-on-demand/aod/internal/mask"
	"github.com/agent-on-demand/aod/internal/wire/strictjson"
)

// WithMaskedNames returns the result with the names under which its files may be stored and shown:
// those that are masked where the output has them, in the list and in the output. The names are by
// the true ones, under which the files still lie; none: all is as it was.
func (r *Run) WithMaskedNames(result Result) (Result, map[string]string) {
	by := r.ofOutput()
	if by == nil {
		return result, nil
	}
	names := maskedNames(by, result.Files)
	if len(names) == 0 {
		return result, nil
	}
	result.Output = r.renamedIn(result.Output, by, names)
	result.Files = slices.Clone(result.Files)
	for i, f := range result.Files {
		if shown, masked := names[f.Name]; masked {
			result.Files[i].Name, result.Files[i].Path = shown, movedPath(f, shown)
		}
	}
	return result, names
}

// movedPath is where a file lies that has got another name.
func movedPath(f api.File, name string) string {
	if f.Path == "" {
		return ""
	}
	return strings.TrimSuffix(f.Path, filepath.FromSlash(f.Name)) + filepath.FromSlash(name)
}

// maskedNames returns the other names of the files whose names are masked.
func maskedNames(by *mask.Masker, files []api.File) map[string]string {
	masked, free := map[string]string{}, fileNames{}
	for _, f := range files {
		if shown := by.Text(f.Name); shown != f.Name {
			masked[f.Name] = shown
		} else {
			free.keep(f.Name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(masked)) {
		masked[name] = free.next(masked[name])
	}
	return masked
}

// renamedIn returns an output with the names of files that masking alone wouldn't lead to. What
// isn't a payload names none.
func (r *Run) renamedIn(output json.RawMessage, by *mask.Masker, names map[string]string) json.RawMessage {
	payload, err := contract.Decode(output, int64(len(output)))
	if err != nil {
		return output
	}
	var refs []contract.FileRef
	for _, ref := range r.Unit.Contract.Output.FileRefs(payload) {
		if shown, masked := names[ref.Name]; ref.Err == nil && masked && shown != by.Text(ref.Text) {
			ref.Name = shown
			refs = append(refs, ref)
		}
	}
	if len(refs) == 0 {
		return output
	}
	if payload, err = payload.WithNames(refs); err != nil {
		return output
	}
	return payload.JSON()
}

// fileNames keeps the names of files apart, also from those of directories.
type fileNames struct {
	names mask.Names
	isDir map[string]bool // of the names that are taken
}

func (n *fileNames) keep(name string) {
	if n.isDir == nil {
		n.isDir = map[string]bool{}
	}
	n.names.Keep(name)
	n.isDir[name] = false
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		n.names.Keep(dir)
		n.isDir[dir] = true
	}
}

// next returns the name, or one without directories if it is taken.
func (n *fileNames) next(name string) string {
	if !fs.ValidPath(name) || n.inTheWay(name) {
		name = n.names.New(strings.ReplaceAll(name, "/", "_"))
	}
	n.keep(name)
	return name
}

func (n *fileNames) inTheWay(name string) bool {
	if _, taken := n.isDir[name]; taken {
		return true
	}
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		if isDir, taken := n.isDir[dir]; taken && !isDir {
			return true
		}
	}
	return false
}

// maskedPointer masks the names in a pointer.
func maskedPointer(by *mask.Masker, pointer string) string {
	path := strictjson.Path(pointer)
	for i, name := range path {
		path[i] = by.Text(name)
	}
	return strictjson.Pointer(path...)
}

// withPointers returns files with the pointers to where the masked output names them.
func withPointers(by *mask.Masker, files []api.File, output, masked []byte) []api.File {
	files = slices.Clone(files)
	for i, f := range files {
		if f.Pointer != nil && maskedPointer(by, *f.Pointer) != *f.Pointer {
			pointer := moved(*f.Pointer, output, masked)
			files[i].Pointer = &pointer
		}
	}
	return files
}

// moved returns the pointer to what a pointer leads to, in a copy of the document with other names.
func moved(pointer string, document, other []byte) string {
	path := strictjson.Path(pointer)
	for i, part := range path {
		path[i], document, other = below(part, document, other)
	}
	return strictjson.Pointer(path...)
}

// below returns what a part of a path leads to in a document and in its copy, and its name in that.
func below(part string, document, other []byte) (name string, inOne, inOther []byte) {
	var list, same []json.RawMessage
	if json.Unmarshal(document, &list) == nil && json.Unmarshal(other, &same) == nil {
		if i, err := strconv.Atoi(part); err == nil && 0 <= i && i < min(len(list), len(same)) {
			return part, list[i], same[i]
		}
		return part, nil, nil
	}
	next, stop := iter.Pull2(strictjson.Members(other))
	defer stop()
	for was, value := range strictjson.Members(document) {
		shown, its, ok := next()
		if ok && was == part {
			return shown, value, its
		}
	}
	return part, nil, nil
}
