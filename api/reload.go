package api

// Reload is what came of reading a server's file again (schemas/openapi.json, "Reload").
type Reload struct {
	Changed []string `json:"changed"` // settings that hold now, by their keys; of models and providers those words
	Restart []string `json:"restart"` // settings that are others in the file, and hold when the server is started again
}
