package api

// A2AStatus says what a server offers to clients of A2A (schemas/openapi.json, "A2AStatus").
type A2AStatus struct {
	Units    []string `json:"units"`    // that are agents
	Bindings []string `json:"bindings"` // "JSONRPC", "HTTP+JSON" and "GRPC"
	Versions []string `json:"versions"` // of the protocol, newest first
	// "submitted", "working", also those that ask something, "completed", "failed", also those rejected, and "canceled"
	Tasks map[string]int `json:"tasks"`
	Push  int64          `json:"push"` // deliveries that are still to be made
}
