package check

import (
	"slices"

	"github.com/agent-on-demand/aod/client/agenthttp/internal/document"
)

// subject is an answer that a rule can judge.
type subject struct {
	doc   document.Fields
	asked document.Asked
	rules []document.Rule // that judge single members
}

// answerChecks are the rules for the types of an answer's members. read returns the answer, or
// why there is none.
func answerChecks(prefix, whose string, read func(*evidence) (subject, string)) []check {
	judged := func(judge func(subject) (Verdict, string)) func(*evidence) (Verdict, string) {
		return func(e *evidence) (Verdict, string) {
			answer, why := read(e)
			if why != "" {
				return NotApplicable, why
			}
			return judge(answer)
		}
	}
	return []check{
		{
			prefix + "-artifacts", whose + " artifacts are a list of texts: URLs, ids or paths", document.SectionSync,
			judged(judgeArtifacts),
		},
		{
			prefix + "-warnings", whose + " warnings are a list of texts, and there", document.SectionSync,
			judged(judgeWarnings),
		},
		{
			prefix + "-schema", whose + " members are all of the contract's types", document.SectionSync,
			judged(judgeSchema),
		},
	}
}

func judgeArtifacts(a subject) (Verdict, string) { return judgeHeld(a.doc, is("artifacts")) }

// judgeWarnings advises an agent that leaves them out: the specification recommends them.
func judgeWarnings(a subject) (Verdict, string) {
	if !a.doc.Has("warnings") {
		return Advice, "they are left out: the contract recommends them, as [] where there are none"
	}
	return judgeHeld(a.doc, is("warnings"))
}

func is(name string) func(string) bool { return func(member string) bool { return member == name } }

// judgeSchema leaves out what other rules judge: the members that have one, if they broke it.
func judgeSchema(a subject) (Verdict, string) {
	others := []string{"artifacts", "warnings", "type"}
	for _, r := range a.rules {
		if r.Judge(a.doc, a.asked) != "" {
			others = append(others, r.Members...)
			others = append(others, "") // what the answer lacks
		}
	}
	return judgeHeld(a.doc, func(member string) bool { return !slices.Contains(others, member) })
}
