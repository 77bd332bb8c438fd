package api

// ToolCall is a call of a tool in a session with an MCP server.
type ToolCall struct {
	Tool  string  `json:"tool"`
	MS    float64 `json:"ms"`
	Error bool    `json:"error,omitempty"`
}
