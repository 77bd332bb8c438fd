package api

// News is a change of a thing that a server keeps, as its feed tells it: enough for a list to show the thing as it is
// now.
type News struct {
	Seq     int64    `json:"seq"` // of this change alone; it tells nothing of which was earlier
	Noun    NewsNoun `json:"noun"`
	ID      string   `json:"id,omitempty"`      // of a unit: its name
	Unit    string   `json:"unit,omitempty"`    // of a run, also of that which asks, and of a session
	Run     string   `json:"run,omitempty"`     // of a question: the run that asks
	Parent  string   `json:"parent,omitempty"`  // of a run
	Root    string   `json:"root,omitempty"`    // of a run, also of that which asks
	State   string   `json:"state,omitempty"`   // as the thing itself has it, or NewsGone; "" of a unit that there is
	Outcome Outcome  `json:"outcome,omitempty"` // of a run
}

// NewsNoun says of what something new is.
type NewsNoun string

// The nouns.
const (
	NewsRun      NewsNoun = "run"
	NewsQuestion NewsNoun = "question"
	NewsSession  NewsNoun = "session"
	NewsUnit     NewsNoun = "unit" // its files or its switch changed
	// NewsCursor is of no thing: whoever comes again may go on behind its Seq.
	NewsCursor NewsNoun = "cursor"
	// NewsReset is of no thing: changes up to its Seq weren't told. Read the lists again, then go on.
	NewsReset NewsNoun = "reset"
)

// NewsNouns are those of things.
var NewsNouns = []NewsNoun{NewsRun, NewsQuestion, NewsSession, NewsUnit}

// NewsGone is the State of what was removed.
const NewsGone = "gone"

// NewsFilter selects news. The zero filter selects all.
type NewsFilter struct {
	Nouns []NewsNoun // any of them; empty: all
	Root  string     // only runs of this tree, and their questions; "": of all
	Roots bool       // of runs, those that nobody called
}

// FromNow is what news follow that are told from now on.
const FromNow = -1
