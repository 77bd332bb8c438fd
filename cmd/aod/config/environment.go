package config

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/lazyregexp"
)

// Bounds of a unit's environment.
const (
	maxVariables     = 100
	maxVariableBytes = 32 << 10 // of one value; the kernel takes 128 KiB
)

var variableRule = lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_]{0,127}$`)

// environment is a map of environment variables. It takes numbers and truth values, which become
// texts as they are written.
func environment(into *map[string]string) mapping {
	return mapping{
		into: into, name: "texts by names",
		advice: "write names with their values, such as {MODEL_URL: http://127.0.0.1:7070/v1}; names that begin with " +
			"AOD_ are AOD's own",
		takes: func(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && !isNull(n) },
		check: func(name, text string) error { return checkVariable(name, text, len(*into)) },
	}
}

// checkVariable checks a variable that comes after some others.
func checkVariable(name, text string, others int) error {
	switch {
	case !variableRule().MatchString(name):
		return fmt.Errorf("%s can't be the name of a variable", fault.Quote(name))
	case strings.HasPrefix(name, "AOD_"):
		return fmt.Errorf("%s is AOD's own", fault.Quote(name))
	case len(text) > maxVariableBytes:
		return fmt.Errorf("the value of %s has more than %d bytes", name, maxVariableBytes)
	case strings.ContainsRune(text, 0):
		return fmt.Errorf("the value of %s has a zero byte in it", name)
	case others >= maxVariables:
		return fmt.Errorf("there are more than %d variables", maxVariables)
	}
	return nil
}

// cores is a number of processors.
type cores struct{ into *float64 }

const (
	leastCores = 0.01
	mostCores  = 1024
)

func (v cores) kind() string   { return "number" }
func (v cores) String() string { return numberText(*v.into) }
func (v cores) hint() string {
	return fmt.Sprintf("write a number from %s to %d, such as 0.5 or 2", numberText(leastCores), mostCores)
}

func numberText(n float64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatFloat(n, 'f', -1, 64)
}

func (v cores) set(text string) error {
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(n) {
		return fmt.Errorf("%s isn't a number", fault.Quote(text))
	}
	if n < leastCores || n > mostCores {
		return fmt.Errorf("%s is out of range", text)
	}
	*v.into = n
	return nil
}

var runtimeRule = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9._/-]{0,127}$`)

// runtimes is a list of the engine's names of isolation runtimes.
func runtimes(into *[]string) list {
	return list{
		into, "runtimes", "write a list of the engine's names of runtimes, such as [runsc], or [any]", ",",
		checkRuntime,
	}
}

func checkRuntime(name string) (string, error) {
	if !runtimeRule().MatchString(name) {
		return "", fmt.Errorf("%s isn't a runtime's name", fault.Quote(name))
	}
	return name, nil
}

// runtimeName is the engine's name of an isolation runtime.
func runtimeName(into *string) single {
	return single{into, "runtime", "write the engine's name of a runtime, such as runsc", checkRuntime}
}
