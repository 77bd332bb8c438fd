package api

// WarningEvent is the data of an EventWarning.
type WarningEvent struct {
	Message string `json:"message"` // one of Record.Warnings
}

// BuildEvent is the data of an EventBuild. What a step prints isn't told.
type BuildEvent struct {
	Step  string `json:"step"`           // identifies the step within this build
	Name  string `json:"name,omitempty"` // such as "[2/4] RUN pip install"
	State string `json:"state"`          // "started", "done", "cached" or "failed"
}

// AttemptEvent is the data of an EventAttempt: the attempt that failed, and when the next
// one begins.
type AttemptEvent struct {
	Attempt
	RetryInMS int64 `json:"retry_in_ms"` // milliseconds after the failure
}

// ProgressEvent is the data of an EventProgress. The texts are the unit's own, at most
// 1 KiB each and without control characters.
type ProgressEvent struct {
	Percent *float64 `json:"percent,omitempty"` // 0 to 100; nil: not said
	Step    string   `json:"step,omitempty"`
	Message string   `json:"message,omitempty"`
}

// CancelEvent is the data of an EventCancel.
type CancelEvent struct {
	Reason string `json:"reason,omitempty"` // of whoever asked; "": none was given
}

// NodeEvent is the data of an EventNode: what a step of a flow is now, without any values.
type NodeEvent struct {
	Address   string    `json:"address"`
	Try       int       `json:"try"`
	State     StepState `json:"state"`
	Run       string    `json:"run,omitempty"` // that it called
	Cached    bool      `json:"cached,omitempty"`
	Action    string    `json:"action,omitempty"`
	ErrorKind string    `json:"error_kind,omitempty"`
	Items     int       `json:"items,omitempty"` // of a map that begins: how many there are
}

// QuestionEvent is the data of an EventQuestion. What is asked and answered isn't told.
type QuestionEvent struct {
	ID      string        `json:"id"`
	Address string        `json:"address"`
	State   QuestionState `json:"state"`
}

// EndEvent is the data of an EventEnd.
type EndEvent struct {
	State   State   `json:"state"` // as the run's record shows it
	Outcome Outcome `json:"outcome"`
}

// EventType returns EventState.
func (Transition) EventType() EventType { return EventState }

// EventType returns EventWarning.
func (WarningEvent) EventType() EventType { return EventWarning }

// EventType returns EventBuild.
func (BuildEvent) EventType() EventType { return EventBuild }

// EventType returns EventAttempt.
func (AttemptEvent) EventType() EventType { return EventAttempt }

// EventType returns EventCall.
func (Call) EventType() EventType { return EventCall }

// EventType returns EventProgress.
func (ProgressEvent) EventType() EventType { return EventProgress }

// EventType returns EventCancel.
func (CancelEvent) EventType() EventType { return EventCancel }

// EventType returns EventNode.
func (NodeEvent) EventType() EventType { return EventNode }

// EventType returns EventQuestion.
func (QuestionEvent) EventType() EventType { return EventQuestion }

// EventType returns EventEnd.
func (EndEvent) EventType() EventType { return EventEnd }
