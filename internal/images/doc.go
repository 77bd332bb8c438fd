// Package images carries the base image's build context: its Dockerfile and the
// Python package of package sdk. It writes the context and names the image by its
// content; building it is the runtime's work.
package images
