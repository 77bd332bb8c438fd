// Package openapi tests the description of the HTTP API with the generators of clients that people use. It is a
// module of its own, so that nobody who builds AOD has to load them.
package openapi

import _ "github.com/oapi-codegen/runtime" // which the generated client needs
