package au

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/agent-on-demand/aod/api/fault"
)

// argReader reads a call and gathers its problems.
type argReader struct {
	card     *Card
	order    []string          // of the flags given
	given    map[string]string // their values
	typed    map[string]string // -n, where that was given for --name
	words    []string          // that aren't flags; the prompt, if there is one
	env      map[string]string
	findings []fault.Finding
}

func (r *argReader) fail(pointer, hint, format string, args ...any) {
	message, foreign := fault.Foreignf(format, args...)
	r.findings = append(r.findings, fault.Finding{Pointer: pointer, Message: message, Hint: hint, Foreign: foreign})
}

// read reads the arguments one by one, or two by two.
func (r *argReader) read(args []string) {
	afterBoolean := false
	for i := 0; i < len(args); i++ {
		arg, pointer := args[i], argPointer(i)
		flag, isFlag := strings.CutPrefix(arg, "--")
		if long, ok := r.long(arg); ok {
			flag, isFlag = long, true
		}
		switch {
		case arg == "--":
			for i++; i < len(args); i++ { // nothing behind it is a flag
				r.word(args[i], argPointer(i))
			}
		case isFlag:
			if r.flag(flag, args[i+1:], pointer) {
				i++
			}
		case strings.HasPrefix(arg, "-") && arg != "-":
			r.fail(pointer, r.flagsHint()+"; a text that starts with - goes after --",
				"the unit has no such short flag")
		case afterBoolean && (arg == "true" || arg == "false"):
			r.fail(pointer, "write --name="+arg+"; if it is the prompt, put it after --",
				"a boolean flag takes no word after it")
		default:
			r.word(arg, pointer)
		}
		afterBoolean = isFlag && r.isBoolean(flag)
	}
}

// long returns the flag that a short one stands for, without its dashes, and remembers how it
// was given. The card's names of one letter are short flags as well.
func (r *argReader) long(arg string) (flag string, ok bool) {
	letter, value, joined := strings.Cut(strings.TrimPrefix(arg, "-"), "=")
	if len(letter) != 1 || arg[0] != '-' {
		return "", false
	}
	at := slices.IndexFunc(r.card.Config, func(p Parameter) bool { return p.Short == letter })
	if at < 0 {
		return "", false
	}
	name := r.card.Config[at].Name
	r.typed[name] = "-" + letter
	if joined {
		return name + "=" + value, true
	}
	return name, true
}

func argPointer(i int) string { return "/args/" + strconv.Itoa(i) }

// flag reads one flag, given without its dashes, and reports whether the next argument was
// its value.
func (r *argReader) flag(arg string, following []string, pointer string) bool {
	name, value, joined := strings.Cut(arg, "=")
	switch {
	case !r.known(name, pointer):
		return false
	case joined:
		r.put(name, value, pointer)
		return false
	case r.isBoolean(name):
		r.put(name, "true", pointer)
		return false
	case len(following) == 0 || strings.HasPrefix(following[0], "--"):
		r.fail(pointer, "write --"+name+"=value", "the flag --%s needs a value", name)
		return false
	}
	r.put(name, following[0], pointer)
	return true
}

// known reports whether the card has such a flag; if not, it adds a finding.
func (r *argReader) known(name, pointer string) bool {
	if name == describe {
		r.fail(pointer, "ask for the model card by itself", "--describe prints the model card and runs nothing")
		return false
	}
	if _, ok := r.parameter(name); !ok {
		r.fail(pointer, r.flagsHint(), "the unit has no flag %s", fault.Foreign(fmt.Sprintf("%.80q", "--"+name)))
		return false
	}
	return true
}

// parameter returns the card's parameter for a flag. Every unit has a prompt.
func (r *argReader) parameter(name string) (Parameter, bool) {
	if p, ok := r.card.Parameter(name); ok || name != prompt {
		return p, ok
	}
	return Parameter{Name: prompt, Type: TypeString}, true
}

func (r *argReader) isBoolean(name string) bool {
	p, ok := r.parameter(name)
	return ok && p.Type == TypeBoolean
}

func (r *argReader) flagsHint() string {
	const most = 20
	var names []string
	for _, p := range r.card.Config {
		names = append(names, p.Flag())
		if p.Short != "" && p.Short != p.Name {
			names = append(names, "-"+p.Short)
		}
	}
	if len(names) > most {
		names = append(names[:most], "…")
	}
	if len(names) == 0 {
		return "its model card has none"
	}
	return "its model card has " + strings.Join(names, ", ")
}

// set stores a value that was given beside the arguments.
func (r *argReader) set(name, value, pointer string) {
	if value != "" && r.known(name, pointer) {
		r.put(name, value, pointer)
	}
}

// put stores the value of a flag that the unit has.
func (r *argReader) put(name, value, pointer string) {
	if _, twice := r.given[name]; twice {
		r.fail(pointer, "keep one of them", "--%s is given twice", name)
		return
	}
	r.order = append(r.order, name)
	r.given[name] = value
	if name == prompt && len(r.words) > 0 {
		r.fail(pointer, "keep one of them", "the prompt is given twice, once as --prompt")
	}
	if problem := unprintable(value); problem != "" {
		r.fail(pointer, "", "the value of --%s %s", name, problem)
		return
	}
	p, _ := r.parameter(name)
	clean, problem, hint := p.check(value)
	if problem != "" {
		r.fail(pointer, hint, "the value of --%s %s", name, problem)
		return
	}
	r.given[name] = clean
}

// word reads a positional argument: the prompt, or one of several that the unit takes.
func (r *argReader) word(value, pointer string) {
	if problem := unprintable(value); problem != "" {
		r.fail(pointer, "", "the prompt %s", problem)
	}
	if _, flagged := r.given[prompt]; flagged {
		r.fail(pointer, "keep one of them; a text with spaces in it is one argument, in quotes",
			"there is more than one prompt")
		return
	}
	r.words = append(r.words, value)
}

// missing reports required parameters that weren't given. A positional prompt counts as the
// prompt.
func (r *argReader) missing() {
	for _, p := range r.card.Config {
		_, given := r.given[p.Name]
		if !p.Required || given || p.Name == prompt && len(r.words) > 0 {
			continue
		}
		hint := "give " + p.Flag()
		if p.Env() != "" {
			hint += " or $" + p.Env()
		}
		r.fail("", hint, "the %s %s is required", p.Type, p.Flag())
	}
}
