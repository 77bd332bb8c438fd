package au

import (
	"math"
	"path"
	"slices"
	"strconv"
	"strings"
)

// The parameters that the specification names (section 4.2), the flag that only describes
// (4.1), and the variable that carries a model's path as well.
const (
	modelPath    = "model-path"
	prompt       = "prompt"
	describe     = "describe"
	modelPathEnv = "MODEL_PATH"
)

// Type is the type of a parameter's value.
type Type string

// The types (section 6.1).
const (
	TypeString  Type = "string"
	TypeInteger Type = "integer"
	TypeBoolean Type = "boolean"
	TypeNumber  Type = "number" // not the specification's, but found in cards
)

// typeCalled returns the type of that name, or of a name that other cards have for it.
func typeCalled(name string) Type {
	switch name {
	case "float":
		return TypeNumber
	case "int":
		return TypeInteger
	case "bool":
		return TypeBoolean
	}
	return Type(name)
}

// Parameter is one value of a unit's configuration, given as --name.
type Parameter struct {
	Name        string // without dashes
	Short       string // a letter, by which it can be given as -n as well; "" is none
	Type        Type
	Description string

	// Default is a string, a json.Number or a bool; nil if there is none.
	Default any
	// Required is the meaning of a null default (section 6.1). A parameter that mentions no
	// default may be omitted.
	Required bool
	// ShortOnly says that the card names it as -n, so that it has no other flag.
	ShortOnly bool
}

// Flag is how the parameter is given: --name, or -n if its card says so.
func (p Parameter) Flag() string {
	if p.ShortOnly {
		return "-" + p.Name
	}
	return "--" + p.Name
}

// Env is the variable that carries the value beside its flag, or "". Only models have one
// (section 3.1): all other values are passed by flag alone.
func (p Parameter) Env() string {
	if p.Name == modelPath {
		return modelPathEnv
	}
	return ""
}

// check returns the value as the unit gets it, or what is wrong with it.
func (p Parameter) check(value string) (clean, problem, hint string) {
	if p.Name == modelPath {
		return checkModelPath(value)
	}
	switch p.Type {
	case TypeInteger:
		n, err := strconv.ParseInt(value, 10, 64)
		if err != nil {
			return "", "must be a whole number", "between -2^63 and 2^63-1, such as " + p.Flag() + "=3"
		}
		return strconv.FormatInt(n, 10), "", ""
	case TypeNumber:
		n, err := strconv.ParseFloat(value, 64)
		if err != nil || math.IsNaN(n) || math.IsInf(n, 0) {
			return "", "must be a number", "such as " + p.Flag() + "=0.5"
		}
	case TypeBoolean:
		if value != "true" && value != "false" {
			return "", "must be true or false", "write " + p.Flag() + " alone for true, " + p.Flag() +
				"=false for false"
		}
	case TypeString:
	}
	return value, "", ""
}

// checkModelPath accepts an absolute path without steps up (sections 3.2, 8.2).
func checkModelPath(value string) (clean, problem, hint string) {
	switch {
	case !path.IsAbs(value):
		return "", "must be an absolute path", "a unit has no working directory to rely on: start it with /"
	case slices.Contains(strings.Split(value, "/"), ".."):
		return "", `must not have ".." in it`, "write the path that is meant"
	case path.Clean(value) == "/":
		return "", "names no file", "name the model's file, such as /models/ocr.gguf"
	}
	return path.Clean(value), "", ""
}
