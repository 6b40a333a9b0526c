package wire

import (
	"fmt"
	"net/http"
)

// The codes of Error: the words that a program may branch on.
const (
	CodeBadRequest       = "bad_request"        // not well formed, or not possible; the same request never succeeds
	CodeForbidden        = "forbidden"          // the peer's role does not allow it
	CodeNotFound         = "not_found"          // no such path, run or trial
	CodeMethodNotAllowed = "method_not_allowed" // the path exists, the method does not
	CodeTooSlow          = "too_slow"           // the request's body did not arrive in time
	CodeConflict         = "conflict"           // does not fit what the node is doing
	CodeLeaseHeld        = "lease_held"         // another controller steers the node
	CodeLeaseNeeded      = "no_lease"           // the call needs the lease, and nobody holds it
	CodeBusy             = "busy"               // an attempt is under way
	CodeStopping         = "stopping"           // the agent is being stopped
	CodeHost             = "host"               // the privileged half could not put the machine back
	CodeNotReady         = "not_ready"          // a need of the trial is not met: see NodeStatus.Problems
	CodeEpochChanged     = "epoch_changed"      // the spool is another one than the position names
	CodeTooLarge         = "too_large"          // the body exceeds its limit
	CodeMediaType        = "media_type"         // the body is not application/json
	CodeInternal         = "internal"           // a fault of the agent
	CodeUnavailable      = "unavailable"        // part of the agent does not answer, or the node is overloaded; retry
	CodeDiskFull         = "disk_full"          // the spool has no room
	CodeUnfit            = "unfit"              // a battery is nearly empty, or something is too hot
)

// Errorf makes an Error with a code and no cure.
func Errorf(code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// HTTPStatus is the HTTP status of an error's code. A code that is not listed is
// a newer part's refusal of the present state: a conflict.
func HTTPStatus(code string) int {
	switch code {
	case CodeBadRequest:
		return http.StatusBadRequest
	case CodeForbidden:
		return http.StatusForbidden
	case CodeNotFound:
		return http.StatusNotFound
	case CodeMethodNotAllowed:
		return http.StatusMethodNotAllowed
	case CodeTooSlow:
		return http.StatusRequestTimeout
	case CodeTooLarge:
		return http.StatusRequestEntityTooLarge
	case CodeMediaType:
		return http.StatusUnsupportedMediaType
	case CodeInternal:
		return http.StatusInternalServerError
	case CodeUnavailable:
		return http.StatusServiceUnavailable
	case CodeDiskFull:
		return http.StatusInsufficientStorage
	}
	return http.StatusConflict
}
