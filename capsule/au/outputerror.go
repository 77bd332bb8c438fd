package au

import "fmt"

// OutputProblem is a reason why stdout isn't one JSON document: a stable word.
type OutputProblem string

// The problems. Each has one hint, below.
const (
	OutputEmpty         OutputProblem = "empty"           // nothing but white space
	OutputTooLarge      OutputProblem = "too_large"       // more than the limit
	OutputNotUTF8       OutputProblem = "not_utf8"        // binary data, or another encoding
	OutputByteOrderMark OutputProblem = "byte_order_mark" // many readers refuse it
	OutputTextBefore    OutputProblem = "text_before"     // such as a log line, then a document
	OutputTextAfter     OutputProblem = "text_after"      // a document, then something else
	OutputTwoDocuments  OutputProblem = "two_documents"   // or more, one after the other
	OutputNotJSON       OutputProblem = "not_json"        // no document can be found
	OutputTruncated     OutputProblem = "truncated"       // a document that has no end
	OutputNotStructured OutputProblem = "not_structured"  // a string, number, true, false or null
	OutputTooDeep       OutputProblem = "too_deep"        // nested deeper than strictjson.MaxDepth
	OutputAmbiguous     OutputProblem = "ambiguous"       // JSON that readers read differently
)

var outputHints = map[OutputProblem]string{
	OutputEmpty: "a unit that succeeds prints its result as JSON on stdout; one that doesn't exits with " +
		"another code than 0",
	OutputTooLarge:      "raise the limit, or have the unit return less",
	OutputNotUTF8:       "stdout is for JSON in UTF-8 alone; binary data has no place in it",
	OutputByteOrderMark: "write UTF-8 without a byte order mark",
	OutputTextBefore:    "print progress and logs on stderr",
	OutputTextAfter:     "print progress and logs on stderr",
	OutputTwoDocuments:  "put all results into one object or array",
	OutputNotJSON:       "print one JSON object; NaN, comments, single quotes and trailing commas aren't JSON",
	OutputTruncated:     "write the whole document before the program ends, and flush it",
	OutputNotStructured: `wrap it in an object, such as {"text": …}`,
	OutputTooDeep:       "flatten the result",
	OutputAmbiguous:     "use an encoder of JSON instead of putting the text together",
}

// OutputError says what a unit did wrong on stdout. That is an outcome of its run, not a
// failure of AOD. It shows nothing of the output.
type OutputError struct {
	Problem OutputProblem `json:"problem"`
	Message string        `json:"message"`
	Hint    string        `json:"hint"`
	Offset  int           `json:"offset"` // of the problem, in bytes
}

func (e *OutputError) Error() string { return e.Message }

func misbehaved(p OutputProblem, offset int, format string, args ...any) *OutputError {
	return &OutputError{Problem: p, Message: fmt.Sprintf(format, args...), Hint: outputHints[p], Offset: offset}
}
