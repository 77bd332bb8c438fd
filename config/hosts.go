package config

import (
	"errors"

	"github.com/agent-on-demand/aod/egress"
	"github.com/agent-on-demand/aod/fault"
)

// egressRules is a list of hosts that may be reached by name.
func egressRules(into *[]string) list {
	return list{into, "hosts", "write a list of hosts, such as [api.example.com, \"*.example.org\"]", ",", func(text string) (string, error) {
		r, err := egress.ParseRule(text)
		if err != nil {
			return "", publicText(err)
		}
		return r.String(), nil
	}}
}

// egressExceptions is a list of hosts that may be at addresses which aren't public.
func egressExceptions(into *[]string) list {
	return list{into, "hosts", "write a list of hosts, each alone or with its address, such as [wiki.internal, db.internal=10.0.0.5]", ",", func(text string) (string, error) {
		e, err := egress.ParseException(text)
		if err != nil {
			return "", publicText(err)
		}
		return e.String(), nil
	}}
}

func publicText(err error) error { return errors.New(fault.Public(err).Msg) }

// rulesOf reads what egressRules has checked.
func rulesOf(texts []string) egress.List {
	rules := make(egress.List, 0, len(texts))
	for _, text := range texts {
		if r, err := egress.ParseRule(text); err == nil {
			rules = append(rules, r)
		}
	}
	return rules
}

// EgressRules returns the hosts that the policy lets units reach; never nil.
func (p PolicyConfig) EgressRules() egress.List { return rulesOf(p.Egress) }

// EgressExceptions returns the hosts that may be at addresses which aren't public.
func (c *Config) EgressExceptions() []egress.Exception { return exceptionsOf(c.EgressPrivate) }

// exceptionsOf reads what egressExceptions has checked.
func exceptionsOf(texts []string) []egress.Exception {
	var all []egress.Exception
	for _, text := range texts {
		if e, err := egress.ParseException(text); err == nil { // it was checked
			all = append(all, e)
		}
	}
	return all
}
