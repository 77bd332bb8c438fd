// Package sdks tests the gateway of models with the unmodified SDKs of the vendors. It is a
// module of its own, so that nobody who builds AOD has to load them.
package sdks
