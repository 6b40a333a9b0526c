package wire

// bounded is a body whose fields are held to their tags.
type bounded interface{ bounds(*checker) }

// check finds the first fault of a body; of names it in the message.
func check(of string, b bounded) error {
	c := &checker{of: of}
	b.bounds(c)
	return c.err()
}

// Validate refuses a confirmation of what no spool can have.
func (c Confirmation) Validate() error { return check("", &c) }

// Validate refuses a lease that makes no sense.
func (l Lease) Validate() error { return check("lease: ", &l) }

// Validate refuses a key that can name no attempt.
func (k TrialKey) Validate() error { return check("", &k) }

// Validate refuses an abort of no attempt and an endless reason.
func (r AbortRequest) Validate() error { return check("", &r) }

// Validate refuses a verdict that says nothing.
func (v Verdict) Validate() error { return check("", &v) }

// Validate refuses a fix whose numbers cannot have been measured.
func (f Fix) Validate() error { return check("", &f) }

// Validate refuses a reading that no radio can have had, or that says nothing.
func (w WiFiReading) Validate() error {
	c := &checker{}
	w.bounds(c)
	c.that(w.SignalDbm != nil, "signal_dbm", "missing; where it is not known there is no reading")
	return c.err()
}

// Validate refuses a place that is not on Earth, or of too long ago.
func (p Place) Validate() error { return check("", &p) }

// Validate refuses a note that says nothing or never ends, and a decision about no run.
func (n Note) Validate() error {
	c := &checker{}
	n.bounds(c)
	c.that(n.IsMark() || n.Run != "", "run", "missing; a decision needs it")
	c.that(n.IsMark() || n.Attachment == nil, "attachment", "only a mark has one")
	return c.err()
}

// Validate refuses a word that decides nothing.
func (w Word) Validate() error { return check("word: ", &w) }
