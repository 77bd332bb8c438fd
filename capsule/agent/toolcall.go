package agent

import (
	"maps"
	"slices"
	"strings"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
)

// Bounds of what is told of a call's arguments.
const (
	shownArguments = 8   // of a call
	shownArgument  = 200 // bytes of one
	shownArgName   = 100 // bytes

	shownBytes = 3 << 10 // bytes of JSON; masked ones may be a little longer
)

// argumentsOf makes short JSON of a call's arguments; "" where it has none. Texts are cut between words: half a secret
// wouldn't be known as one.
func argumentsOf(input any) string {
	all, is := input.(map[string]any)
	if !is || len(all) == 0 {
		return ""
	}
	short := map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if len(short) == shownArguments {
			break
		}
		if len(name) <= shownArgName {
			short[name] = shortArgument(all[name])
		}
	}
	if raw := encode(short); len(raw) <= shownBytes {
		return string(raw)
	}
	return ""
}

func shortArgument(value any) any {
	whole := text(value)
	if len(whole) <= shownArgument {
		return value
	}
	if _, is := value.(string); !is {
		return "…"
	}
	begins := fault.Cut(whole, shownArgument)
	return begins[:strings.LastIndexAny(begins, " \n\t")+1] + "…"
}

// outputLines counts the lines of the texts in a tool's output. A text alone is one.
func outputLines(output any) (n int) {
	if whole, is := output.(string); is {
		return countLines(whole)
	}
	blocks, _ := output.([]any)
	for _, block := range blocks {
		if content := at(block, "content"); content != nil {
			block = content
		}
		n += countLines(textAt(block, "text"))
	}
	return n
}

func countLines(text string) int {
	if text == "" {
		return 0
	}
	return strings.Count(strings.TrimSuffix(text, "\n"), "\n") + 1
}

// toolStates are those of the Agent Client Protocol.
var toolStates = map[string]api.ToolState{
	"pending": api.ToolRunning, "in_progress": api.ToolRunning, "completed": api.ToolDone, "failed": api.ToolFailed,
}
