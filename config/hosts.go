package config

import (
	"errors"
	"fmt"

	"github.com/agent-on-demand/aod/egress"
	"github.com/agent-on-demand/aod/fault"
)

// egressRules is a list of hosts that may be reached by name.
func egressRules(into *[]string) list {
	return hostList(into, "write a list of hosts, such as [api.example.com, \"*.example.org\"]", egress.ParseRule)
}

// egressExceptions is a list of hosts that may be at addresses which aren't public.
func egressExceptions(into *[]string) list {
	return hostList(into, "write a list of hosts, each alone or with its address, such as [wiki.internal, db.internal=10.0.0.5]", egress.ParseException)
}

func hostList[T fmt.Stringer](into *[]string, advice string, parse func(string) (T, error)) list {
	return list{into, "hosts", advice, ",", func(text string) (string, error) {
		host, err := parse(text)
		if err != nil {
			return "", errors.New(fault.Public(err).Msg)
		}
		return host.String(), nil
	}}
}

// hostsOf reads what a hostList has checked.
func hostsOf[T any](texts []string, parse func(string) (T, error)) []T {
	all := make([]T, 0, len(texts))
	for _, text := range texts {
		if host, err := parse(text); err == nil {
			all = append(all, host)
		}
	}
	return all
}

// EgressRules returns the hosts that the policy lets units reach; never nil.
func (p PolicyConfig) EgressRules() egress.List { return rulesOf(p.Egress) }

func rulesOf(texts []string) egress.List { return hostsOf(texts, egress.ParseRule) }

// EgressExceptions returns the hosts that may be at addresses which aren't public.
func (c *Config) EgressExceptions() []egress.Exception {
	return hostsOf(c.EgressPrivate, egress.ParseException)
}

// PushExceptions returns the hosts of receivers that may be at addresses which aren't public.
func (a A2AConfig) PushExceptions() []egress.Exception {
	return hostsOf(a.PushPrivate, egress.ParseException)
}
