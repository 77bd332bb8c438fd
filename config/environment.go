package config

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/agent-on-demand/aod/fault"
)

// Bounds of a unit's environment.
const (
	maxVariables     = 100
	maxVariableBytes = 32 << 10 // of one value; the kernel takes 128 KiB
)

var variableRule = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,127}$`)

// environment is a map of environment variables.
type environment struct{ into *map[string]string }

func (v environment) kind() string { return "texts by names" }
func (v environment) hint() string {
	return "write names with their values, such as {MODEL_URL: http://127.0.0.1:7070/v1}; names that begin with AOD_ are AOD's own"
}

func (v environment) String() string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(*v.into)) {
		all = append(all, name+"="+(*v.into)[name])
	}
	return strings.Join(all, ",")
}

// set refuses any text: the map has no flag and no variable.
func (v environment) set(string) error { return errors.New("it isn't a map of names") }

// takes allows numbers and truth values, which become texts as they are written.
func (v environment) takes(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && !isNull(n) }

func (v environment) add(name, text string) error {
	switch {
	case !variableRule.MatchString(name):
		return fmt.Errorf("%s can't be the name of a variable", fault.Quote(name))
	case strings.HasPrefix(name, "AOD_"):
		return fmt.Errorf("%s is AOD's own", fault.Quote(name))
	case len(text) > maxVariableBytes:
		return fmt.Errorf("the value of %s has more than %d bytes", name, maxVariableBytes)
	case strings.ContainsRune(text, 0):
		return fmt.Errorf("the value of %s has a zero byte in it", name)
	case len(*v.into) >= maxVariables:
		return fmt.Errorf("there are more than %d variables", maxVariables)
	}
	if *v.into == nil {
		*v.into = map[string]string{}
	}
	(*v.into)[name] = text
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

// networks is a list of networks.
func networks(into *[]string) list {
	return list{into, "networks", "write a list of " + strings.Join(networkWords, ", "), ",", func(name string) (string, error) {
		if !slices.Contains(networkWords, name) {
			return "", fmt.Errorf("%s isn't a network here", fault.Quote(name))
		}
		return name, nil
	}}
}

// buildNetworks is a list of networks of builds.
func buildNetworks(into *[]string) list {
	return list{into, "networks", "write a list of " + strings.Join(buildWords, ", "), ",", func(name string) (string, error) {
		if !slices.Contains(buildWords, name) {
			return "", fmt.Errorf("%s isn't a network of builds", fault.Quote(name))
		}
		return name, nil
	}}
}

var runtimeRule = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._/-]{0,127}$`)

// runtimes is a list of the engine's names of isolation runtimes.
func runtimes(into *[]string) list {
	return list{into, "runtimes", "write a list of the engine's names of runtimes, such as [runsc], or [any]", ",", checkRuntime}
}

func checkRuntime(name string) (string, error) {
	if !runtimeRule.MatchString(name) {
		return "", fmt.Errorf("%s isn't a runtime's name", fault.Quote(name))
	}
	return name, nil
}

// runtimeName is the engine's name of an isolation runtime.
type runtimeName struct{ into *string }

func (v runtimeName) kind() string   { return "runtime" }
func (v runtimeName) String() string { return *v.into }
func (v runtimeName) hint() string {
	return "write the engine's name of a runtime, such as runsc"
}

func (v runtimeName) set(text string) error {
	name, err := checkRuntime(text)
	if err == nil {
		*v.into = name
	}
	return err
}
