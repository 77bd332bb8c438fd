package doctor

import (
	"strings"
	"time"

	"github.com/agent-on-demand/aod/cmd/aod/cli"
)

// renewTime is how long before its end the doctor warns of a certificate.
const renewTime = 14 * 24 * time.Hour

// examineServer tells how the server of the data directory is reached; nothing where none runs.
func examineServer(env *cli.Env) []checkup {
	address, err := env.LocalServer()
	if err != nil {
		return nil
	}
	now, err := env.Serving()
	if err != nil {
		return []checkup{sick("server", err)}
	}
	return []checkup{judgeServer(address, now)}
}

func judgeServer(address string, now cli.Serving) checkup {
	c := checkup{Name: "server", Health: fine, Found: address}
	if now.Until == nil {
		if public := now.Public(); len(public) > 0 {
			c.Health, c.Found = worry, address+", for other machines at "+strings.Join(public, " and ")+" without TLS"
			c.Fix = cli.NoTLS
		}
		return c
	}
	c.Found += ", certificate until " + now.Until.Format(time.DateOnly)
	const renew = "put a new certificate and its key into the files of the setting tls: the server takes them by itself"
	switch left := time.Until(*now.Until); {
	case left <= 0:
		c.Health, c.Fix = broken, renew
	case now.Problem != "":
		c.Health, c.Found, c.Fix = worry, c.Found+"; the new one can't be used: "+now.Problem, now.Hint
	case left < renewTime:
		c.Health, c.Fix = worry, renew
	}
	return c
}
