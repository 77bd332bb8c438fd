package api

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
