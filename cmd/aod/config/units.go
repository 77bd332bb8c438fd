package config

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/lazyregexp"
	"github.com/agent-on-demand/aod/internal/wire/quantity"
)

// duration is a time span between two bounds, both inclusive. Only 0 needs no unit.
type duration struct {
	into        *time.Duration
	least, most time.Duration
}

func (v duration) kind() string   { return "duration" }
func (v duration) String() string { return quantity.DurationText(*v.into) }
func (v duration) hint() string {
	return fmt.Sprintf("write a duration with its unit, such as 30s, 5m or 1h30m; from %s to %s",
		quantity.DurationText(v.least), quantity.DurationText(v.most))
}

func (v duration) set(text string) error {
	if text == "0" {
		text = "0s"
	}
	d, err := quantity.ParseDuration(text, v.least, v.most)
	if err != nil {
		return err
	}
	*v.into = d
	return nil
}

// size is a number of bytes between two bounds, both inclusive.
type size struct {
	into        *int64
	least, most int64
}

func (v size) kind() string   { return "size" }
func (v size) String() string { return quantity.SizeText(*v.into) }
func (v size) hint() string {
	return fmt.Sprintf("write a size, such as 512MiB or 2GiB; from %s to %s", quantity.SizeText(v.least),
		quantity.SizeText(v.most))
}

func (v size) set(text string) error {
	bytes, err := quantity.ParseSize(text, v.least, v.most)
	if err != nil {
		return err
	}
	*v.into = bytes
	return nil
}

// money is an amount of the currency of the prices of models, exact to the billionth.
type money struct{ into *api.Cost }

var moneyRule = lazyregexp.New(`^(0|[1-9][0-9]{0,8})(\.[0-9]{1,9})?$`)

func (v money) kind() string   { return "amount" }
func (v money) String() string { return v.into.String() }
func (v money) hint() string {
	return "write an amount such as 2.50, with up to 9 digits behind the point"
}

func (v money) set(text string) error {
	if !moneyRule().MatchString(text) {
		return errors.New("it isn't an amount")
	}
	return v.into.UnmarshalJSON([]byte(text))
}

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

var uidsRule = lazyregexp.New(`^[1-9][0-9]{0,9}(-[1-9][0-9]{0,9})?$`)

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
	if !uidsRule().MatchString(text) {
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
