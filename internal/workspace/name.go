package workspace

import (
	"cmp"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"unicode/utf8"
)

const (
	maxName  = 1024 // bytes of a path
	maxDepth = 64   // directories above a file

	tooDeep = "is nested more than 64 directories deep"
)

// nameProblem says why a path can't be that of a file in a project; "" if it can.
func nameProblem(name string) string {
	switch {
	case !utf8.ValidString(name):
		return "has a name that isn't UTF-8"
	case !fs.ValidPath(name), name == ".":
		return "isn't a relative path without `..`"
	case len(name) > maxName:
		return fmt.Sprintf("has a name of more than %d bytes", maxName)
	case strings.ContainsRune(name, 0):
		return "has a NUL in its name"
	case strings.Count(name, "/") > maxDepth:
		return tooDeep
	}
	return ""
}

// plain returns a path as any system may read it: some file systems ignore case, some characters,
// or what stands at the end of a name, and one takes a backslash for a slash.
func plain(name string) string {
	parts := strings.Split(strings.ReplaceAll(name, `\`, "/"), "/")
	for i, part := range parts {
		part = strings.Map(visible, part)
		part, _, _ = strings.Cut(part, ":") // a stream of NTFS
		parts[i] = cmp.Or(strings.ToLower(strings.ToUpper(strings.TrimRight(part, ". "))), "_")
	}
	return strings.Join(parts, "/")
}

// called reports whether a plain part of a path is, or may be, a name in small letters: NTFS knows
// one that isn't a name of DOS by a second one.
func called(part, name string) bool {
	bare := strings.TrimLeft(name, ".")
	const most = 8 // characters of a name of DOS
	second := bare != name || len(name) > most
	return part == name || second && part == bare[:min(len(bare), most-2)]+"~1"
}

// inGit reports whether a path is, or leads into, what git takes for its own directory on any
// system.
func inGit(name string) bool {
	for part := range strings.SplitSeq(plain(name), "/") {
		if called(part, gitDir) {
			return true
		}
	}
	return false
}

// visible drops the characters that HFS+ ignores in names.
func visible(r rune) rune {
	switch {
	case r >= 0x200c && r <= 0x200f, r >= 0x202a && r <= 0x202e, r >= 0x206a && r <= 0x206f, r == 0xfeff:
		return -1
	}
	return r
}

// ours reports whether a path is what Apply makes for a while.
func ours(name string) bool {
	top, _, _ := strings.Cut(plain(name), "/")
	return called(top, stageName)
}

// linkProblem says why a symbolic link can't be part of a project; "" if it can. A target has
// its `..` in front alone: what is behind another link's name, `..` doesn't lead back from.
func linkProblem(name, target string) string {
	rest, up := target, 0
	for ; rest == ".." || strings.HasPrefix(rest, "../"); up++ {
		rest = strings.TrimPrefix(strings.TrimPrefix(rest, ".."), "/")
	}
	switch {
	case target == "" || strings.HasPrefix(target, "/") || up > strings.Count(name, "/"):
		return "is a link that leads out of the project"
	case len(target) > maxName || !utf8.ValidString(target) || strings.ContainsRune(target, 0):
		return "is a link whose target can't be kept"
	case rest != "" && path.Clean("/"+rest) != "/"+strings.TrimSuffix(rest, "/"):
		return "is a link whose target isn't written plainly: `..` stands in front only"
	case inGit(path.Join(path.Dir(name), target)):
		return "is a link into .git"
	}
	return ""
}
