package main

import (
	"cmp"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/agent-on-demand/aod/cmd/aod/ui"
)

var (
	calledInText = regexp.MustCompile("(?:^|[ (`'\"])aod ([a-z][a-z-]*[^`\n;,.:)|'$]*)")
	commandWord  = regexp.MustCompile(`^[a-z][a-z-]*$`)
	// prose are the words that follow "aod" in texts which name no command.
	prose = strings.Fields("was serves pack list itself is in")
)

// TestTheCommandsThatTextsNameExist reads the texts of all packages: hints, errors, helps.
func TestTheCommandsThatTextsNameExist(t *testing.T) {
	t.Parallel()
	root := newApp(nil, ui.NewOutput(os.Stdout), ui.NewOutput(os.Stderr)).rootCommand()
	calls := 0
	for at, text := range textsOfPackages(t, filepath.Join("..", "..")) {
		for _, m := range calledInText.FindAllStringSubmatch(text, -1) {
			calls++
			if wrong := wrongCall(root, strings.Fields(m[1])); wrong != "" {
				t.Errorf("%s: aod %s: %s", at, m[1], wrong)
			}
		}
	}
	if calls < 200 {
		t.Errorf("only %d calls were found", calls)
	}
}

// wrongCall says what is wrong with the words behind "aod"; "" if nothing is.
func wrongCall(root *cobra.Command, words []string) string {
	if slices.Contains(prose, words[0]) {
		return ""
	}
	command := root
	for len(words) > 0 && commandWord.MatchString(words[0]) {
		at := slices.IndexFunc(command.Commands(), func(c *cobra.Command) bool { return c.Name() == words[0] })
		if at < 0 {
			break
		}
		command, words = command.Commands()[at], words[1:]
	}
	isGroup := command.HasSubCommands() && !slices.Contains(alsoCommands, pathOf(command))
	if isGroup && len(words) > 0 && commandWord.MatchString(words[0]) {
		return "there is no command " + words[0]
	}
	for _, word := range words {
		name, is := strings.CutPrefix(word, "--")
		if name, _, _ = strings.Cut(name, "="); is && name != "" && name != "help" && command.Flag(name) == nil &&
			command.InheritedFlags().Lookup(name) == nil {
			return "it has no flag --" + name
		}
	}
	return ""
}

// textsOfPackages are the string literals of all Go files but tests, by their place.
func textsOfPackages(t *testing.T, dir string) map[string]string {
	t.Helper()
	texts, files := map[string]string{}, token.NewFileSet()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && slices.Contains([]string{".git", "tools", "examples", "testdata"}, d.Name()):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			e, is := n.(ast.Expr)
			text := ""
			if is {
				text = textOf(e)
			}
			if text != "" {
				texts[files.Position(n.Pos()).String()] = text
			}
			return text == ""
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return texts
}

// unknown stands for what a program puts into a text.
const unknown = "…"

// textOf is that of a literal, or of several that are joined; "" of anything else.
func textOf(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		if text, err := strconv.Unquote(e.Value); err == nil && e.Kind == token.STRING {
			return text
		}
	case *ast.BinaryExpr:
		if e.Op == token.ADD {
			return cmp.Or(textOf(e.X), unknown) + cmp.Or(textOf(e.Y), unknown)
		}
	}
	return ""
}
