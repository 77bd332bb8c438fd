package config

import (
	"fmt"
	"time"

	"github.com/agent-on-demand/aod/quantity"
)

// duration is a time span between two bounds, both inclusive. Only 0 needs no unit.
type duration struct {
	into        *time.Duration
	least, most time.Duration
}

func (v duration) kind() string   { return "duration" }
func (v duration) String() string { return quantity.DurationText(*v.into) }
func (v duration) hint() string {
	return fmt.Sprintf("write a duration with its unit, such as 30s, 5m or 1h30m; from %s to %s", quantity.DurationText(v.least), quantity.DurationText(v.most))
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
	return fmt.Sprintf("write a size, such as 512MiB or 2GiB; from %s to %s", quantity.SizeText(v.least), quantity.SizeText(v.most))
}

func (v size) set(text string) error {
	bytes, err := quantity.ParseSize(text, v.least, v.most)
	if err != nil {
		return err
	}
	*v.into = bytes
	return nil
}
