package docker

import (
	"github.com/docker/cli/cli/connhelper"
	"github.com/docker/docker/client"
)

// dialled returns the host as the client is to know it, and how to get there. For ssh that
// is, as with the docker command, the program ssh with the user's own configuration, which
// runs `docker system dial-stdio` over there: once for each connection.
func (at endpoint) dialled() (host string, dial client.Opt, err error) {
	helper, err := connhelper.GetConnectionHelper(at.host)
	if err != nil {
		return "", nil, err
	}
	if helper == nil {
		return at.host, func(*client.Client) error { return nil }, nil
	}
	return helper.Host, client.WithDialContext(helper.Dialer), nil
}
