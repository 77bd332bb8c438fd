package api

import "github.com/agent-on-demand/aod/api/fault"

const (
	defaultPage = 100
	mostInPage  = 1000
)

// PageLimit returns how many entries of a list a client gets that asks for so many: 1 to 1000, and
// 100 for 0. Another number is an Input fault.
func PageLimit(asked int) (int, error) {
	if asked < 0 || asked > mostInPage {
		return 0, fault.New(fault.Input, "the limit is %d; it can be 1 to %d", asked, mostInPage)
	}
	if asked == 0 {
		return defaultPage, nil
	}
	return asked, nil
}
