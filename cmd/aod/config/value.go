package config

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/lazyregexp"
)

// value is a field of a Config that is parsed from text and formatted as text.
type value interface {
	kind() string          // a type name for help texts and tables
	hint() string          // what to write
	set(text string) error // on an error the field is unchanged
	String() string
}

// rooted is a value that holds relative paths.
type rooted interface {
	root(base string) // makes the paths absolute
}

// integer is a whole number between two bounds, both inclusive.
type integer struct {
	into        *int
	least, most int
}

var integerRule = lazyregexp.New(`^-?(0|[1-9][0-9]{0,17})$`)

func (v integer) kind() string   { return "int" }
func (v integer) String() string { return strconv.Itoa(*v.into) }
func (v integer) hint() string {
	return fmt.Sprintf("write a whole number from %d to %d", v.least, v.most)
}

func (v integer) set(text string) error {
	if !integerRule().MatchString(text) {
		return fmt.Errorf("%s isn't a whole number", fault.Quote(text))
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < v.least || n > v.most {
		return fmt.Errorf("%s is out of range", text)
	}
	*v.into = n
	return nil
}

type boolean struct{ into *bool }

func (v boolean) kind() string   { return "bool" }
func (v boolean) String() string { return strconv.FormatBool(*v.into) }
func (v boolean) hint() string   { return "write true or false" }

func (v boolean) set(text string) error {
	switch strings.ToLower(text) {
	case "true", "1":
		*v.into = true
	case "false", "0":
		*v.into = false
	default:
		return fmt.Errorf("%s is neither true nor false", fault.Quote(text))
	}
	return nil
}

// word is one of a few words.
type word struct {
	into  *string
	known []string
}

func (v word) kind() string   { return strings.Join(v.known, "|") }
func (v word) String() string { return *v.into }
func (v word) hint() string   { return "write one of " + strings.Join(v.known, ", ") }

func (v word) set(text string) error {
	if !slices.Contains(v.known, text) {
		return fmt.Errorf("%s isn't known here", fault.Quote(text))
	}
	*v.into = text
	return nil
}

// single is a text of one form.
type single struct {
	into   *string
	name   string
	advice string
	form   func(text string) (string, error) // returns the text in its normal form
}

func (v single) kind() string   { return v.name }
func (v single) hint() string   { return v.advice }
func (v single) String() string { return *v.into }

func (v single) set(text string) error {
	text, err := v.form(text)
	if err == nil {
		*v.into = text
	}
	return err
}

// optional is a form that takes no text as well.
func optional(form func(string) (string, error)) func(string) (string, error) {
	return func(text string) (string, error) {
		if text == "" {
			return "", nil
		}
		return form(text)
	}
}

// path is the name of a file or a directory, which may be missing.
type path struct{ single }

func pathOf(into *string) path {
	return path{single{into, "path", "write a path; neither ~ nor a variable is expanded", checkPath}}
}

func (v path) root(base string) { *v.into = absolute(base, *v.into) }

// maxPath is the kernel's bound, in bytes.
const maxPath = 4096

func checkPath(text string) (string, error) {
	switch {
	case text == "":
		return "", errors.New("the path is empty")
	case len(text) > maxPath:
		return "", fmt.Errorf("the path is longer than %d bytes", maxPath)
	case strings.ContainsFunc(text, unicode.IsControl):
		return "", fmt.Errorf("%s has control characters in it", fault.Quote(text))
	case text == "~" || strings.HasPrefix(text, "~/"):
		return "", fmt.Errorf("%s: only a shell knows what ~ is", fault.Quote(text))
	}
	return text, nil
}

func absolute(base, name string) string {
	if filepath.IsAbs(name) {
		return filepath.Clean(name)
	}
	return filepath.Join(base, name)
}
