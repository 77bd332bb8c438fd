package workers

import (
	_ "embed" // of the stack
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/client"
	"github.com/agent-on-demand/aod/cmd/aod/cli"
	"github.com/agent-on-demand/aod/cmd/aod/ui"
	"github.com/agent-on-demand/aod/internal/access"
	"github.com/agent-on-demand/aod/internal/certs"
)

// stack is the file for `docker stack deploy`: docs/swarm.md.
//
//go:embed aod.yml
var stack string

// stackPort is the port of the server in the stack.
const stackPort = "7070"

// serveFile is the configuration of a server whose host is filled in.
const serveFile = `# The server of the stack in aod.yml. Another content needs another name there: see configs.
hosts: [%q]
tls: self # with key.pem
swarm: /run/secrets/aod-join
local_sandboxes: false
`

func bundleCommand(env *cli.Env) *cobra.Command {
	var address string
	cmd := &cobra.Command{
		Use:   "bundle DIR",
		Short: "Make the files for a server and its workers on Docker Swarm",
		Long: `Make a directory with what docker stack deploy wants for a server and a worker on each node of a
Swarm: the stack, the server's settings and its key, and the file with which all nodes join. No
server need run, and none is asked. Keep the directory: key.pem and join are secrets.`,
		Example: "  aod worker bundle --url https://10.0.0.5:7070 stack",
		Args:    cli.Exactly(1, "a directory that isn't there yet"),
		RunE: func(_ *cobra.Command, args []string) error {
			at, err := swarmAddress(address)
			if err != nil {
				return err
			}
			if err := writeBundle(args[0], at); err != nil {
				return err
			}
			dir := ui.Printable(args[0])
			env.Note("the stack is in %s; on a manager of the Swarm, with a node that is to have the server:", dir)
			env.Note("  docker node update --label-add aod=server NODE")
			env.Note("  docker stack deploy -c %s aod", filepath.Join(dir, "aod.yml"))
			return nil
		},
	}
	cmd.Flags().StringVar(&address, "url", "", "the address of the server as all nodes know it: https://HOST:PORT")
	return cmd
}

// swarmAddress reads the address of a server that has a certificate of its own.
func swarmAddress(given string) (*url.URL, error) {
	at, err := url.Parse(given)
	if err != nil || at.Scheme != "https" || at.Port() == "" || strings.Trim(at.Path, "/") != "" {
		return nil, fault.New(fault.Input, "%s isn't the address of a server with TLS and a port", fault.Quote(given)).
			WithHint("name the node that is to have the server as all others know it: --url https://10.0.0.5:7070")
	}
	if _, err := client.New(client.Options{Server: given}); err != nil {
		return nil, err
	}
	if isOfThisMachine(given) {
		return nil, fault.New(fault.Input, "the address %s means another machine on each node", fault.Quote(given)).
			WithHint("name the node that is to have the server as all others know it: --url https://10.0.0.5:7070")
	}
	return at, nil
}

// writeBundle makes the directory, or nothing of it.
func writeBundle(dir string, at *url.URL) (err error) {
	if err := os.Mkdir(dir, 0o700); err != nil {
		hint := "does the directory above it exist, and is it yours?"
		if errors.Is(err, fs.ErrExist) {
			hint = "name another one: with other secrets no worker of this one would find its server"
		}
		return fault.Wrap(fault.Conflict, err, "the directory %q can't be made", dir).WithHint("%s", hint)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(dir))
		}
	}()
	pin, err := certs.MakeKey(filepath.Join(dir, "key.pem"))
	if err != nil {
		return err
	}
	join, err := json.Marshal(api.WorkerJoin{
		Server: "https://" + at.Host, Pins: []string{string(pin)}, Token: access.NewToken(),
	})
	if err != nil {
		return err
	}
	for name, content := range map[string]string{
		"join": string(join) + "\n", "aod.yml": strings.ReplaceAll(stack, stackPort, at.Port()),
		"serve.yaml": fmt.Sprintf(serveFile, at.Hostname()),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			return fault.Wrap(fault.Unavailable, err, "%q can't be written", filepath.Join(dir, name))
		}
	}
	return nil
}
