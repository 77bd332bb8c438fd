package capsule

import (
	"fmt"
	"strings"

	"github.com/agent-on-demand/aod/api/fault"
)

const (
	copyWord = "COPY"
	runWord  = "RUN"
)

// pulledBy returns the image that a COPY or a RUN takes files from, if it is named by an address or
// isn't known: the engine asks that address for it. ARGs stand for values.
func pulledBy(word, args string, whole bool, values map[string][]string) string {
	flags, more := flagsOf(args)
	if !whole && !more {
		return fmt.Sprintf("a %s with flags on more than %d lines", word, mostContinued)
	}
	for _, flag := range flags {
		for _, image := range imagesOf(word, flag) {
			if found := pulled(image, values); found != "" {
				return word + " " + found
			}
		}
	}
	return ""
}

// pulled says of an image that it is named by an address or isn't known; else it is "".
func pulled(image string, values map[string][]string) string {
	images, clear := resolve(image, values, mostNested)
	if !clear {
		return "from an image that isn't known, " + fault.Quote(image)
	}
	for _, each := range images {
		if isByAddress(each) {
			return "from " + fault.Quote(each)
		}
	}
	return ""
}

// imagesOf returns the image that a flag of an instruction names.
func imagesOf(word, flag string) (images []string) {
	name, value, _ := strings.Cut(flag, "=")
	switch {
	case word == copyWord && name == "--from":
		return []string{value}
	case word == runWord && name == "--mount":
		for option := range strings.SplitSeq(value, ",") {
			key, image, _ := strings.Cut(strings.Trim(option, `"`), "=")
			if strings.EqualFold(key, "from") {
				images = append(images, image)
			}
		}
	}
	return images
}

// isByAddress reports whether the registry of an image is an address rather than a name in the
// internet: an IP address, in whatever form a resolver takes one, a host without a domain, or any
// host with a port.
func isByAddress(image string) bool {
	host, _, has := strings.Cut(image, "/")
	if !has {
		return false // it is Docker's own registry
	}
	labels := strings.Split(host, ".")
	last := labels[len(labels)-1]
	switch {
	case strings.ContainsAny(host, ":[]"), strings.EqualFold(last, "localhost"):
		return true
	case len(labels) == 1:
		return strings.ToLower(host) != host // else it is a part of the image's name
	}
	return last == "" || last[0] >= '0' && last[0] <= '9'
}

// flagsOf returns the flags that the arguments of an instruction begin with, without quotes and
// escapes, and whether anything follows them.
func flagsOf(args string) (flags []string, more bool) {
	for {
		args = strings.TrimLeft(args, " \t\r")
		if !strings.HasPrefix(args, "--") {
			return flags, args != ""
		}
		var flag string
		flag, args = cutFlag(args)
		flags = append(flags, flag)
	}
}

// cutFlag takes one flag off the front. Builders let quotes and escapes stand anywhere in it.
func cutFlag(args string) (flag, rest string) {
	var b strings.Builder
	var quote byte
	for i := 0; i < len(args); i++ {
		switch c := args[i]; {
		case c == '\\' || c == '`':
			if i++; i < len(args) {
				b.WriteByte(args[i])
			}
		case quote != 0 && c == quote:
			quote = 0
		case quote == 0 && (c == '"' || c == '\''):
			quote = c
		case quote == 0 && (c == ' ' || c == '\t'):
			return b.String(), args[i:]
		default:
			b.WriteByte(c)
		}
	}
	return b.String(), ""
}
