package a2a

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"time"

	sdk "github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/errordetails"
	"google.golang.org/genproto/googleapis/rpc/code"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
)

// rule is how the bindings write one sort of refusal.
type rule struct {
	sentinel error // the SDK's, which has the reason
	code     int   // of JSON-RPC
	status   int   // of HTTP
	grpc     codes.Code
}

func (r rule) reason() string { return sdk.ErrorReason(r.sentinel) }

// word is the code of gRPC as HTTP writes it.
func (r rule) word() string {
	if r.status == http.StatusNotFound {
		return code.Code_NOT_FOUND.String()
	}
	return code.Code(r.grpc).String() //nolint:gosec // there are 17 of them
}

// The sorts of refusals, with the codes of version 1.0.1.
var (
	badJSON       = rule{sdk.ErrParseError, -32700, http.StatusBadRequest, codes.InvalidArgument}
	badEnvelope   = rule{sdk.ErrInvalidRequest, -32600, http.StatusBadRequest, codes.InvalidArgument}
	noMethod      = rule{sdk.ErrMethodNotFound, -32601, http.StatusNotFound, codes.Unimplemented}
	badParams     = rule{sdk.ErrInvalidParams, -32602, http.StatusBadRequest, codes.InvalidArgument}
	noAgent       = rule{sdk.ErrInvalidParams, -32602, http.StatusNotFound, codes.NotFound}
	tooLarge      = rule{sdk.ErrInvalidParams, -32602, http.StatusRequestEntityTooLarge, codes.InvalidArgument}
	internal      = rule{sdk.ErrInternalError, -32603, http.StatusInternalServerError, codes.Internal}
	noTask        = rule{sdk.ErrTaskNotFound, -32001, http.StatusNotFound, codes.NotFound}
	notCancelable = rule{sdk.ErrTaskNotCancelable, -32002, http.StatusBadRequest, codes.FailedPrecondition}
	noPush        = rule{sdk.ErrPushNotificationNotSupported, -32003, http.StatusBadRequest, codes.FailedPrecondition}
	notDone       = rule{sdk.ErrUnsupportedOperation, -32004, http.StatusBadRequest, codes.FailedPrecondition}
	badContent    = rule{sdk.ErrUnsupportedContentType, -32005, http.StatusBadRequest, codes.InvalidArgument}
	badType       = rule{sdk.ErrUnsupportedContentType, -32005, http.StatusUnsupportedMediaType, codes.InvalidArgument}
	badVersion    = rule{sdk.ErrVersionNotSupported, -32009, http.StatusBadRequest, codes.FailedPrecondition}
	noToken       = rule{sdk.ErrUnauthenticated, -31401, http.StatusUnauthorized, codes.Unauthenticated}
	forbidden     = rule{sdk.ErrUnauthorized, -31403, http.StatusForbidden, codes.PermissionDenied}
	busy          = rule{sdk.ErrServerError, -32000, http.StatusTooManyRequests, codes.ResourceExhausted}
	unavailable   = rule{sdk.ErrServerError, -32000, http.StatusServiceUnavailable, codes.Unavailable}
)

// refusal is an error as a client may know it. It wraps exactly one error of the SDK.
type refusal struct {
	rule       rule
	text       string
	violations []fault.Finding
	retry      bool          // later it may go
	after      time.Duration // then; 0: nobody knows when
	before     bool          // the protocol has begun: JSON-RPC has the status, too
}

func (r *refusal) Error() string { return r.text }
func (r *refusal) Unwrap() error { return r.rule.sentinel }

func refuse(as rule, text string) *refusal { return &refusal{rule: as, text: text} }

// byKind are the sorts of faults that whoever asked can do something about.
var byKind = map[fault.Kind]rule{
	fault.Input: badParams, fault.BadRequest: badParams, fault.Capsule: badParams, fault.TooLarge: badParams,
	fault.NotFound: badParams, fault.Unsupported: notDone, fault.Conflict: notDone, fault.Disabled: notDone,
	fault.Build: notDone, fault.BuildTimeout: notDone,
	fault.Unauthorized: noToken, fault.Forbidden: forbidden, fault.Busy: busy, fault.Unavailable: unavailable,
}

// refusals makes refusals of errors.
type refusals struct{ logger *slog.Logger }

