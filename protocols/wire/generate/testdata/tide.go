package wire

// Tide is how high the water stands.
//
// It is predicted.
type Tide struct {
	Port  string            `json:"port" influx:"tag,absent=sea"` // where
	Level *float64          `json:"level_m,omitempty" unit:"m"`
	State string            `json:"cause" influx:"name=why,after=count"` // it goes: up | down; seen
	Count uint32            `json:"count" max:"9"`
	Moon  *Moon             `json:"moon,omitempty"`
	Ships map[string]uint64 `json:"ships" archive:"too many"`
}

// Moon is part of it.
type Moon struct {
	Phase string `json:"phase"` // new | …
}

func (*Tide) Kind() string { return "tide" }
