package main

import (
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/agent-on-demand/aod/internal/access"
	"github.com/agent-on-demand/aod/orchestrator/layout"
)

// namedTokens are the tokens with names of the server with a home.
func namedTokens(home string) *access.Tokens {
	return access.NewTokens(filepath.Join(home, layout.Tokens))
}

func (a *app) tokenCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "token",
		Short: "Make and revoke tokens with names, which allow a part of what a server does",
		Long: `Make and revoke tokens with names for the server whose data directory is --data. A server
that runs sees each change with the next request, and ends what is open within some seconds.
What is stored of a token is its digest.

A token has scopes: read (runs, units, figures), run (begin and end runs, answer questions),
upload (bring, set back and remove units), admin (everything). None of the first three is
part of another.`,
		Example: "  aod token add ci --scope run,read\n  aod token ls\n  aod token rm ci --stop",
		Args:    exactly(0, "add, ls or rm"),
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.tokenAddCommand(), a.tokenListCommand(), a.tokenRemoveCommand())
	return cmd
}

func (a *app) tokenAddCommand() *cobra.Command {
	var scopes []string
	cmd := &cobra.Command{
		Use:   "add NAME",
		Short: "Make a token and print it: it can't be read again",
		Example: "  aod token add ci --scope run,read >ci.token\n  AOD_TOKEN=$(cat ci.token) aod ps --server " +
			"http://127.0.0.1:7070",
		Args: exactly(1, "a name for the token"),
		RunE: func(_ *cobra.Command, args []string) error {
			var asked []access.Scope
			if len(scopes) > 0 {
				var err error
				if asked, err = access.ParseScopes(scopes); err != nil {
					return err
				}
			}
			token, err := namedTokens(a.home()).Add(args[0], asked)
			if err != nil {
				return err
			}
			a.stdout.line("%s", token)
			return nil
		},
	}
	cmd.Flags().StringSliceVar(&scopes, "scope", nil, "read, run, upload or admin; several with commas")
	return cmd
}

func (a *app) tokenListCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "ls",
		Short:   "List the tokens with names",
		Example: "  aod token ls",
		Args:    exactly(0, "nothing but flags"),
		RunE: func(*cobra.Command, []string) error {
			all, err := namedTokens(a.home()).List()
			if err != nil {
				return err
			}
			var tokens []listedToken
			for _, token := range all {
				tokens = append(tokens, listedToken{token.Name, token.Scopes, token.Created})
			}
			return tabled(a, allOf(tokens), asJSON, "", []string{"NAME", "SCOPES", "CREATED"},
				func(t listedToken) []string {
					return []string{t.Name, scopesText(t.Scopes), timeText(t.Created)}
				})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON object a token")
	return cmd
}

// listedToken is a line of the list as JSON.
type listedToken struct {
	Name    string         `json:"name"`
	Scopes  []access.Scope `json:"scopes"`
	Created time.Time      `json:"created_at"`
}

func scopesText(scopes []access.Scope) string {
	var names []string
	for _, scope := range scopes {
		names = append(names, string(scope))
	}
	return strings.Join(names, ",")
}
