package check

import (
	"bytes"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/agent-on-demand/aod/internal/lazyregexp"
)

// sourceEntries bounds the files read in a unit's directory.
const sourceEntries = 2000

// SourceOf finds what a unit's source has beside its program.
func SourceOf(dir string) *Source {
	source := &Source{Readme: hasExample(filepath.Join(dir, "README.md")), License: isLicensed(dir)}
	left := sourceEntries
	// unreadable files count as missing
	_ = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		left--
		switch {
		case left < 0:
			return filepath.SkipAll
		case err != nil || entry.IsDir() && slices.Contains(notSource, entry.Name()):
			return skipped(entry)
		case entry.Type().IsRegular():
			rel, _ := filepath.Rel(dir, path) // path is below dir
			source.UnitTests = source.UnitTests || isUnitTest(path, rel)
			source.IntegrationTests = source.IntegrationTests || sampleInput().MatchString(filepath.ToSlash(rel))
		}
		return nil
	})
	return source
}

// notSource are directories that others wrote, or programs made.
var notSource = []string{".git", "node_modules", "target", "vendor", ".venv"}

func skipped(entry fs.DirEntry) error {
	if entry != nil && entry.IsDir() {
		return filepath.SkipDir
	}
	return nil
}

// hasExample reports whether a text has a block of code.
func hasExample(name string) bool {
	return bytes.Contains(head(name), []byte("```"))
}

// head returns the beginning of a text.
func head(name string) []byte {
	const most = 256 << 10
	info, err := os.Lstat(name)
	if err != nil || !info.Mode().IsRegular() {
		return nil
	}
	file, err := os.Open(name)
	if err != nil {
		return nil
	}
	defer func() { _ = file.Close() }() // read only
	raw, _ := io.ReadAll(io.LimitReader(file, most))
	return raw
}

// isLicensed looks for a licence in the unit's directory and in those above it, up to the
// root of its repository.
func isLicensed(dir string) bool {
	own := hasLicense(dir)
	for found := own; ; found = found || hasLicense(dir) {
		if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil {
			return found
		}
		if filepath.Dir(dir) == dir {
			return own // there is no repository
		}
		dir = filepath.Dir(dir)
	}
}

var licenseFile = lazyregexp.New(`(?i)^(licen[sc]e|copying)([.-].*)?$`)

func hasLicense(dir string) bool {
	entries, _ := os.ReadDir(dir) // none if it can't be read
	return slices.ContainsFunc(entries, func(e fs.DirEntry) bool {
		return e.Type().IsRegular() && licenseFile().MatchString(e.Name()) &&
			len(bytes.TrimSpace(head(filepath.Join(dir, e.Name())))) > 0
	})
}

var (
	// unitTest matches the names of tests in many languages.
	unitTest = lazyregexp.New(`(?i)(^|/)([^/]*[_.-](test|spec)|(test|spec)[_.-][^/]*|(?-i:[^/]*Tests?)|test)\.(go|py|` +
		`rs|js|mjs|ts|java|kt|rb|php|pl|t|sh|bash|c|cc|cpp|swift)$|\.(bats|t)$`)
	// sampleInput matches data files in the directories where samples and their results are
	// kept.
	sampleInput = lazyregexp.New(`(?i)(^|/)(tests?|testdata|samples?|fixtures|examples)/.*\.(json|png|jpe?g|tiff?|` +
		`webp|gif|pdf|txt|csv|tsv|xml|html?|md|bin|dat|wav|mp3|zip)$|(^|/)(sample|expected)[^/]*$`)
)

// isUnitTest reports whether a file has tests of a program's logic. Rust keeps them in the
// program's own files.
func isUnitTest(path, rel string) bool {
	if unitTest().MatchString(filepath.ToSlash(rel)) {
		return true
	}
	return strings.HasSuffix(rel, ".rs") && bytes.Contains(head(path), []byte("#[cfg(test)]"))
}
