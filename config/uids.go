package config

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/agent-on-demand/aod/fault"
)

// UIDRange is a range of user ids, both ends included.
type UIDRange struct{ First, Last int }

// The bounds of user ids: below are the accounts of systems, above is what some programs take
// for a negative number.
const (
	leastUID = 1000
	mostUID  = 1<<31 - 1
)

// uids is a range of user ids, written 200000-265535, or a single one.
type uids struct{ into *UIDRange }

var uidsRule = regexp.MustCompile(`^[1-9][0-9]{0,9}(-[1-9][0-9]{0,9})?$`)

func (v uids) kind() string { return "range" }

func (v uids) hint() string {
	return fmt.Sprintf("write two numbers from %d to %d, like 200000-265535, or a single one", leastUID, mostUID)
}

func (v uids) String() string {
	if v.into.First == v.into.Last {
		return strconv.Itoa(v.into.First)
	}
	return fmt.Sprintf("%d-%d", v.into.First, v.into.Last)
}

func (v uids) set(text string) error {
	if !uidsRule.MatchString(text) {
		return fmt.Errorf("%s isn't a range of user ids", fault.Quote(text))
	}
	from, to, two := strings.Cut(text, "-")
	if !two {
		to = from
	}
	first, err := strconv.Atoi(from)
	last, err2 := strconv.Atoi(to)
	switch {
	case err != nil || err2 != nil || first < leastUID || last > mostUID:
		return fmt.Errorf("%s is out of range", text)
	case last < first:
		return errors.New("the second number is below the first")
	}
	*v.into = UIDRange{First: first, Last: last}
	return nil
}
