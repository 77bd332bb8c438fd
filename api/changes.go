package api

// The ways in which a file of a workspace changes.
const (
	OpAdd    = "add"
	OpModify = "modify" // its content, its mode or its kind
	OpDelete = "delete"
)

// Changes are what a run did to the files of its workspace (changes.json).
type Changes struct {
	Partial  bool     `json:"partial,omitempty"`  // the run failed or was stopped: it may have meant to do more
	Changes  []Change `json:"changes"`            // by path
	Warnings []string `json:"warnings,omitempty"` // what was left out, and why
}

// Change is what happened to one file, which may be a symbolic link: then its content is its
// target.
type Change struct {
	Path string `json:"path"` // relative, with slashes
	Op   string `json:"op"`
	// as git writes it: 100644, 100755 or 120000; of a deleted file the one it had
	Mode    string   `json:"mode"`
	ModeWas string   `json:"mode_was,omitempty"` // where a modified file had another one
	Before  string   `json:"before,omitempty"`   // SHA-256 of the content in hex; "" of an added file
	After   string   `json:"after,omitempty"`    // likewise; "" of a deleted file
	Size    int64    `json:"size"`               // in bytes, of the new content
	Mind    []string `json:"mind,omitempty"`     // why a person should look at it first
}

// ChangeCounts say in a record what a run did to its workspace.
type ChangeCounts struct {
	Files   int   `json:"files"`
	Bytes   int64 `json:"bytes"` // of the new contents
	Partial bool  `json:"partial,omitempty"`
}
