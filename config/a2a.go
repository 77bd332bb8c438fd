package config

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/fault"
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
	return append([]setting{
		{"enabled", boolean{&a.Enabled}, "true", "every unit is an agent of the Agent2Agent protocol"},
		{"root", unitName{&a.Root}, "", "the unit whose card stands at the server's origin; an agent of all units by default"},
		{"auth", word{&a.Auth, []string{AuthBearer, AuthAPIKey}}, AuthBearer, "where requests have the server's token: bearer is the header Authorization, api_key the auth_header"},
		{"auth_header", headerName{&a.AuthHeader}, "X-API-Key", "the header that has the token with auth: api_key"},
		{"rate", integer{&a.Rate, 0, 1_000_000}, "0", "messages that a unit takes in a minute; 0 is no bound"},
		{"public_url", origin{&a.PublicURL}, "", "the server's address as clients reach it, which cards and links name; as a request has it by default"},
		{"cards", word{&a.Cards, []string{CardsOpen, CardsPrivate}}, CardsOpen, "who may read the cards of units: open is everybody, private those with a token"},
		{"grpc", optionalAddress{&a.GRPC}, "", "where gRPC listens; off by default"},
	}, a.pushSettings()...)
}

// unitName is the name of a unit, or nothing.
type unitName struct{ into *string }

func (v unitName) kind() string   { return "name" }
func (v unitName) String() string { return *v.into }
func (v unitName) hint() string   { return "write the name of a unit, such as hello" }

func (v unitName) set(text string) error {
	if text != "" {
		if err := api.CheckUnitName(text); err != nil {
			return err
		}
	}
	*v.into = text
	return nil
}

// headerName is the name of a header of HTTP.
type headerName struct{ into *string }

var headerRule = regexp.MustCompile(`^[A-Za-z0-9]+(-[A-Za-z0-9]+)*$`)

func (v headerName) kind() string   { return "header" }
func (v headerName) String() string { return *v.into }
func (v headerName) hint() string   { return "write letters and digits, joined by -, such as X-API-Key" }

func (v headerName) set(text string) error {
	if len(text) > 63 || !headerRule.MatchString(text) {
		return fmt.Errorf("%s isn't the name of a header", fault.Quote(text))
	}
	*v.into = text
	return nil
}

// origin is the scheme, host and port of an address, or nothing.
type origin struct{ into *string }

func (v origin) kind() string   { return "URL" }
func (v origin) String() string { return *v.into }
func (v origin) hint() string {
	return "write SCHEME://HOST or SCHEME://HOST:PORT, such as https://aod.example.com"
}

func (v origin) set(text string) error {
	if text != "" {
		u, err := url.Parse(text)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || text != u.Scheme+"://"+u.Host {
			return errors.New(fault.Quote(text) + " is more or less than scheme, host and port")
		}
	}
	*v.into = strings.ToLower(text)
	return nil
}

// optionalAddress is an address to listen on, or nothing.
type optionalAddress struct{ into *string }

func (v optionalAddress) kind() string   { return address(v).kind() }
func (v optionalAddress) String() string { return *v.into }
func (v optionalAddress) hint() string {
	return "write HOST:PORT, such as 127.0.0.1:7071, or leave it out"
}

func (v optionalAddress) set(text string) error {
	if text == "" {
		*v.into = ""
		return nil
	}
	return address(v).set(text)
}

// a2a reads the block "a2a".
func (f *file) a2a(line int, n *yaml.Node) {
	f.object("a2a", line, n, f.readers("a2a", f.config.A2A.settings()))
}
