package api

// File is an output file where it was delivered.
type File struct {
	Name      string  `json:"name"`           // relative to /io/output
	Path      string  `json:"path,omitempty"` // on this machine
	SizeBytes int64   `json:"size_bytes"`
	SHA256    string  `json:"sha256"`
	Pointer   *string `json:"pointer,omitempty"` // the field of the output that names it
}
