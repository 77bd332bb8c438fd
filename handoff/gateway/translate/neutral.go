package translate

import (
	"cmp"
	"strings"
	"time"

	"github.com/agent-on-demand/aod/handoff/gateway/catalog"
)

// request is a request in no dialect. What a writer may have to refuse are values, which know where they stand.
type request struct {
	settings map[string]value
	usage    bool // the counts of a stream are wanted
	choice   choice
	tools    []tool
	format   format
	turns    []turn
}

// The roles of turns.
const (
	system    = "system"
	developer = "developer"
	user      = "user"
	assistant = "assistant"
)

// turn is what one side says: the results of tools are the user's.
type turn struct {
	at    value
	role  string
	parts []part
}

// check refuses what no writer can say.
func (q *request) check(asker, provider catalog.Dialect) {
	for _, t := range q.turns {
		for _, p := range t.parts {
			if !mayHold(t.role, p.kind) {
				p.at.refuse("it doesn't belong to the role " + t.role)
			}
			for _, inner := range p.parts {
				if inner.kind != textPart && inner.kind != imagePart {
					inner.at.refuse("it doesn't belong into the result of a tool")
				}
			}
		}
	}
	if n := len(q.turns); n > 0 && asker != provider && oneOf("messages", string(asker), string(provider)) &&
		q.turns[n-1].role == assistant {
		q.turns[n-1].at.refuse("only in messages, the model goes on with an answer that stands last")
	}
}

func mayHold(role string, kind partKind) bool {
	switch kind {
	case refusalPart, callPart:
		return role == assistant
	case imagePart, resultPart:
		return role == user
	}
	return true
}

// merged joins turns of one role that follow each other, where joins says so of the second.
func merged(turns []turn, joins func(turn) bool) (all []turn) {
	for _, t := range turns {
		if n := len(all); n > 0 && all[n-1].role == t.role && joins(t) {
			last := &all[n-1]
			last.parts = append(last.parts[:len(last.parts):len(last.parts)], t.parts...)
			continue
		}
		all = append(all, t)
	}
	return all
}

// The reasons why an answer ends.
const (
	stopEnd      = "end"
	stopSequence = "sequence"
	stopLength   = "length"
	stopTools    = "tools"
	stopFilter   = "filter"
)

func readStop(v value, known map[string]string) string {
	stop, ok := known[v.text()]
	if !ok {
		v.refuse(notThis)
	}
	return stop
}

// head is what an answer says of itself.
type head struct {
	id, model string
	created   int64
}

func readHead(o *fields, created string) head {
	at, _, _ := strings.Cut(string(o.take(created).raw), ".") // some servers have a fraction
	return head{o.take("id").text(), o.take("model").text(), int64(value{raw: []byte(at)}.integer())}
}

// answer is an answer in no dialect.
type answer struct {
	head
	parts    []part // texts, refusals and calls; none of a stream
	stop     string
	sequence string // that ended it
	usage    *Usage // nil: nobody counted
	echo     map[string][]byte
}

// add adds parts. Texts that follow each other are one.
func (a *answer) add(parts ...part) {
	for _, p := range parts {
		n := len(a.parts)
		switch {
		case n > 0 && p.kind != callPart && a.parts[n-1].kind == p.kind:
			a.parts[n-1].text += p.text
		case p.text != "" || p.kind == callPart:
			a.parts = append(a.parts, p)
		}
	}
}

// settle finds what the answer doesn't say itself: some servers say that it just ended where it calls tools.
func (a *answer) settle() {
	a.created = cmp.Or(max(a.created, 0), time.Now().Unix())
	for i, p := range a.parts {
		if p.kind != callPart {
			continue
		}
		if p.id == "" || p.name == "" {
			p.at.refuse("a call has an id and a name")
		}
		a.parts[i].text = cmp.Or(p.text, "{}")
		if a.stop == stopEnd {
			a.stop = stopTools
		}
	}
}

// texts returns what all parts of a kind say.
func (a *answer) texts(kind partKind) string {
	var all strings.Builder
	for _, p := range a.parts {
		if p.kind == kind {
			all.WriteString(p.text)
		}
	}
	return all.String()
}
