// Package pushes tells receivers elsewhere what happens in runs, by HTTP requests to addresses that clients have given
// (webhooks).
//
// The Feature stores receivers with their runs, and has a Deliverer over the store.
//
// A Deliverer takes what is to be told from a Book, in the order of each push: Deliverer.Run finds the pushes that are
// due, Deliverer.deliverInOrder goes through the deliveries of one, Deliverer.try makes the body and has a sender make
// the request, and Book.Note keeps what became of it. A delivery that isn't noted is made again: receivers hear
// everything at least once. One that fails is tried again, later each time, and when it was tried often enough its
// push is given up.
//
// Receivers and what they answer are hostile: only public addresses are connected to, which is package egress's to
// check; no redirect is followed, no proxy asked, no answer read beyond a bound, and every request ends in time.
// Nothing of an address, a token or a body is logged.
//
// Each event is stored with its deliveries in one transaction; Deliveries.News tells of them. Feature.Render
// (feature.go) has what a protocol makes of an event. An end of the process between sender.send (sender.go) and
// storeBook.Note (storebook.go) means one delivery more.
//
// It must not know what a body says, or how a run is led. A Deliverer knows no store.
//
// Its Go API may change with every release: see docs/stability.md.
package pushes
