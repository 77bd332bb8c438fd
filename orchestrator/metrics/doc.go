// Package metrics counts what happens in a server, for Prometheus and for the figures of its API.
//
//	New               makes the counters and histograms; a method is named for what happened
//	Metrics.Registry  has them scraped, with the Figures of the moment
//	Recent            remembers which runs ended lately: rates, percentiles, the wait to expect
//
// Labels hold names of units, which the operator chose, names of nodes of flows, as many as the
// counts of nodes bear, and words of AOD. It must not know the store, the queue, nor how a run is
// led.
//
// Its Go API may change with every release: see docs/stability.md.
package metrics
