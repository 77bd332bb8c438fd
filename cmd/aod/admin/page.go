package admin

import (
	"context"
	"os/exec"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/client"
	"github.com/agent-on-demand/aod/cmd/aod/cli"
)

// PageCommand is `aod ui`.
func PageCommand(env *cli.Env) *cobra.Command {
	var only bool
	cmd := &cobra.Command{
		Use:   "ui",
		Short: "Open the page of a server in the browser, signed in",
		Long: `Open the page of a server in the browser: what runs, why it failed and what it cost. Its
address has a code that signs the browser in once, within a minute, as the holder of the token
that this command has. With --print the address is printed, for a browser elsewhere.`,
		Example: "  aod ui\n  aod ui --print",
		Args:    cli.Exactly(0, "nothing but flags"),
		RunE: cli.OnServer(env, func(ctx context.Context, server *client.Client, _ []string) error {
			code, err := server.SigninCode(ctx)
			if err != nil {
				return err
			}
			address := strings.TrimSuffix(server.Server(), "/") + code.Path
			if only {
				env.Out.Line("%s", address)
				return nil
			}
			if err := browse(ctx, address); err != nil {
				return fault.Wrap(fault.Unavailable, err, "no browser could be opened").
					WithHint("open the address that `aod ui --print` prints")
			}
			env.Note("the browser opens %s", server.Server())
			return nil
		}),
	}
	cmd.Flags().BoolVar(&only, "print", false, "print the address, and open nothing")
	return cmd
}

// browse opens an address in the user's browser.
func browse(ctx context.Context, address string) error {
	command := []string{"xdg-open", address}
	switch runtime.GOOS {
	case "darwin":
		command[0] = "open"
	case "windows":
		command = []string{"rundll32", "url.dll,FileProtocolHandler", address}
	}
	return exec.CommandContext(ctx, command[0], command[1:]...).Run()
}
