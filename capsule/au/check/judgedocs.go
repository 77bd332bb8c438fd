package check

import (
	"strings"

	"github.com/agent-on-demand/aod/capsule/au"
)

func judgeCapabilities(b *bench) Verdict {
	return b.onCard(func(c *au.Card) Verdict {
		if len(c.Capabilities) == 0 {
			return fail("the list is empty")
		}
		return pass("it lists %d; whether they are all is for a person to say", len(c.Capabilities))
	})
}

func judgeConfig(b *bench) Verdict {
	return b.onCard(func(c *au.Card) Verdict {
		for _, p := range c.Config {
			if strings.TrimSpace(p.Description) == "" {
				return fail("--%s has no description", p.Name)
			}
		}
		if len(c.Config) == 0 {
			return notApplicable("it has no parameters")
		}
		return pass("all %d parameters are described", len(c.Config))
	})
}
