package api

import "time"

// UpstreamUse is what a run asked of one upstream.
type UpstreamUse struct {
	Name     string `json:"name"`
	Requests int64  `json:"requests"` // all of them
	Refused  int64  `json:"refused,omitempty"`
	BytesIn  int64  `json:"bytes_in"`  // of the bodies of answers, which the run got
	BytesOut int64  `json:"bytes_out"` // of the bodies of requests, which the upstream got
}

// UpstreamEvent tells of one request to an upstream, without what was asked and answered.
type UpstreamEvent struct {
	At       time.Time `json:"at"`
	Name     string    `json:"name"`
	Status   int       `json:"status"`         // of HTTP
	Rule     string    `json:"rule,omitempty"` // why AOD answered itself; "": the upstream did
	BytesIn  int64     `json:"bytes_in"`
	BytesOut int64     `json:"bytes_out"`
	MS       float64   `json:"ms"`
}

// EventType returns EventUpstream.
func (UpstreamEvent) EventType() EventType { return EventUpstream }

// EgressRow counts what a run had to do with one host and port.
type EgressRow struct {
	Host     string `json:"host"` // "*": all beyond the first 99
	Port     int    `json:"port"`
	Tunnels  int64  `json:"tunnels"` // that were opened, and requests of http:// addresses
	BytesIn  int64  `json:"bytes_in"`
	BytesOut int64  `json:"bytes_out"`
	Refused  int64  `json:"refused"`
}

// EgressEvent is the data of an EventEgress: a run reaches for a host for the first time, or is
// refused one for the first time. It has nothing of what is asked there.
type EgressEvent struct {
	Host    string `json:"host"`
	Port    int    `json:"port"`
	Refused string `json:"refused,omitempty"` // the rule: "egress", "egress_private" or "egress_tls"; "": it is allowed
}

// EventType returns EventEgress.
func (EgressEvent) EventType() EventType { return EventEgress }