// of makes a refusal of any error. Of one that isn't a fault nothing is told.
func (r refusals) of(ctx context.Context, err error) *refusal {
	var known *refusal
	if errors.As(err, &known) {
		return known
	}
	as, ok := byKind[fault.KindOf(err)]
	if !ok {
		if ctx.Err() == nil {
			r.logger.ErrorContext(ctx, "a2a request failed", fault.LogAttr(err))
		}
		return refuse(internal, "the server could not do this")
	}
	public := fault.Public(err).Without(func(string) bool { return false })
	text := public.Msg
	if public.Hint != "" {
		text += ": " + public.Hint
	}
	violations := slices.Clone(public.Findings)
	if errors.Is(err, api.ErrReceiver) {
		for i := range violations {
			violations[i].Pointer = inConfig(violations[i].Pointer, callOf(ctx).legacy)
		}
	}
	return &refusal{
		rule: as, text: text, violations: violations, retry: as == busy || as == unavailable, after: public.Retry,
	}
}

// ofBody is the error of a body that could not be read.
func (r refusals) ofBody(ctx context.Context, err error) error {
	switch {
	case fault.Is(err, fault.TooLarge):
		return refuse(tooLarge, fault.Public(err).Msg)
	case fault.Is(err, fault.Unavailable): // there is no memory for it
		refusal := r.of(ctx, err)
		refusal.before = true
		return refusal
	}
	return refuse(badJSON, "the request's body broke off")
}

// retryText is when to ask again, as the header Retry-After has it: in seconds.
func (r *refusal) retryText() string { return httpwire.RetryText(r.after) }

func (r *refusal) retryTime() time.Duration {
	seconds, _ := strconv.Atoi(r.retryText())
	return time.Duration(seconds) * time.Second
}

// detail is one of an error's details in JSON.
type detail map[string]any

// details are what a program reads of a refusal.
func (r *refusal) details() []detail {
	all := []detail{{"@type": errordetails.ErrorInfoType, "reason": r.rule.reason(), "domain": sdk.ProtocolDomain}}
	if fields := r.fields(); len(fields) > 0 {
		violations := make([]map[string]string, len(fields))
		for i, f := range fields {
			violations[i] = map[string]string{"field": f.Field, "description": f.Description}
		}
		all = append(all, detail{"@type": "type.googleapis.com/google.rpc.BadRequest", "fieldViolations": violations})
	}
	if r.retry {
		all = append(all, detail{
			"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": r.retryText() + "s",
		})
	}
	return all
}

// maxViolations bounds what a refusal lists.
const maxViolations = 50

func (r *refusal) fields() []*errdetails.BadRequest_FieldViolation {
	var all []*errdetails.BadRequest_FieldViolation
	for _, f := range r.violations[:min(len(r.violations), maxViolations)] {
		description := f.Message
		if f.Hint != "" {
			description += ": " + f.Hint
		}
		all = append(all, &errdetails.BadRequest_FieldViolation{Field: f.Pointer, Description: description})
	}
	return all
}

// GRPCStatus is the refusal as gRPC writes it.
func (r *refusal) GRPCStatus() *status.Status {
	details := []protoadapt.MessageV1{&errdetails.ErrorInfo{Reason: r.rule.reason(), Domain: sdk.ProtocolDomain}}
	if fields := r.fields(); len(fields) > 0 {
		details = append(details, &errdetails.BadRequest{FieldViolations: fields})
	}
	if r.retry {
		details = append(details, &errdetails.RetryInfo{RetryDelay: durationpb.New(r.retryTime())})
	}
	plain := status.New(r.rule.grpc, r.text)
	if full, err := plain.WithDetails(details...); err == nil {
		return full
	}
	return plain
}

// rpcError is an error of JSON-RPC.
type rpcError struct {
	Code    int      `json:"code"`
	Message string   `json:"message"`
	Data    []detail `json:"data"`
}

// rpcBody is the refusal as JSON-RPC writes it.
func (r *refusal) rpcBody(id any) any {
	return map[string]any{"jsonrpc": "2.0", "id": id, "error": rpcError{r.rule.code, r.text, r.details()}}
}

// restBody is the refusal as HTTP+JSON writes it.
func (r *refusal) restBody() any {
	return map[string]any{"error": map[string]any{
		"code": r.rule.status, "status": r.rule.word(), "message": r.text, "details": r.details(),
	}}
}

// problemRefusal is a refusal of whoever stands before the Server.
func problemRefusal(p httpwire.Problem) *refusal {
	as := unavailable
	switch p.Status {
	case http.StatusUnauthorized:
		as = noToken
	case http.StatusForbidden:
		as = forbidden
	case http.StatusRequestEntityTooLarge:
		as = tooLarge
	case http.StatusNotFound, http.StatusMethodNotAllowed:
		as = noMethod
	case http.StatusInternalServerError:
		as = internal
	case http.StatusTooManyRequests:
		as = busy
	}
	text := p.Detail
	if text == "" {
		text = p.Title
	}
	return &refusal{rule: as, text: text, retry: p.MayRetry(), after: p.Retry}
}
