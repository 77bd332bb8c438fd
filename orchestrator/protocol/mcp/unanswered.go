package mcp

import (
	"fmt"
	"strings"

	"github.com/agent-on-demand/aod/api/fault"
)

// unanswered is why nobody answers what a run asks by its client. The run is cancelled.
type unanswered struct{ reason, hint string }

// elsewhere is the way of questions that a client can't show.
const elsewhere = "`aod run` asks at its terminal, and on a server (`aod run --server`) `aod answer` answers"

var (
	notShown = &unanswered{
		"it asks a person, and its MCP client shows no forms to people",
		"use a client that declares the capability `elicitation` (form); " + elsewhere,
	}
	gone      = &unanswered{"it asks a person, and its MCP client has gone", "call again, and stay until it is over"}
	dismissed = &unanswered{"a person dismissed what it asks", "call again to be asked again"}
	declined  = &unanswered{"a person declined, which isn't an answer to what it asks", "call again to be asked again"}
	misfilled = &unanswered{
		"its MCP client gave no answer that fits what it asks", "the answer has to keep requestedSchema; " + elsewhere,
	}
)

// noForm is of a question that no form of the protocol can hold.
func noForm(why error) *unanswered {
	return &unanswered{fmt.Sprintf("it asks a person what no form of MCP can hold: %v", why), elsewhere}
}

// problem is what the call answers with.
func (u *unanswered) problem(run string) problem {
	return problem{Kind: "unanswered", Message: u.reason, Hint: u.hint, Run: run}
}

// whyNot is the text of a fault, for a person who has to answer again.
func whyNot(err error) string {
	const most = 5 // findings
	public := fault.Public(err)
	texts := []string{public.Msg}
	for _, finding := range public.Findings[:min(most, len(public.Findings))] {
		texts = append(texts, finding.Message)
	}
	return strings.Join(texts, "; ")
}
