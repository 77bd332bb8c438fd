package run

import (
	"fmt"

	"github.com/google/uuid"
)

// NewID returns an id for a run: unique, and sorted by time (UUID version 7).
func NewID() (string, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return "", fmt.Errorf("new run id: %w", err)
	}
	return id.String(), nil
}
