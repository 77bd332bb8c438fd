package web

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/internal/terminal"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
	"github.com/agent-on-demand/aod/internal/wire/strictjson"
)

// Bounds of what a question shows: names, items of a list, and bytes of a text before it is folded.
const mostShown, mostListed, mostOpen = 50, 200, 4 << 10

// showed is one of the values that a question shows.
type showed struct {
	Name  string
	Text  string
	JSON  string
	List  []string
	Files []showedFile
	Long  string // how large the text or the JSON is, where it is folded
}

// showedFile is a file that a question shows.
type showedFile struct {
	api.File
	Path    string // below /ui/; "": it can't be opened
	Picture bool
}

// showsOf is what a question shows, in the order in which it was written.
func showsOf(q api.Question) []showed {
	var all []showed
	names := map[api.File]string{}
	for _, f := range q.Files {
		names[api.File{SHA256: f.SHA256, SizeBytes: f.SizeBytes}] = f.Name
	}
	for name, value := range strictjson.Members(q.Show) {
		if len(all) == mostShown {
			break
		}
		one := showOf(value, func(f api.File) showedFile {
			return fileShown(q.ID, f, names[api.File{SHA256: f.SHA256, SizeBytes: f.SizeBytes}])
		})
		one.Name = terminal.Plain(name)
		all = append(all, one)
	}
	return all
}

func fileShown(question string, f api.File, name string) showedFile {
	shown := showedFile{File: f, Picture: strings.HasPrefix(httpwire.TypeOfFile(f.Name), "image/")}
	shown.Name = terminal.Plain(f.Name)
	if name != "" {
		shown.Path = "questions/" + question + "/files/" + name
	}
	return shown
}

func showOf(value []byte, file func(api.File) showedFile) showed {
	var one showed
	if f, is := fileIn(value); is {
		one.Files = []showedFile{file(f)}
		return one
	}
	switch value[0] {
	case '"':
		one.Text = terminal.Plain(strictjson.Text(value))
		if len(one.Text) > mostOpen {
			one.Long = size(int64(len(one.Text)))
		}
		return one
	case '[':
		if one.list(value, file) {
			return one
		}
	case '{':
	default:
		return showed{Text: string(value)}
	}
	one = showed{JSON: pretty(value)}
	if len(one.JSON) > mostOpen {
		one.Long = size(int64(len(one.JSON)))
	}
	return one
}

// list takes a list of short texts and numbers, or one of files, and reports whether it is one.
func (s *showed) list(value []byte, file func(api.File) showedFile) bool {
	const short = 500
	for item := range strictjson.Elements(value) {
		f, isFile := fileIn(item)
		switch {
		case len(s.List)+len(s.Files) == mostListed:
			return false
		case isFile:
			s.Files = append(s.Files, file(f))
		case item[0] == '{', item[0] == '[', len(item) > short:
			return false
		case item[0] == '"':
			s.List = append(s.List, terminal.Plain(strictjson.Text(item)))
		default:
			s.List = append(s.List, string(item))
		}
	}
	return len(s.List) == 0 || len(s.Files) == 0
}

// fileIn reads a file as the state of a flow has it.
func fileIn(value []byte) (api.File, bool) {
	if len(value) == 0 || value[0] != '{' || !bytes.Contains(value, []byte(`"$file"`)) {
		return api.File{}, false
	}
	var held struct {
		File *api.File `json:"$file"`
	}
	if json.Unmarshal(value, &held) != nil || held.File == nil {
		return api.File{}, false
	}
	return *held.File, true
}

// textIn is the text that an object has under a name.
func textIn(object []byte, name string) string {
	for key, value := range strictjson.Members(object) {
		if key == name {
			return strictjson.Text(value)
		}
	}
	return ""
}

// filledIn is what an answer has filled in, by the names of the fields.
func filledIn(object []byte) [][2]string {
	var all [][2]string
	for name, value := range strictjson.Members(object) {
		text := pretty(value)
		if value[0] == '"' {
			text = strictjson.Text(value)
		}
		all = append(all, [2]string{terminal.Plain(name), terminal.Plain(text)})
	}
	return all
}
