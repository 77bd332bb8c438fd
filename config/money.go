package config

import (
	"errors"
	"regexp"

	"github.com/agent-on-demand/aod/api"
)

// money is an amount of the currency of the prices of models, exact to the billionth.
type money struct{ into *api.Cost }

var moneyRule = regexp.MustCompile(`^(0|[1-9][0-9]{0,8})(\.[0-9]{1,9})?$`)

func (v money) kind() string   { return "amount" }
func (v money) String() string { return v.into.String() }
func (v money) hint() string {
	return "write an amount such as 2.50, with up to 9 digits behind the point"
}

func (v money) set(text string) error {
	if !moneyRule.MatchString(text) {
		return errors.New("it isn't an amount")
	}
	return v.into.UnmarshalJSON([]byte(text))
}
