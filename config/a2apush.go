package config

import "github.com/agent-on-demand/aod/egress"

// pushSettings are the rows of the block a2a that are about pushes.
func (a *A2AConfig) pushSettings() []setting {
	return []setting{
		{"push", boolean{&a.Push}, "true", "let clients name receivers that are told of their tasks by HTTP requests, to public addresses by https; false sends none"},
		{"push_private", egressExceptions(&a.PushPrivate), "", "hosts of such receivers that may be at addresses which aren't public, and be spoken to without TLS: a name, or name=address, where the name is looked up no more"},
	}
}

// PushExceptions returns the hosts of receivers that may be at addresses which aren't public.
func (a A2AConfig) PushExceptions() []egress.Exception { return exceptionsOf(a.PushPrivate) }
