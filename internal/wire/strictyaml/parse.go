package strictyaml

import (
	"bytes"
	"errors"
	"io"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/lazyregexp"
)

var yamlLine = lazyregexp.New(`^(?:yaml: )?(?:line (\d+): )?`)

// ParseNode reads the only document of a file; nil when the file holds none. The finding is
// of its syntax.
func ParseNode(file string, raw []byte) (root *yaml.Node, finding *fault.Finding) {
	// The parser panics on some broken input instead of returning an error.
	defer func() {
		if recover() != nil {
			root, finding = nil, &fault.Finding{File: file, Line: 1, Message: "it isn't YAML", Hint: "check the syntax"}
		}
	}()
	decoder := yaml.NewDecoder(bytes.NewReader(raw))
	var first, second yaml.Node
	if err := decoder.Decode(&first); errors.Is(err, io.EOF) {
		return nil, nil
	} else if err != nil {
		return nil, syntaxFinding(file, err)
	}
	err := decoder.Decode(&second)
	if err == nil {
		return nil, &fault.Finding{
			File: file, Line: second.Line, Message: "it holds more than one document",
			Hint: "keep one, without --- between",
		}
	}
	if !errors.Is(err, io.EOF) {
		return nil, syntaxFinding(file, err)
	}
	return first.Content[0], nil
}

func syntaxFinding(file string, err error) *fault.Finding {
	text := err.Error()
	m := yamlLine().FindStringSubmatch(text)
	line, _ := strconv.Atoi(m[1]) // 0 where the parser knows none
	message := "it isn't YAML: " + fault.Clip(strings.TrimPrefix(text, m[0]), 200)
	return &fault.Finding{
		File: file, Line: max(line, 1), Message: message,
		Hint: "check the indentation (spaces, no tabs), the colons and the quotes",
	}
}
