package config

import (
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/lazyregexp"
)

// A2AConfig holds the settings for clients of the Agent2Agent protocol.
type A2AConfig struct {
	Enabled    bool   // units are agents of the protocol
	Root       string // the unit whose card stands at the server's origin; "": an agent of all units
	Auth       string // AuthBearer or AuthAPIKey: where requests have the token
	AuthHeader string // that has it with AuthAPIKey
	Rate       int    // messages of a unit in a minute; 0 is no bound
	PublicURL  string // of the server as clients reach it, without a path; "": as they ask it
	Cards      string // CardsOpen or CardsPrivate
	GRPC       string // host:port of gRPC; "": it is off

	Push        bool     // clients may have receivers told of their tasks
	PushPrivate []string // hosts of receivers at addresses that aren't public; see PushExceptions
}

// Values of A2AConfig.Auth.
const (
	AuthBearer = "bearer"  // the header Authorization
	AuthAPIKey = "api_key" // a header of its own
)

// Values of A2AConfig.Cards.
const (
	CardsOpen    = "open"    // everybody may read them
	CardsPrivate = "private" // they need a token as well
)

// settings is the table of the block a2a. It can be set in the file only.
func (a *A2AConfig) settings() []setting {
	return []setting{
		{"enabled", boolean{&a.Enabled}, "true", "every unit is an agent of the Agent2Agent protocol"},
		{
			"root", unitName(&a.Root), "",
			"the unit with the card at the server's origin; an agent of all units by default",
		},
		{
			"auth",
			word{&a.Auth, []string{AuthBearer, AuthAPIKey}},
			AuthBearer,
			"the header of the token: bearer is Authorization, api_key the auth_header",
		},
		{"auth_header", headerName(&a.AuthHeader), "X-API-Key", "the header that has the token with auth: api_key"},
		{"rate", integer{&a.Rate, 0, maxRate}, "0", "messages to a unit in a minute; 0 is no bound"},
		{
			"public_url", origin(&a.PublicURL), "",
			"the server's address for clients, in cards and links; as a request has it by default",
		},
		{
			"cards",
			word{&a.Cards, []string{CardsOpen, CardsPrivate}},
			CardsOpen,
			"who may read cards: open is everybody, private those with a token",
		},
		{"grpc", optionalAddress(&a.GRPC), "", "where gRPC listens; off by default"},
		{
			"push",
			boolean{&a.Push},
			"true",
			"let clients name receivers (webhooks) of their tasks, at public addresses by https; false sends none",
		},
		{
			"push_private", egressExceptions(&a.PushPrivate), "",
			"hosts of such receivers without a public address or without TLS: a name, or name=address, which " +
				"isn't looked up",
		},
	}
}

// UnitA2A holds the settings for A2A clients of one unit.
type UnitA2A struct {
	Enabled bool     // it is an agent
	Private bool     // its card needs a token that may ask it
	Tokens  []string // names of those that may ask it; none: all
	Rate    int      // messages in a minute; UnitsOwn is A2AConfig.Rate, 0 no bound
	Burst   int      // messages at once; 0: as many as in a minute
}

// settings is the table of the block a2a of one unit. It can be set in the file only.
func (a *UnitA2A) settings() []setting {
	return []setting{
		{"enabled", boolean{&a.Enabled}, "true", "the unit is an agent of the Agent2Agent protocol"},
		{
			"private",
			boolean{&a.Private},
			"false",
			"its card is shown to tokens that may ask it, and isn't there for others",
		},
		{
			"tokens", tokenNames(&a.Tokens), "",
			"names of the tokens that may ask it, beside the server's own; all with the scope run by default",
		},
		{
			"rate",
			integer{&a.Rate, UnitsOwn, maxRate},
			"-1",
			"messages that it takes in a minute; 0 is no bound, -1 is the rate of a2a",
		},
		{
			"burst",
			integer{&a.Burst, 0, maxRate},
			"0",
			"messages that it takes at once, before its rate counts; 0 is as many as in a minute",
		},
	}
}

const maxRate = 1_000_000

var tokenRule = lazyregexp.New(`^[a-z0-9][a-z0-9._-]{0,62}$`)

func checkTokenName(name string) error {
	if !tokenRule().MatchString(name) {
		return fault.New(fault.Input, "%s isn't the name of a token", fault.Quote(name)).
			WithHint("aod token ls lists them")
	}
	return nil
}

// tokenNames is a list of names of tokens.
func tokenNames(into *[]string) list {
	return list{
		into, "tokens", "write a list of tokens' names, such as [ci, partner]; aod token ls lists them", ",",
		func(name string) (string, error) { return name, checkTokenName(name) },
	}
}

// unitName is the name of a unit, or nothing.
func unitName(into *string) single {
	return single{into, "name", "write the name of a unit, such as hello", optional(checkUnitName)}
}

var headerRule = lazyregexp.New(`^[A-Za-z0-9]+(-[A-Za-z0-9]+)*$`)

// headerName is the name of a header of HTTP.
func headerName(into *string) single {
	return single{
		into, "header", "write letters and digits, joined by -, such as X-API-Key",
		func(text string) (string, error) {
			if len(text) > 63 || !headerRule().MatchString(text) {
				return "", fmt.Errorf("%s isn't the name of a header", fault.Quote(text))
			}
			return text, nil
		},
	}
}

// origin is the scheme, host and port of an address, or nothing.
func origin(into *string) single {
	const advice = "write SCHEME://HOST or SCHEME://HOST:PORT, such as https://aod.example.com"
	return single{into, "URL", advice, optional(func(text string) (string, error) {
		u, err := url.Parse(text)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || text != u.Scheme+"://"+u.Host {
			return "", errors.New(fault.Quote(text) + " is more or less than scheme, host and port")
		}
		return strings.ToLower(text), nil
	})}
}

// optionalAddress is an address to listen on, or nothing.
func optionalAddress(into *string) single {
	return single{into, addressKind, "write HOST:PORT, such as 127.0.0.1:7071, or leave it out", optional(checkAddress)}
}
