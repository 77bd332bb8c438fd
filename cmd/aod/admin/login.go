package admin

import (
	"context"
	"os"
	"os/exec"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/client"
	"github.com/agent-on-demand/aod/cmd/aod/cli"
	"github.com/agent-on-demand/aod/internal/issuer"
	"github.com/agent-on-demand/aod/internal/login"
)

// loginFlags are how somebody signs in.
type loginFlags struct {
	device, only bool
	port         int
}

// LoginCommand is `aod login`.
func LoginCommand(env *cli.Env) *cobra.Command {
	var f loginFlags
	cmd := &cobra.Command{
		Use:   "login",
		Short: "Sign in at a server by its issuer of OpenID Connect",
		Long: `Sign in at a server that has people of an issuer of OpenID Connect (Keycloak, Entra ID, …):
the browser opens the issuer's page and comes back to this command. What the issuer gives is
kept in the user's directory of configurations, for this server alone, in a file that only the
user may read; commands for that server have it and refresh it. AOD_TOKEN and --token-file
come before it.

Without a browser on this machine, --device signs in by one elsewhere.`,
		Example: "  aod login --server https://aod.example.com\n  aod login --server https://aod.example.com --device",
		Args:    cli.Exactly(0, "nothing but flags"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return signIn(cmd.Context(), env, f)
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&f.device, "device", false, "sign in by a browser elsewhere, with a code")
	flags.BoolVar(&f.only, "print", false, "print the address, and open no browser")
	flags.IntVar(&f.port, "port", 0,
		"the port of this machine to which the browser comes back; a free one by default")
	return cmd
}

func signIn(ctx context.Context, env *cli.Env, f loginFlags) error {
	server, err := env.ConnectWith("")
	if err != nil {
		return err
	}
	keep, err := login.Default()
	if err != nil {
		return err
	}
	at, err := server.Login(ctx)
	if err != nil {
		return err
	}
	given, err := f.ask(ctx, env, at)
	if err != nil {
		return err
	}
	one, err := login.Of(server.Server(), at, given)
	if err != nil {
		return err
	}
	return enter(ctx, env, keep, one)
}

// ask has somebody sign in at an issuer.
func (f loginFlags) ask(ctx context.Context, env *cli.Env, at api.Login) (issuer.Tokens, error) {
	if f.device {
		return login.ByDevice(ctx, at, func(address, code string) {
			env.Err.Line("open %s and give the code %s", fault.OneLine(address), fault.OneLine(code))
		})
	}
	return login.ByBrowser(ctx, at, f.port, func(address string) {
		env.Err.Line("sign in at %s", fault.OneLine(address))
		if !f.only && hasBrowser() && browse(ctx, address) != nil {
			env.Err.Line("no browser could be opened: open that address yourself")
		}
	})
}

// enter keeps a sign-in, once its server has said that it takes it.
func enter(ctx context.Context, env *cli.Env, keep login.Keep, one login.Kept) error {
	server, err := env.ConnectWith(one.Token)
	if err != nil {
		return err
	}
	me, err := server.Whoami(ctx)
	if err != nil {
		return err
	}
	if err := keep.Put(one); err != nil {
		return err
	}
	env.Note("signed in at %s as %s, in %s", one.Server, me.Identity, strings.Join(me.Teams, ", "))
	if one.Refresh == "" && !one.Expires.IsZero() {
		env.Note("it lasts until %s: the issuer gave no refresh token", minute(&one.Expires, ""))
	}
	if os.Getenv("AOD_TOKEN") != "" || env.TokenFile != "" {
		env.Note("AOD_TOKEN or --token-file names another token, which comes before it")
	}
	return nil
}

// LogoutCommand is `aod logout`.
func LogoutCommand(env *cli.Env) *cobra.Command {
	return &cobra.Command{
		Use:   "logout",
		Short: "Forget the sign-in at a server",
		Long: `Forget what aod login has kept for a server, and have the issuer take it no more, if it does that
(RFC 7009). A session at the issuer's own page goes on.`,
		Example: "  aod logout --server https://aod.example.com",
		Args:    cli.Exactly(0, "nothing but flags"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			server, err := env.ConnectWith("")
			if err != nil {
				return err
			}
			return forget(cmd.Context(), env, server)
		},
	}
}

func forget(ctx context.Context, env *cli.Env, server *client.Client) error {
	keep, err := login.Default()
	if err != nil {
		return err
	}
	kept, was, err := keep.Remove(server.Server())
	if err != nil {
		return err
	}
	if !was {
		env.Note("nobody was signed in at %s", server.Server())
		return nil
	}
	if err := kept.GiveBack(ctx); err != nil {
		env.Note("it is forgotten here, and the issuer wasn't told: %s", fault.Public(err).Msg)
	}
	return nil
}

// hasBrowser reports whether this machine has a screen on which a browser could open.
func hasBrowser() bool {
	if runtime.GOOS != "linux" {
		return true
	}
	_, err := exec.LookPath("xdg-open")
	return err == nil && (os.Getenv("DISPLAY") != "" || os.Getenv("WAYLAND_DISPLAY") != "")
}
