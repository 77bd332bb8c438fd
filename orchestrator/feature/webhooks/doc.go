// Package webhooks tells receivers elsewhere of the ends of a team's runs and of what these ask people, by the
// specification Standard Webhooks 1.0.
//
//	Feature.Add        checks the receiver, keeps the secret in a file, and stores the webhook
//	Feature.compose    makes and signs what a delivery says, anew for each try
//	Feature.Test       makes one request now
//
// When something is to be told is decided where the event is stored (package store), in its transaction, and package
// pushes makes the deliveries: in order by run, at least once, at no private address.
//
// It must not know what a run is given, gives or asks: a body has ids, names, states and addresses.
//
// Its Go API may change with every release: see docs/stability.md.
package webhooks
