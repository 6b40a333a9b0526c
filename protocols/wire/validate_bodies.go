package wire

import (
	"math"
	"slices"
	"unicode/utf8"
)

// Validate refuses a position that no spool can have.
func (p SpoolPosition) Validate() error {
	if p.Seq > math.MaxInt64 {
		return Errorf(CodeBadRequest, "seq: %d is above %d", p.Seq, int64(math.MaxInt64))
	}
	return CheckEpoch(p.Epoch)
}

// Validate refuses a lease that makes no sense.
func (l Lease) Validate() error {
	if n := utf8.RuneCountInString(l.Holder); n < 1 || n > maxTextRunes {
		return Errorf(CodeBadRequest, "lease: holder: %d characters long, want 1 to %d", n, maxTextRunes)
	}
	if !(l.TTLS >= 0 && l.TTLS <= 3600) {
		return Errorf(CodeBadRequest, "lease: ttl_s: %v is not within 0 to 3600", l.TTLS)
	}
	if len(l.Places) > MaxNodes {
		return Errorf(CodeBadRequest, "lease: places: %d of them, at most %d", len(l.Places), MaxNodes)
	}
	for i, p := range l.Places {
		if err := p.Validate(); err != nil {
			return Errorf(CodeBadRequest, "lease: places[%d]: %v", i, err)
		}
	}
	return nil
}

// Validate refuses a key that can name no attempt.
func (k TrialKey) Validate() error {
	if k.Trial < 1 || k.Trial > MaxTrials {
		return Errorf(CodeBadRequest, "trial: %d is not within 1 to %d", k.Trial, MaxTrials)
	}
	if k.Attempt < 1 || k.Attempt > MaxAttempts {
		return Errorf(CodeBadRequest, "attempt: %d is not within 1 to %d", k.Attempt, MaxAttempts)
	}
	return nil
}

// Validate refuses an abort of no attempt and an endless reason.
func (r AbortRequest) Validate() error {
	if n := utf8.RuneCountInString(r.Reason); n > maxReasonRunes {
		return Errorf(CodeBadRequest, "reason: %d characters long, at most %d", n, maxReasonRunes)
	}
	return r.TrialKey.Validate()
}

var outcomes = []Outcome{Accepted, Rejected, Failed, Interrupted}

// Validate refuses a verdict that says nothing.
func (v Verdict) Validate() error {
	if !slices.Contains(outcomes, v.Outcome) {
		return Errorf(CodeBadRequest, "outcome: %.80q is not accepted, rejected, failed or interrupted", v.Outcome)
	}
	if n := v.Reason.runes(); n > maxReasonRunes {
		return Errorf(CodeBadRequest, "reason: %d characters long, at most %d", n, maxReasonRunes)
	}
	if len(v.Checks) > 256 {
		return Errorf(CodeBadRequest, "checks: %d, at most 256", len(v.Checks))
	}
	if v.Word != nil {
		if err := v.Word.Validate(); err != nil {
			return err
		}
	}
	return v.TrialKey.Validate()
}
